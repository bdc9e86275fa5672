"""Measure how often intervals of `summary` contain the truth.

Logits of predictions are normal; labels follow a line of logits, so that intercept and
slope are known. O:E and calibration in the large are compared with their values for the
drawn predictions.

Run ``python benchmarks/study_summary.py [--runs 400] [--sizes 100 300]
[--out FILE.csv]``.
"""

from __future__ import annotations

import argparse
import csv
import os
from itertools import product

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np
from scipy.special import expit

from calibrant.core.sample import BinarySample
from calibrant.core.tasks import BinaryTasks
from calibrant.measures.estimate import ErrorSettings, FittedTasks
from calibrant.measures.summary_measures import SampleMeasures
from calibrant.numerics.recalibration_line import LogitPoints
from calibrant.numerics.weighted_points import WeightedPoints

SIZES = (100, 300, 1000, 10_000)
PREDICTIONS = {"common": (0.0, 1.2), "uncommon": (-2.0, 1.2), "rare": (-4.0, 1.0)}
"""Mean and standard deviation of logits."""
LINES = {
    "calibrated": (0.0, 1.0),
    "too low": (0.5, 1.0),
    "too extreme": (0.0, 0.6),
    "too moderate": (0.0, 1.6),
    "both": (-0.6, 0.7),
}
"""Intercept and slope."""
MIN_EVENTS = 8
"""Cases with fewer events on average are left out."""
MANY = 200_000
FOR_MANY_ROWS = ("calibrated", "both")
"""Labels that are also drawn for the largest size."""
COLUMNS = (
    "predictions",
    "labels",
    "n",
    "events",
    "measure",
    "covered",
    "given",
    "runs",
)


def points_of(x, line):
    """Return predictions in order, with the true rate as the label."""
    x = np.sort(x)
    return WeightedPoints(expit(x), np.ones(x.size), expit(line[0] + line[1] * x))


def summarised(x, line, rng):
    """Return the measures of drawn labels that come from regressions."""
    y = (rng.random(x.size) < expit(line[0] + line[1] * x)).astype(np.float64)
    tasks = BinaryTasks("binary", ("binary",), (BinarySample(expit(x), y),))
    fitted = FittedTasks(tasks, ErrorSettings(confidence=0.95))
    found = SampleMeasures(fitted, "smooth")
    parts = [*found.large(), *found.line()]
    return {one.measure: one for one in parts}


def coverage(n, predictions, line, runs, seed):
    """Return how often each interval contains the truth, and how often there is one."""
    mean, spread = PREDICTIONS[predictions]
    rng = np.random.default_rng(seed)
    many = points_of(rng.normal(mean, spread, MANY), LINES[line])
    truth = dict(zip(("intercept", "slope"), LINES[line], strict=True))
    inside, given = {}, {}
    for _ in range(runs):
        x = rng.normal(mean, spread, n)
        drawn = points_of(x, LINES[line])
        truth["O:E"] = drawn.label_sum.sum() / drawn.p.sum()
        truth["in-the-large"] = LogitPoints.of(drawn).in_the_large().value
        for name, one in summarised(x, LINES[line], rng).items():
            held = one.low <= truth[name] <= one.high
            inside[name] = inside.get(name, 0) + held
            given[name] = given.get(name, 0) + np.isfinite(one.low)
    events = n * float(many.label_sum.mean())
    return [
        {
            "predictions": predictions,
            "labels": line,
            "n": n,
            "events": round(events),
            "measure": name,
            "covered": round(float(100 * inside[name] / max(given[name], 1)), 1),
            "given": round(float(100 * given[name] / runs), 1),
            "runs": runs,
        }
        for name in inside
    ]


def cases():
    """Give predictions, labels and sizes, with at least a few events on average."""
    for n, predictions, line in product(SIZES, PREDICTIONS, LINES):
        mean, spread = PREDICTIONS[predictions]
        drawn = points_of(
            np.random.default_rng(0).normal(mean, spread, MANY), LINES[line]
        )
        enough = n * drawn.label_sum.mean() >= MIN_EVENTS
        if enough and (n < SIZES[-1] or line in FOR_MANY_ROWS):
            yield n, predictions, line


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--out", default=os.devnull)
    chosen = parser.parse_args()
    with open(chosen.out, "w", newline="", encoding="utf-8") as file:  # noqa: PTH123
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        for seed, case in enumerate(cases(), 90_000):
            if case[0] not in chosen.sizes:
                continue
            rows = coverage(*case, chosen.runs, seed)
            table.writerows(rows)
            file.flush()
            print(*case, {row["measure"]: row["covered"] for row in rows}, flush=True)


if __name__ == "__main__":
    main()
