"""Whether debiasing brings estimates of pl, pl3 and smooth closer to the true error.

    python benchmarks/study_debiasing.py --seeds 4

It prints the mean of abs(estimate - true error), in thousandths, over the paper's
shapes and errors 0, 0.02, ..., 0.1. Estimates:

- plain: the mean distance between map and diagonal;
- bootstrap: plain minus the mean increase when labels are drawn from the fitted map and
  the method is refitted with the same number of pieces or the same penalties;
- posterior: for smooth, the mean over draws from the posterior;
- halfway: the mean of plain and posterior;
- tested: posterior if the test rejects calibration at 5 %, otherwise plain.
"""

import argparse
import os
import platform
import sys
from datetime import UTC, datetime
from itertools import product

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy

import calibrant as cb
from calibrant.calibrators.registry import find_binary
from calibrant.core.sample import BinarySample
from calibrant.experiments.synthetic import PAPER_SHAPES, sample
from calibrant.numerics.resampling import BootstrapCells, bootstrap_cells
from calibrant.numerics.scores import mean_gap

FIRST_SEED = 30_000
ERRORS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1)
RESAMPLES = 50


def drawn_by_map(cells, map_, count, rng):
    """Return cells and weights of labels drawn from the map at each prediction."""
    left, place = np.unique(cells.left, return_inverse=True)
    total = np.bincount(place, weights=cells.weight)
    p = np.bincount(place, weights=cells.weight * cells.p) / total
    share = rng.binomial(total.astype(int), map_(p), (count, p.size)) / total
    weights = np.stack([(1 - share) * total, share * total], axis=2)
    both = BootstrapCells(
        left=np.repeat(left, 2),
        p=np.repeat(p, 2),
        y=np.tile([0.0, 1.0], p.size),
        weight=np.repeat(total, 2),
        row_cell=cells.row_cell,
    )
    return both, weights.reshape(count, -1), p, total


def estimates(method, rows, rng):
    """Return the estimates for alpha 1 and 2 by name."""
    fit = find_binary(method).build().fit_sample(rows)
    cells = bootstrap_cells(rows.p, rows.y, None, fit.edges)
    both, weights, p, total = drawn_by_map(cells, fit.map, RESAMPLES, rng)
    rejected = cb.calibration_test(rows.y, rows.p).pvalue <= 0.05
    for alpha in (1.0, 2.0):
        plain = fit.error(rows, alpha=alpha, debias=False)
        again = fit.resampled_errors(both, weights, alpha=alpha, debias=False)
        bias = float(again.mean()) - mean_gap(fit.map(p), p, total, alpha)
        found = {"plain": plain, "bootstrap": plain - bias}
        if method == "smooth":
            points = fit.curve.cells
            curves = fit.curve.drawn_curves(points.p, 500, rng)
            gaps = np.abs(curves - points.p[:, np.newaxis]) ** alpha
            posterior = float(np.average(gaps.mean(axis=1), weights=points.weight))
            found["posterior"] = posterior
            found["halfway"] = 0.5 * (plain + posterior)
            found["tested"] = posterior if rejected else plain
        for name, value in found.items():
            yield alpha, name, value


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 3000, 10_000])
    parser.add_argument("--methods", nargs="*", default=["pl", "pl3", "smooth"])
    given = parser.parse_args()
    print(f"{' '.join(sys.argv)}, {datetime.now(UTC):%Y-%m-%d}:", end=" ")
    print(f"calibrant {cb.__version__}, Python {platform.python_version()},", end=" ")
    print(f"NumPy {np.__version__}, SciPy {scipy.__version__}\n")
    print(
        "| method | alpha | n | estimate | all | error 0 | 0.02, 0.04 | 0.06 to 0.1 |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for method, n in product(given.methods, given.sizes):
        missed = {}
        cases = product(PAPER_SHAPES, ERRORS, range(given.seeds))
        for k, (shape, error, _) in enumerate(cases):  # the labels of all cases differ
            p, y, c = sample(shape, error, n, FIRST_SEED + k)
            rows, rng = BinarySample(p, y), np.random.default_rng(k)
            for alpha, name, value in estimates(method, rows, rng):
                gap = abs(value - np.mean(np.abs(c - p) ** alpha))
                missed.setdefault((alpha, name), []).append((error, gap))
        for (alpha, name), pairs in sorted(missed.items(), key=lambda item: item[0][0]):
            show(method, alpha, n, name, np.array(pairs).T)


def show(method, alpha, n, name, pairs):
    error, gap = pairs
    groups = [error >= 0, error == 0, (error > 0) & (error < 0.05), error > 0.05]
    cells = [f"{1000 * gap[group].mean():.2f}" for group in groups]
    row = [method, f"{alpha:g}", str(n), name, *cells]
    print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
