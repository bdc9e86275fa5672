"""The price of the mean of p-values in the smooth test, at many levels.

    python benchmarks/price_of_smooth_test.py --draws 300000

The chance that the mean is below a level, divided by the level, for each number of
scores. Scores are drawn as if predictions were calibrated, from a mixture in which one
of the sums is larger than usual, and weighted by their density: so small chances are
as precise as large ones. `PRICES` of `smooth_calibration_test` is the price at 5 %.
"""

import argparse

import numpy as np
from scipy.special import chdtri, logsumexp

from calibrant.numerics.smooth_calibration_test import (
    EXPONENT,
    PRICES,
    SHARES,
    log_mean_p,
)

LEVELS = (0.9, 0.7, 0.5, 0.3, 0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-6, 1e-8, 1e-15, 1e-30)
RARE = 0.2
"""Scores are drawn from the mixture only for levels below."""


def price(count, level, draws, rng):
    """Return the price at a level and its standard error."""
    parts = {part: share for part, share in SHARES.items() if part[1] <= count}
    shares = np.array(list(parts.values())) / sum(parts.values())
    drawn, spreads = [], []
    for (a, b), share in zip(parts, shares, strict=True):
        z = rng.standard_normal((draws, count))
        limit = chdtri(b - a, level * share ** (1.0 / EXPONENT)) if level < RARE else 0
        spreads.append(max(np.sqrt(limit / (b - a)), 1.0))
        z[:, a:b] *= spreads[-1]
        drawn.append(z)
    z = np.concatenate(drawn)
    ratios = [
        0.5 * (1.0 - s**-2) * (z[:, a:b] ** 2).sum(axis=1) - (b - a) * np.log(s)
        for (a, b), s in zip(parts, spreads, strict=True)
    ]
    weight = np.exp(np.log(len(parts)) - logsumexp(ratios, axis=0))
    found = weight * (log_mean_p(z) <= np.log(level)) / level
    return found.mean(), found.std() / np.sqrt(found.size)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100_000)
    draws = parser.parse_args().draws
    print("scores", *[f"{level:g}" for level in LEVELS])
    for count in PRICES:
        rng = np.random.default_rng(0)
        found = [price(count, level, draws, rng) for level in LEVELS]
        print(count, *[f"{mean:.3f} ({error:.3f})" for mean, error in found])


if __name__ == "__main__":
    main()
