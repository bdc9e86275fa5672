"""Time complete reports, and print the size of their pages.

One million rows: one model, one model with ten groups, and five models. Each report has
errors by the default methods with intervals, diagrams, checks and cross-fitted repairs.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import calibrant as cb

ROWS = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
ROUNDS = 2


def rows(n):
    rng = np.random.default_rng(0)
    truth = rng.beta(0.8, 1.6, n)
    y = (rng.random(n) < truth).astype(np.int8)
    logits = np.log(truth) - np.log1p(-truth)
    models = {
        f"model_{k}": 1 / (1 + np.exp(-(0.7 + 0.15 * k) * logits - 0.1 * k))
        for k in range(5)
    }
    return {"label": y, "region": rng.integers(0, 10, n), **models}


def timed(make):
    """Return the minimum wall and CPU time over a few rounds, and the page size."""
    walls, cpus = [], []
    for _ in range(ROUNDS):
        wall, cpu = time.perf_counter(), time.process_time()
        report = make()
        with tempfile.TemporaryDirectory() as folder:
            page, _ = report.save(Path(folder, "report.html"))
            size = page.stat().st_size
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return min(walls), min(cpus), size


def main():
    data = rows(ROWS)
    models = [name for name in data if name.startswith("model")]
    cases = {
        "one model": {"p": models[0]},
        "one model, ten groups": {"p": models[0], "by": "region"},
        "five models": {"p": models},
    }
    print(f"{ROWS:,} rows: best of {ROUNDS}")
    print("| report | wall s | CPU s | page kB |")
    print("|---|---:|---:|---:|")
    for name, columns in cases.items():
        wall, cpu, size = timed(
            lambda columns=columns: cb.Report.from_predictions(
                cb.Predictions.from_table(data, y="label", **columns)
            )
        )
        print(f"| {name} | {wall:.1f} | {cpu:.1f} | {size / 1000:.0f} |")


if __name__ == "__main__":
    main()
