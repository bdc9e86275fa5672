"""Time `smooth` with intervals on a few or very many small groups, and on all rows.

CPU seconds on one thread, in one run; the ratio to one evaluation of 50,000 rows can be
compared between machines. Run ``python benchmarks/bench_groups.py``.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

import calibrant as cb

SINGLE = 50_000
FEW_GROUPS, FEWEST, MOST = 84, 3, 30
ROWS_EACH = 10


def table(sizes):
    """Return slightly over-confident predictions in groups of the given sizes."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.8, 0.8, int(np.sum(sizes)))
    y = rng.random(p.size) < 0.1 + 0.8 * p
    return {"y": y, "p": p, "group": np.repeat(np.arange(len(sizes)), sizes)}


def cpu_seconds(rows, by):
    start = time.process_time()
    found = cb.evaluate(
        cb.Predictions.from_table(rows, y="y", p="p", by=by), methods="smooth"
    )
    found.frame()
    found.scores()
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--groups", type=int, default=100_000)
    groups = parser.parse_args().groups
    warnings.simplefilter("ignore")
    few = np.random.default_rng(1).integers(FEWEST, MOST + 1, FEW_GROUPS)
    cases = {
        f"{SINGLE:,} rows at once": ([SINGLE], None),
        f"{FEW_GROUPS} groups of {FEWEST} to {MOST} rows": (few, "group"),
        f"{groups:,} groups of {ROWS_EACH} rows": ([ROWS_EACH] * groups, "group"),
    }
    cpu_seconds(table([100]), None)  # load modules that load at first use
    single = None
    print("| rows | CPU s | ms per group | ratio |")
    print("| --- | ---: | ---: | ---: |")
    for name, (sizes, by) in cases.items():
        spent = cpu_seconds(table(sizes), by)
        single = single or spent
        each = 1000.0 * spent / len(sizes)
        print(f"| {name} | {spent:.3f} | {each:.2f} | {spent / single:.1f} |")


if __name__ == "__main__":
    main()
