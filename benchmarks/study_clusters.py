"""Error rates and coverage where rows of a cluster are correlated, with a known map.

    python benchmarks/study_clusters.py size --runs 1000 --csv size.csv
    python benchmarks/study_clusters.py coverage --runs 400 --csv coverage.csv

Predictions are the same for all rows of a cluster ("constant"), or vary. The rate of
events given the prediction is the true map, whatever the dependence: rates of constant
clusters have a beta distribution around it, and labels of varying ones are thresholds
of equally correlated normal variables. `icc` is the correlation of two labels of a
cluster, at a rate of 1/2 where predictions vary. Sizes of clusters range from half to
one and a half times the mean. Cases come in an order in which the first few already
span the range.
"""

import argparse
import csv
import os
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import expit, logit, ndtr

import calibrant as cb
from calibrant.calibrators.smooth import smooth_fit
from calibrant.core.sample import BinarySample
from calibrant.measures.intervals import PosteriorLimits

FIRST_SEED = 30_000
MAPS = {
    "calibrated": lambda p: p,
    "shifted": lambda p: expit(logit(p) - 0.5),
    "over-confident": lambda p: expit(0.6 * logit(p)),
    "curved": lambda p: p**1.5,
}
KINDS = ("constant", "varying")
SHAPES = ((20, 50), (100, 5), (50, 20), (200, 10))
ICCS = (0.05, 0.5, 0.2)
CASES = [(kind, *shape, icc) for shape, icc, kind in product(SHAPES, ICCS, KINDS)]
HEAD = ("predictions", "clusters", "rows each", "icc")


def draw(rng, kind, clusters, size, icc, true_map):
    """Return predictions, labels, true rates and the cluster of each row."""
    sizes = rng.integers(max(size // 2, 1), size + size // 2 + 1, clusters)
    code = np.arange(clusters).repeat(sizes)
    p = rng.random(clusters)[code] if kind == "constant" else rng.random(code.size)
    p = np.clip(p, 1e-6, 1.0 - 1e-6)
    c = true_map(p)
    if kind == "constant":
        own = c[np.cumsum(sizes) - 1]
        rates = rng.beta(own * (1.0 / icc - 1.0), (1.0 - own) * (1.0 / icc - 1.0))
        return p, rng.random(code.size) < rates[code], c, code
    latent = np.sin(0.5 * np.pi * icc)  # gives this correlation of labels at 1/2
    z = np.sqrt(latent) * rng.standard_normal(clusters)[code]
    z += np.sqrt(1.0 - latent) * rng.standard_normal(code.size)
    return p, ndtr(z) < c, c, code


def study_size(case, runs):
    """Return how often calibrated predictions are rejected at 10, 5 and 1 %."""
    rng = np.random.default_rng([FIRST_SEED, CASES.index(case)])
    found = {"with": [], "without": []}
    for _ in range(runs):
        p, y, _, code = draw(rng, *case, MAPS["calibrated"])
        found["with"].append(cb.calibration_test(y, p, clusters=code).pvalue)
        found["without"].append(cb.calibration_test(y, p).pvalue)
    rates = [np.mean(np.array(found["with"]) <= at) for at in (0.1, 0.05, 0.01)]
    rates.append(np.mean(np.array(found["without"]) <= 0.05))
    return [("calibrated", runs, *(f"{100 * rate:.1f}" for rate in rates))]


def study_coverage(case, runs):
    """Return how often intervals contain the true error, by the true map."""
    rows = []
    for k, (name, true_map) in enumerate(MAPS.items()):
        rng = np.random.default_rng([FIRST_SEED, CASES.index(case), k + 1])
        each = runs // len(MAPS)
        drawn = (draw(rng, *case, true_map) for _ in range(each))
        means = np.mean([coverage_run(*one) for one in drawn], axis=0)
        shares = [f"{100 * share:.1f}" for share in means[:2]]
        rows.append((name, each, *shares, *(f"{value:.4f}" for value in means[2:])))
    return rows


def coverage_run(p, y, c, code):
    """Return which intervals hold the error, width at 90 % and how far the value is."""
    rows = BinarySample(p, y.astype(float), clusters=code)
    value = smooth_fit(rows).error(rows, alpha=1.0, debias=False)
    truth, ends = np.abs(c - p).mean(), []
    for level in (0.9, 0.95):  # the intervals of `evaluate`, from one fit
        limits = PosteriorLimits.of(
            [rows], confidence=level, alpha=1.0, n_draws=500, seed=0
        )
        ends.append(limits.ends(value, slice(None)))
    held = [low - 1e-12 <= truth <= high for low, high in ends]
    return [*held, ends[0][1] - ends[0][0], abs(value - truth)]


PARTS = {
    "size": (study_size, ("map", "runs", "at 10 %", "at 5 %", "at 1 %", "no clusters")),
    "coverage": (
        study_coverage,
        ("map", "runs", "90 %", "95 %", "width at 90 %", "distance"),
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--cases", type=int, default=len(CASES), help="the first few")
    parser.add_argument("--csv")
    given = parser.parse_args()
    study, columns = PARTS[given.part]
    written = [(*HEAD, *columns)]
    for case in CASES[: given.cases]:
        written += [(*case, *row) for row in study(case, given.runs)]
        with Path(given.csv or os.devnull).open("w", newline="") as file:
            csv.writer(file).writerows(written)
        print(*written[-1], flush=True)


if __name__ == "__main__":
    main()
