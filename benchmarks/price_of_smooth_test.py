"""The price of the mean of p-values in the smooth test, at many levels.

    python benchmarks/price_of_smooth_test.py --draws 60000

The chance that the mean is below a level, divided by the level, for each number of
scores and some cosines of the angle between the constant and Spiegelhalter's line.
Scores are drawn as if predictions were calibrated, from a mixture in which one of the
sums is larger than usual, and weighted by their density: so small chances are as
precise as large ones. `PRICES` of `smooth_calibration_test` are those of right angles,
on average over levels.
"""

import argparse

import numpy as np
from scipy.special import chdtri, logsumexp

from calibrant.numerics.smooth_calibration_test import (
    EXPONENT,
    LINE_SHARE,
    PRICES,
    SHARES,
    log_mean_p,
)

LEVELS = (0.9, 0.7, 0.5, 0.3, 0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-6, 1e-8, 1e-15, 1e-30)
RARE = 0.2
"""Scores are drawn from the mixture only for levels below."""
COSINES = (0.0, 0.6, 0.95)


def parts_of(count, line):
    """Return directions of which squares are summed, and the share of each sum."""
    axes, orders = np.eye(count), [order for order in SHARES if order <= count]
    parts = [axes[:, :order] for order in orders] + [np.resize(line, (count, 1))]
    parts[-1][line.size :] = 0.0
    shares = np.array([*(SHARES[order] for order in orders), LINE_SHARE])
    return parts, shares / shares.sum()


def price(count, cosine, level, draws, rng):
    """Return the price at a level and its standard error."""
    line = np.array([cosine, np.sqrt(1.0 - cosine**2)][:count])
    parts, shares = parts_of(count, line)
    drawn, spreads = [], []
    for part, share in zip(parts, shares, strict=True):
        z, size = rng.standard_normal((draws, count)), part.shape[1]
        limit = chdtri(size, level * share ** (1.0 / EXPONENT)) if level < RARE else 0
        spreads.append(max(np.sqrt(limit / size), 1.0))
        drawn.append(z + (spreads[-1] - 1.0) * (z @ part) @ part.T)
    z = np.concatenate(drawn)
    ratios = [
        0.5 * (1.0 - s**-2) * ((z @ part) ** 2).sum(axis=1) - part.shape[1] * np.log(s)
        for part, s in zip(parts, spreads, strict=True)
    ]
    weight = np.exp(np.log(len(parts)) - logsumexp(ratios, axis=0))
    found = weight * (log_mean_p(z, line) <= np.log(level)) / level
    return found.mean(), found.std() / np.sqrt(found.size)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100_000)
    draws = parser.parse_args().draws
    print("scores cosine", *[f"{level:g}" for level in LEVELS])
    for count in [count for count in PRICES if count > 1]:
        for cosine in COSINES:
            rng = np.random.default_rng(0)
            found = [price(count, cosine, level, draws, rng) for level in LEVELS]
            print(
                count, cosine, *[f"{mean:.3f} ({error:.3f})" for mean, error in found]
            )


if __name__ == "__main__":
    main()
