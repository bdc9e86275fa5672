"""Measure how often intervals of net benefits and their differences hold the truth.

Logits are normal, and labels follow them. Two models distort the logits, or add noise
to them. Widths are compared with those of normal intervals that know the standard
deviation of the estimate over all runs.

Run ``python benchmarks/study_net_benefit.py [--runs 2000] [--sizes 50 150 1000]
[--clusters 20 60 300]``.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, NamedTuple

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np
from scipy.special import expit

from calibrant.numerics.net_benefit import NetBenefit, Outcomes, thresholds_reached

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import FloatVector, IntVector

THRESHOLDS = np.array([0.05, 0.1, 0.2, 0.3, 0.5])
MANY = 2_000_000
"""Rows that stand for infinitely many."""
MANY_CLUSTERS = 400_000
CONFIDENCE, WIDTH = 0.95, 3.92


class Drawn(NamedTuple):
    """Rows: the chance of the event, and two predictions of it."""

    chance: FloatVector
    first: FloatVector
    second: FloatVector
    clusters: IntVector | None = None


class Case(NamedTuple):
    """Mean and standard deviation of logits, and two models of them.

    Each model has the intercept and slope of its logits and the spread of its noise.
    """

    mean: float
    spread: float
    first: tuple[float, float, float]
    second: tuple[float, float, float]

    def draw(self, rng: np.random.Generator, n: int) -> Drawn:
        """Draw rows and the predictions of both models."""
        x = rng.normal(self.mean, self.spread, n)
        noise = rng.normal(size=(2, n))
        models = zip((self.first, self.second), noise, strict=True)
        p, q = (expit(a + b * x + size * own) for (a, b, size), own in models)
        return Drawn(expit(x), p, q)


CASES = {
    "distorted": Case(-1.7, 1.2, (0.3, 1.6, 0.0), (-0.1, 0.9, 0.0)),
    "distorted, with noise": Case(-1.7, 1.2, (0.3, 1.6, 0.4), (-0.1, 0.9, 0.2)),
    "right and poor": Case(-1.7, 1.2, (0.0, 1.0, 0.0), (-1.19, 0.3, 0.5)),
    "common events": Case(0.0, 1.5, (0.0, 1.5, 0.3), (0.0, 0.8, 0.5)),
}


def visits(rng: np.random.Generator, clusters: int) -> Drawn:
    """Draw patients with one to six visits, who differ in risk and in what predicts."""
    code = np.repeat(np.arange(clusters), rng.integers(1, 7, clusters))
    shared = rng.normal(0.0, 1.0, clusters)[code]
    x = rng.normal(-1.4, 1.0, clusters)[code] + rng.normal(0.0, 0.4, code.size)
    return Drawn(expit(x + shared), expit(0.4 + 1.5 * x), expit(x), code)


def benefits(rows: Drawn, y: FloatVector) -> tuple[NetBenefit, NetBenefit]:
    """Return the benefit of the first model, and its difference to the second."""
    outcomes = Outcomes(THRESHOLDS, y, 1.0 - y, rows.clusters)
    reached = thresholds_reached(rows.first, THRESHOLDS)
    return (
        NetBenefit.of(outcomes, reached),
        NetBenefit.difference(outcomes, rows.first, rows.second),
    )


def measure(
    name: str,
    n: int,
    draw: Callable[[np.random.Generator, int], Drawn],
    many: int,
    runs: int,
) -> None:
    """Print one row for the benefit and one for the difference."""
    big = draw(np.random.default_rng([20261, 5]), many)._replace(clusters=None)
    truths = [benefit.value for benefit in benefits(big, big.chance)]
    rng = np.random.default_rng([777001, n, len(name)])
    held, widths = np.zeros((2, 5)), np.zeros((2, 5))
    values = np.zeros((2, runs, 5))
    for run in range(runs):
        rows = draw(rng, n)
        y = (rng.random(rows.chance.size) < rows.chance).astype(float)
        for which, benefit in enumerate(benefits(rows, y)):
            low, high = benefit.limits(CONFIDENCE)
            held[which] += (low <= truths[which]) & (truths[which] <= high)
            widths[which] += high - low
            values[which, run] = benefit.value
    shares = 100.0 * held / runs
    ratio = widths / runs / (WIDTH * values.std(axis=1))
    for which, what in enumerate(("net benefit", "difference")):
        pairs = zip(shares[which], ratio[which], strict=True)
        cells = [f"{share:.1f} ({width:.2f})" for share, width in pairs]
        print(f"| {name} | {n:,} | {what} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--sizes", type=int, nargs="*", default=[50, 150, 1000])
    parser.add_argument("--clusters", type=int, nargs="*", default=[20, 60, 300])
    options = parser.parse_args()
    named = " | ".join(f"t = {t:g}" for t in THRESHOLDS)
    print(f"| models | n | interval of | {named} |\n|---|---:|---|{'---:|' * 5}")
    for name, case in CASES.items():
        for n in options.sizes:
            measure(name, n, case.draw, MANY, options.runs)
    for n in options.clusters:
        measure("clusters", n, visits, MANY_CLUSTERS, options.runs)


if __name__ == "__main__":
    main()
