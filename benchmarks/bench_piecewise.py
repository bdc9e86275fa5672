"""Time pl, pl3 and pl-de, including cross-validation.

One run prints CPU seconds, the ratio to ``np.argsort`` of the same predictions, and
the ratio to the time that the paper's own code took for the same procedure (recorded,
on another machine: 124 s for pl, 224 s for pl3 and 590 s for pl-de at n = 1,000, about
790 s for pl at 10,000). The first row is a cold start and includes loading modules.
Finally pwlf, which the paper used for pl-de, is run in the same process with 1 to 7
pieces on 1,000 rows; the complete procedure would need that ten times.

Run ``python benchmarks/bench_piecewise.py [--quick]``; ``--quick`` skips pwlf.
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
from calibrant.maps.piecewise import PiecewiseLinearMap

METHODS = ("pl", "pl-mse", "pl3", "pl3-mse", "pl-de", "pl-de2")
PAPER_SECONDS = {
    ("pl", 1_000): 124.0,
    ("pl3", 1_000): 224.0,
    ("pl-de", 1_000): 590.0,
    ("pl", 10_000): 790.0,
}
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
    text = "-" if paper is None else f"{paper / seconds:,.0f}"
    print(f"| {method} | {n:,} | {seconds:.3f} | {seconds / argsort:,.1f} | {text} |")


def time_size(n: int, rounds: int) -> None:
    p, y = sample(n)
    argsort = min(cpu_seconds(partial(np.argsort, p)) for _ in range(ROUNDS))
    for method in METHODS:
        call = partial(cb.calibration_error, y, p, method=method)
        if n == 1_000 and method == METHODS[0]:
            print_row(f"{method}, cold", n, cpu_seconds(call), argsort)
        seconds = min(cpu_seconds(call) for _ in range(rounds))
        print_row(method, n, seconds, argsort)


def race_pwlf(n: int) -> None:
    import pwlf  # noqa: PLC0415 - not needed for --quick

    p, y = sample(n)
    ours = cpu_seconds(partial(cb.calibration_error, y, p, method="pl-de"))
    np.random.seed(0)  # noqa: NPY002 - pwlf draws from the global generator
    model = pwlf.PiecewiseLinFit(p, y)
    print("\n| pwlf, one fit | CPU s | ratio to all of pl-de | its loss / ours |")
    print("| --- | ---: | ---: | ---: |")
    total = 0.0
    for pieces in range(1, 8):
        seconds = cpu_seconds(partial(model.fit, pieces))
        total += seconds
        mine = cb.make_calibrator("pl-de", pieces=pieces).fit(p, y).map_
        assert isinstance(mine, PiecewiseLinearMap)
        lines = np.interp(p, mine.knots, mine.heights)
        loss = model.ssr / ((lines - y) ** 2).sum()
        text = f"{seconds:.3f} | {seconds / ours:,.1f} | {loss:.5f}"
        print(f"| {pieces} pieces | {text} |", flush=True)
    print(f"| 1 to 7 pieces, one fold of ten | {total:.1f} | {total / ours:,.1f} | - |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 100,000 rows")
    largest = 5 if parser.parse_args().quick else 7
    print("| method | rows | CPU s | ratio to argsort | paper's code / ours |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for power in range(3, largest + 1):
        time_size(10**power, rounds=ROUNDS if power < 6 else 1)
    if largest > 5:
        race_pwlf(1_000)


if __name__ == "__main__":
    main()
