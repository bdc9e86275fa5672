"""Time the kernel calibration error and its test, with another library.

One run prints CPU seconds, the ratio to ``np.argsort`` of the same predictions, and
the peak memory beyond the input. probcal forms a matrix of all pairs, so it runs only
up to 10,000 rows (it would need 75 GiB at 100,000).

Run ``python benchmarks/bench_kernel.py [--quick]``.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from functools import partial
from importlib import import_module
from importlib.util import find_spec

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np

import calibrant as cb

ROUNDS = 3
PEER_ROWS = 10_000
MIB = 2**20


def cpu_seconds(call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def peak_mib(call) -> float:
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / MIB


def sample(n: int):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return p, (rng.random(n) < p**1.1).astype(float)


def contestants(y, p):
    """Return the calls to time by name."""
    error = partial(cb.kernel_calibration_error, y, p)
    test = partial(cb.calibration_test, y, p, method="kce")
    found = {
        "laplace, h = 0.1": partial(error, kernel="laplace", bandwidth=0.1),
        "laplace, h = median": partial(error, kernel="laplace", bandwidth="median"),
        "rbf, h = 1 (paper)": error,
        "rbf, h = 0.1": partial(error, bandwidth=0.1),
        "block of 2": partial(error, estimator="block"),
        "test, rbf, 1000 draws": test,
        "test, laplace, 1000 draws": partial(test, kernel="laplace"),
    }
    if p.size <= PEER_ROWS and find_spec("probcal"):
        peer, whole = import_module("probcal.metrics"), y.astype(int)
        found["probcal skce, laplace, h = 0.1"] = partial(
            peer.skce, whole, p, kernel="laplace", bandwidth=0.1
        )
        if p.size <= PEER_ROWS // 10:
            found["probcal skce_test, 1000 draws"] = partial(
                peer.skce_test, whole, p, n_boot=1000
            )
    return found


def time_size(n: int) -> None:
    p, y = sample(n)
    argsort = min(cpu_seconds(partial(np.argsort, p)) for _ in range(ROUNDS))
    for name, call in contestants(y, p).items():
        rounds = 1 if name.startswith("probcal") else ROUNDS
        seconds = min(cpu_seconds(call) for _ in range(rounds))
        memory = peak_mib(call)
        print(
            f"| {name} | {n:,} | {seconds:.4f} | {seconds / argsort:,.1f} "
            f"| {memory:,.1f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 100,000 rows")
    largest = 5 if parser.parse_args().quick else 6
    print("| what | rows | CPU s | ratio to argsort | peak MiB |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for power in range(3, largest + 1):
        time_size(10**power)


if __name__ == "__main__":
    main()
