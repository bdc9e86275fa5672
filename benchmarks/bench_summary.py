"""Time the calibration summary, next to sorting the same predictions.

Numbers are ratios to the CPU time of ``np.argsort(p)``, measured in the same run on one
thread with interleaved rounds.

Run ``python benchmarks/bench_summary.py [--quick]``.
"""

from __future__ import annotations

import argparse
import os

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np
from bench_binned import sample, seconds_per_call

import calibrant as cb

SIZES = (10**4, 10**5, 10**6, 10**7)
QUICK_SIZES = SIZES[:2]


def contestants(n):
    y, p = sample(n)
    cells = cb.Predictions.from_arrays(y, p).aggregate()
    return {
        "np.argsort": lambda: np.argsort(p),
        "validation": lambda: cb.Predictions.from_arrays(y, p),
        "summary": lambda: cb.summary(y, p),
        "summary, loess": lambda: cb.summary(y, p, smoother="loess"),
        "summary, lowess": lambda: cb.summary(y, p, smoother="lowess"),
        "summary of aggregates": lambda: cb.summary(cells),
        "evaluate": lambda: cb.evaluate(y, p),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    sizes = QUICK_SIZES if parser.parse_args().quick else SIZES
    print("rows", *contestants(10), sep=" | ")
    for n in sizes:
        spent = seconds_per_call(contestants(n), rounds=3 if n < 10**6 else 2)
        sort = spent["np.argsort"]
        print(n, *(f"{one / sort:.2f}" for one in spent.values()), sep=" | ")


if __name__ == "__main__":
    main()
