"""Cross-validation: folds, and choosing complexity from held-out losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import (
        FloatMatrix,
        FloatVector,
        IntMatrix,
        IntVector,
    )

    Random: TypeAlias = np.random.RandomState | np.random.Generator

MAX_SHUFFLED = 2**16
"""Up to this many aggregated rows get the folds that they had as single rows; more if
drawing counts for each cell and fold would take longer."""
MAX_DRAWN = 10**9
"""NumPy draws without replacement from fewer rows than this."""
MAX_KEYS = 10
"""Rows whose ten largest scores are all equal count as equal."""
ROUNDING = 1e-12
"""Losses that differ by less are equal."""
MIN_WEIGHT = 0.2
"""Choices that weigh less than this share of the best do not enter a mean."""
EXTRA_COST = 2.0
"""What complexity beyond that which the rows support costs in log-likelihood: as much
as two parameters, a knot and its height, by Akaike's criterion."""
RISES = 4
CLEARLY_WORSE = 1.001
"""So many choices in a row that lose more than 0.1 percent and have no weight end a
search."""


def fold_numbers(n: int, folds: int, rng: Random) -> IntVector:
    """Return the fold of each of `n` rows, shuffled, sizes differing by one at most.

    Given a ``RandomState``, the folds are those of scikit-learn's
    ``KFold(folds, shuffle=True)`` with the same state.

    Examples
    --------
    >>> fold_numbers(6, 3, np.random.RandomState(1))
    array([1, 0, 0, 2, 1, 2])
    """
    shuffled = np.arange(n)
    rng.shuffle(shuffled)
    sizes = np.full(folds, n // folds)
    sizes[: n % folds] += 1
    fold = np.empty(n, dtype=np.intp)
    fold[shuffled] = np.repeat(np.arange(folds), sizes)
    return fold


def cluster_fold_numbers(clusters: IntVector, folds: int, rng: Random) -> IntVector:
    """Return the fold of each row; those of a cluster are in the same one.

    Examples
    --------
    >>> cluster_fold_numbers(np.array([7, 7, 3, 5]), 3, np.random.RandomState(0))
    array([0, 0, 2, 1])
    """
    names, cluster = np.unique(clusters, return_inverse=True)
    fold: IntVector = fold_numbers(names.size, min(folds, names.size), rng)[cluster]
    return fold


def fold_counts(rows: IntVector, folds: int, rng: Random) -> IntMatrix:
    """Return how many of the rows of each cell are in each fold, shape (m, folds).

    As if all rows were shuffled: counts are drawn without replacement, so that sizes
    of folds differ by one at most. Beyond a billion rows each row falls into any fold
    independently, which makes no difference that could be noticed.
    """
    total = int(rows.sum())
    if total <= max(MAX_SHUFFLED, folds * rows.size):
        cell = np.repeat(np.arange(rows.size), rows)
        code = cell * folds + fold_numbers(total, folds, rng)
        return np.bincount(code, minlength=rows.size * folds).reshape(-1, folds)
    if not isinstance(rng, np.random.Generator):
        rng = np.random.default_rng(rng.randint(2**32, size=4, dtype=np.uint32))
    if total >= MAX_DRAWN:
        return rng.multinomial(rows, np.full(folds, 1.0 / folds))
    left, parts = rows.astype(np.int64), []
    for number in range(folds - 1):
        size = total // folds + (number < total % folds)
        parts.append(rng.multivariate_hypergeometric(left, size, method="marginals"))
        left = left - parts[-1]
    return np.stack([*parts, left], axis=1)


def class_fold_numbers(
    x: FloatMatrix, column: IntVector, share: FloatVector, folds: int, rng: Random
) -> IntVector:
    """Return the fold of each row of a multi-class sample.

    Rows are sorted first, by the top score, that of the true class and the other
    large ones, so that neither the order of rows nor that of classes matters.
    """
    own = x[np.arange(column.size), column]
    largest = -np.sort(-x, axis=1)[:, :MAX_KEYS]
    # Rows that are equal so far differ by a swap of classes at most: only there does
    # the order of classes count.
    swapped = (column, *x[:, :MAX_KEYS].T)
    order = np.lexsort((share, *swapped, *largest[:, :0:-1].T, own, largest[:, 0]))
    fold = np.empty(order.size, dtype=np.intp)
    fold[order] = fold_numbers(order.size, folds, rng)
    return fold


def is_past_the_best(losses: FloatVector, weights: FloatVector) -> bool:
    """Return whether losses, from simple to complex, are well past their minimum."""
    worse = (losses > CLEARLY_WORSE * losses.min() + ROUNDING) & (weights == 0.0)
    return bool(losses.size > RISES and worse[-RISES:].all())


def likelihood_weights(
    losses: FloatVector, unit: FloatVector, min_weight: float = MIN_WEIGHT
) -> FloatVector:
    """Return weights proportional to exp(-loss / unit), the smallest set to 0.

    The last axis is that of the choices.

    Examples
    --------
    >>> likelihood_weights(np.array([0.3, 0.1, 0.1]), unit=np.array([0.01]))
    array([0. , 0.5, 0.5])
    """
    least = losses.min(axis=-1, keepdims=True)
    weight = np.exp((least - losses) / np.maximum(unit, ROUNDING))
    weight = np.where(weight < min_weight, 0.0, weight)
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def brier_unit(losses: FloatVector, rows: float) -> FloatVector:
    """Return the difference of mean Brier scores for a log-likelihood ratio of 1.

    The likelihood is that of normal noise whose variance is the smallest score.

    Examples
    --------
    >>> brier_unit(np.array([0.2, 0.1]), rows=100)
    array([0.002])
    """
    least = losses.min(axis=-1, keepdims=True)
    return np.asarray(2.0 * np.maximum(least, 0.0) / rows)


def simplest_weight(losses: FloatVector, tolerance: float) -> FloatVector:
    """Return weights that are 1 at the choice of `simplest_within`, 0 elsewhere."""
    return np.asarray(
        np.arange(losses.size) == simplest_within(losses, tolerance), dtype=np.float64
    )


def simplest_within(losses: FloatVector, tolerance: float) -> int:
    """Return the first index whose loss is within `tolerance` of the smallest.

    Losses are ordered from simple to complex, so with a tolerance of 0.001 this is
    the paper's rule (appendix C.2): prefer fewer bins whenever they cost less than
    0.1 percent.

    Examples
    --------
    >>> simplest_within(np.array([0.2, 0.10005, 0.11, 0.1]), tolerance=0.001)
    1
    """
    # A perfect fit may come out a rounding error below 0.
    least = max(float(losses.min()), 0.0)
    return int(np.argmax(losses <= least * (1.0 + tolerance) + ROUNDING))
