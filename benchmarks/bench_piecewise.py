"""Time pl and pl3, the whole procedure with its cross-validation.

One run prints CPU seconds, the ratio to ``np.argsort`` of the same predictions, and
the ratio to the time that the paper's own code took for the same procedure (recorded,
on another machine: 124 and 224 CPU s at n = 1,000, about 790 s at 10,000). The first
row is a cold start: everything that is loaded at first use is in it.

Run ``python benchmarks/bench_piecewise.py [--quick]``.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np

import calibrant as cb

METHODS = ("pl", "pl-mse", "pl3", "pl3-mse")
PAPER_SECONDS = {("pl", 1_000): 124.0, ("pl3", 1_000): 224.0, ("pl", 10_000): 790.0}
ROUNDS = 3


def cpu_seconds(call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def sample(n: int):
    p, y, _ = cb.experiments.synthetic.sample("stairs", 0.05, n, seed=0)
    order = np.random.default_rng(0).permutation(n)
    return p[order], y[order]


def print_row(method: str, n: int, seconds: float, argsort: float) -> None:
    paper = PAPER_SECONDS.get((method, n))
    told = "-" if paper is None else f"{paper / seconds:,.0f}"
    print(f"| {method} | {n:,} | {seconds:.3f} | {seconds / argsort:,.1f} | {told} |")


def time_size(n: int, rounds: int) -> None:
    p, y = sample(n)
    argsort = min(cpu_seconds(partial(np.argsort, p)) for _ in range(ROUNDS))
    for method in METHODS:
        call = partial(cb.calibration_error, y, p, method=method)
        if n == 1_000 and method == METHODS[0]:
            print_row(f"{method}, cold", n, cpu_seconds(call), argsort)
        seconds = min(cpu_seconds(call) for _ in range(rounds))
        print_row(method, n, seconds, argsort)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 100,000 rows")
    largest = 5 if parser.parse_args().quick else 7
    print("| method | rows | CPU s | to argsort | paper's code / ours |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for power in range(3, largest + 1):
        time_size(10**power, rounds=ROUNDS if power < 6 else 1)


if __name__ == "__main__":
    main()
