"""Time `compare`, and `evaluate` of each of its models.

CPU seconds on one thread, the median over interleaved rounds. Run
``python benchmarks/bench_compare.py``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

import calibrant as cb

METHODS = ("smooth", "es15", "isotonic", "pl", "kce")
MODELS = 3


def predictions(rows):
    """Return labels and three models, from calibrated to increasingly too low."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.6, 0.6, rows)
    y = rng.random(rows) < p
    return y, {f"power {power}": p**power for power in (1.0, 1.1, 1.3)}


def cpu_seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def time_method(method, rows, rounds):
    y, models = predictions(rows)

    def compare():
        cb.compare(y, models, method=method)

    def evaluate():
        for p in models.values():
            cb.evaluate(y, p, methods=method)

    compare()  # load modules that load at first use
    spent = [(cpu_seconds(compare), cpu_seconds(evaluate)) for _ in range(rounds)]
    together, apart = (statistics.median(column) for column in zip(*spent, strict=True))
    ratio = together / apart
    print(f"| {method} | {rows:,} | {together:.2f} | {apart:.2f} | {ratio:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    print(f"| method | rows | compare {MODELS} models | evaluate each | ratio |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for rows in (1_000, 10_000, 1_000_000):
        for method in METHODS:
            time_method(method, rows, rounds)


if __name__ == "__main__":
    main()
