"""Measure how often intervals of `summary` contain the truth.

Logits of predictions are normal; labels follow a line of logits, so that all measures
are known. O:E, calibration in the large and distances are compared with their values
for the drawn predictions, scores and the AUROC with those of infinitely many. Last come
prediction intervals of pooled centres, with true values that vary around 1.

Run ``python benchmarks/study_summary.py [--runs 400] [--curves 100]
[--sizes 100 300] [--out FILE.csv]``. Curves take most of the time: --curves is the
number of runs in which distances from them are measured.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections import Counter
from itertools import product

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np
from scipy.special import expit, ndtri, xlog1py, xlogy

from calibrant.core.sample import BinarySample
from calibrant.core.tasks import BinaryTasks
from calibrant.measures.estimate import ErrorSettings, FittedTasks
from calibrant.numerics.random_effects import pool
from calibrant.numerics.recalibration_line import LogitPoints
from calibrant.numerics.summary_measures import SampleMeasures
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
"""Predictions at as many quantiles stand for infinitely many."""
ROUNDING = 1e-9
CENTRES, SPREADS = (2, 3, 5, 8, 15, 30), (0.0, 0.1, 0.3, 1.0)
"""Numbers of pooled centres, and standard deviations of their true values."""
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


def quantiles(predictions):
    """Return logits of very many predictions."""
    mean, spread = PREDICTIONS[predictions]
    return mean + spread * ndtri((np.arange(MANY) + 0.5) / MANY)


def points_of(x, line):
    """Return predictions in order, with the true rate as the label."""
    x = np.sort(x)
    return WeightedPoints(expit(x), np.ones(x.size), expit(line[0] + line[1] * x))


def entropy(rate):
    """Return the expected log-loss of the rate itself."""
    return -(xlogy(rate, rate) + xlog1py(1.0 - rate, -rate))


def score_truths(points):
    """Return scores and AUROC of rows with known rates."""
    p, rate = points.p, points.label_sum
    share = rate.mean()
    brier = np.mean(rate * (1.0 - p) ** 2 + (1.0 - rate) * p**2)
    loss = -np.mean(rate * np.log(p) + (1.0 - rate) * np.log1p(-p))
    below = np.cumsum(1.0 - rate) - 0.5 * (1.0 - rate)
    base = entropy(share)
    explained = np.expm1(2.0 * (loss - base)) / np.expm1(-2.0 * base)
    return {
        "Brier": brier,
        "scaled Brier": 1.0 - brier / (share * (1.0 - share)),
        "log-loss": loss,
        "Nagelkerke R2": explained,
        "AUROC": rate @ below / (rate.sum() * (1.0 - rate).sum()),
    }


def drawn_truths(points):
    """Return what is compared with its value for the drawn predictions."""
    gap = np.abs(points.label_sum - points.p)
    logits = LogitPoints.of(points)
    return {
        "O:E": points.label_sum.sum() / points.p.sum(),
        "in-the-large": logits.shift_from(logits.x).value,
        "ICI": gap.mean(),
        "E50": np.quantile(gap, 0.5),
        "E90": np.quantile(gap, 0.9),
        "Emax": gap.max(),
    }


def summarised(x, line, rng, *, curve):
    """Give the measures of drawn labels, with distances from the curve or without."""
    y = (rng.random(x.size) < expit(line[0] + line[1] * x)).astype(np.float64)
    sample, error = BinarySample(expit(x), y), (np.nan, np.nan, np.nan)
    if curve:
        tasks = BinaryTasks("binary", ("binary",), (sample,))
        fitted = FittedTasks(tasks, ErrorSettings(confidence=0.95))
        smooth = fitted.estimates("smooth")[0]
        error = smooth.value, smooth.low, smooth.high
    measures = SampleMeasures(sample, "smooth", error, 0.95, 1000, 0)
    yield from measures.large()
    yield from measures.line()
    yield from measures.scores()
    if curve:
        yield from measures.distances()


def coverage(case, runs, curves, seed):
    """Return how often each interval contains the truth, and how often there is one."""
    n, predictions, line = case
    mean, spread = PREDICTIONS[predictions]
    rng = np.random.default_rng(seed)
    many = points_of(quantiles(predictions), LINES[line])
    truth = dict(zip(("intercept", "slope"), LINES[line], strict=True))
    truth |= score_truths(many)
    inside, given, tried = Counter(), Counter(), Counter()
    for run in range(runs):
        x = rng.normal(mean, spread, n)
        truth |= drawn_truths(points_of(x, LINES[line]))
        for one in summarised(x, LINES[line], rng, curve=run < curves):
            name = one.measure
            tried[name] += 1
            given[name] += np.isfinite(one.low)
            inside[name] += one.low - ROUNDING <= truth[name] <= one.high + ROUNDING
    events = n * float(many.label_sum.mean())
    return [
        {
            "predictions": predictions,
            "labels": line,
            "n": n,
            "events": round(events),
            "measure": name,
            "covered": round(float(100 * inside[name] / max(given[name], 1)), 1),
            "given": round(float(100 * given[name] / tried[name]), 1),
            "runs": tried[name],
        }
        for name in tried
    ]


def pooled_coverage(centres, spread, runs, seed):
    """Return how often a new centre lies within its prediction interval."""
    rng, inside = np.random.default_rng(seed), 0
    for _ in range(runs):
        errors = rng.uniform(0.1, 0.3, centres)
        true = rng.normal(1.0, spread, centres + 1)
        found = pool(rng.normal(true[:-1], errors), errors, 0.95)
        inside += found.prediction_low <= true[-1] <= found.prediction_high
    return {
        "predictions": f"{centres} centres",
        "labels": f"spread {spread}",
        "measure": "prediction interval",
        "covered": round(100 * inside / runs, 1),
        "given": 100.0,
        "runs": runs,
    }


def cases():
    """Give predictions, labels and sizes, with at least a few events on average."""
    for n, predictions, line in product(SIZES, PREDICTIONS, LINES):
        many = points_of(quantiles(predictions), LINES[line])
        enough = n * many.label_sum.mean() >= MIN_EVENTS
        if enough and (n < SIZES[-1] or line in FOR_MANY_ROWS):
            yield n, predictions, line


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--curves", type=int, default=100)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--out", default=os.devnull)
    chosen = parser.parse_args()
    with open(chosen.out, "w", newline="", encoding="utf-8") as file:  # noqa: PTH123
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        for seed, case in enumerate(cases(), 96_000):
            if case[0] not in chosen.sizes:
                continue
            rows = coverage(case, chosen.runs, chosen.curves, seed)
            table.writerows(rows)
            file.flush()
            print(*case, {row["measure"]: row["covered"] for row in rows}, flush=True)
        for seed, case in enumerate(product(CENTRES, SPREADS), 95_000):
            row = pooled_coverage(*case, chosen.runs, seed)
            table.writerow(row)
            print(*case, row["covered"], flush=True)


if __name__ == "__main__":
    main()
