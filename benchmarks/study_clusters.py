r"""Error rates and coverage where rows of a cluster are correlated, with a known map.

    python benchmarks/study_clusters.py --runs 400 --csv docs/data/cluster_coverage.csv
    python benchmarks/study_clusters.py --tests --runs 2000 \
        --csv docs/data/cluster_test_size.csv

The second command only tests calibrated predictions, more often and with other seeds.
Predictions are the same for all rows of a cluster ("constant"), or vary. The rate of
events given the prediction is the true map, whatever the dependence: rates of constant
clusters have a beta distribution around it, and labels of varying ones are thresholds
of equally correlated normal variables. `icc` is the correlation of two labels of a
cluster, at a rate of 1/2 where predictions vary. Sizes of clusters range from half to
one and a half times the mean. Cases come in an order in which the first few already
span the range. Those that the file has already are not run again.
"""

import argparse
import csv
import os
from dataclasses import replace
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import expit, logit, ndtr

from calibrant.calibrators.smooth import smooth_fit
from calibrant.core.sample import BinarySample
from calibrant.numerics.clustered_test import smooth_p_value
from calibrant.numerics.posterior_limits import PosteriorLimits

FIRST_SEED, FIRST_TEST_SEED = 31_000, 52_000
MAPS = {
    "calibrated": lambda p: p,
    "over-confident": lambda p: expit(0.6 * logit(p)),
    "shifted": lambda p: expit(logit(p) - 0.5),
    "curved": lambda p: p**1.5,
}
KINDS = ("constant", "varying")
SHAPES = ((20, 50), (100, 5), (50, 20), (200, 10))
ICCS = (0.05, 0.5, 0.2)
CASES = [(kind, *shape, icc) for shape, icc, kind in product(SHAPES, ICCS, KINDS)]
LEVELS = (0.9, 0.95)
DRAWS = 500
HEAD = (
    *("predictions", "clusters", "rows each", "icc", "map", "runs"),
    *("90 %", "95 %", "width at 90 %", "distance"),
    *("test at 10 %", "test at 5 %", "test at 1 %", "test at 5 %, no clusters"),
)


TEST_HEAD = (*HEAD[:6], *HEAD[-4:-1])


def draw(rng, case, true_map):
    """Return predictions, labels, true rates and the cluster of each row."""
    kind, clusters, size, icc = case
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


def study(case, name, runs):
    """Return coverage, width and distance, and how often the test rejects, by a map."""
    places = CASES.index(case), list(MAPS).index(name)
    rng = np.random.default_rng([FIRST_SEED, *places])
    found = np.array([one_run(*draw(rng, case, MAPS[name])) for _ in range(runs)])
    pvalues, alone = found[:, 4], found[:, 5]
    rates = [(pvalues <= at).mean() for at in (0.1, 0.05, 0.01)]
    rates.append((alone <= 0.05).mean())
    shares = [f"{100 * share:.1f}" for share in [*found[:, :2].mean(axis=0), *rates]]
    means = [f"{mean:.4f}" for mean in found[:, 2:4].mean(axis=0)]
    return [*case, name, runs, *shares[:2], *means, *shares[2:]]


def test_size(case, name, runs):
    """Return how often the test rejects, by level."""
    rng = np.random.default_rng([FIRST_TEST_SEED, CASES.index(case)])
    pvalues = np.empty(runs)
    for k in range(runs):
        p, y, _, code = draw(rng, case, MAPS[name])
        rows = BinarySample(p, y.astype(float), clusters=code)
        pvalues[k] = smooth_p_value(rows).pvalue
    shares = [f"{100 * (pvalues <= at).mean():.2f}" for at in (0.1, 0.05, 0.01)]
    return [*case, name, runs, *shares]


def one_run(p, y, c, code):
    """Return which intervals hold, width at 90 %, distance, and p-values.

    They are the intervals of `evaluate`, from one fit.
    """
    alone = BinarySample(p, y.astype(float))
    rows = replace(alone, clusters=code)
    fit, test = smooth_fit(rows), smooth_p_value(rows)
    value = fit.error(rows, alpha=1.0, debias=False)
    tails = [0.5 - 0.5 * level for level in LEVELS]
    tails += [1.0 - tail for tail in tails]
    drawn = fit.curve.error_quantiles(tuple(tails), n_draws=DRAWS, random_state=0)
    limits = [
        PosteriorLimits(level, low, high, [test])
        for level, low, high in zip(LEVELS, *drawn.reshape(2, -1, 1), strict=True)
    ]
    intervals = [one.interval(value, slice(None)) for one in limits]
    truth = np.abs(c - p).mean()
    held = [low - 1e-12 <= truth <= high for low, high in intervals]
    pvalues = test.pvalue, smooth_p_value(alone).outcome.pvalue
    return [*held, intervals[0][1] - intervals[0][0], abs(value - truth), *pvalues]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--maps", nargs="+", choices=MAPS, default=list(MAPS)[:2])
    parser.add_argument("--cases", type=int, default=len(CASES), help="the first few")
    parser.add_argument("--tests", action="store_true", help="only tests")
    parser.add_argument("--csv", type=Path, required=True)
    given = parser.parse_args()
    measure, head = (test_size, TEST_HEAD) if given.tests else (study, HEAD)
    maps = ["calibrated"] if given.tests else given.maps
    done = []
    if given.csv.exists():
        with given.csv.open(newline="") as file:
            done = [tuple(row[:5]) for row in csv.reader(file)]
    for case, name in product(CASES[: given.cases], maps):
        if (*map(str, case), name) in done:
            continue
        row = measure(case, name, given.runs)
        with given.csv.open("a", newline="") as file:
            csv.writer(file).writerows([row] if done else [head, row])
        done.append(row)
        print(*row, flush=True)


if __name__ == "__main__":
    main()
