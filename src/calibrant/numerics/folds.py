"""Folds for cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import (
        FloatMatrix,
        FloatVector,
        IntMatrix,
        IntVector,
    )


def fold_numbers(
    n: int, folds: int, rng: np.random.RandomState | np.random.Generator
) -> IntVector:
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


MAX_SHUFFLED = 2**22
"""Up to this many rows that were gathered get the folds that they had as rows."""
MAX_DRAWN = 10**9
"""NumPy draws without replacement from fewer rows than this."""


def fold_counts(
    rows: IntVector, folds: int, rng: np.random.RandomState | np.random.Generator
) -> IntMatrix:
    """Return how many of the rows of each cell are in each fold, shape (m, folds).

    As if all rows were shuffled: counts are drawn without replacement, so that sizes
    of folds differ by one at most. Beyond a billion rows each row falls into any fold
    by itself, which nobody could tell from that.

    Examples
    --------
    >>> counts = fold_counts(np.array([5, 1, 0]), 2, np.random.RandomState(1))
    >>> counts.sum(axis=1), counts.sum(axis=0)
    (array([5, 1, 0]), array([3, 3]))
    """
    total = int(rows.sum())
    if total <= MAX_SHUFFLED:
        cell = np.repeat(np.arange(rows.size), rows)
        code = cell * folds + fold_numbers(total, folds, rng)
        return np.bincount(code, minlength=rows.size * folds).reshape(-1, folds)
    draw = _generator(rng)
    if total >= MAX_DRAWN:
        return draw.multinomial(rows, np.full(folds, 1.0 / folds))
    left, parts = rows.astype(np.int64), []
    for number in range(folds - 1):
        size = total // folds + (number < total % folds)
        parts.append(draw.multivariate_hypergeometric(left, size, method="marginals"))
        left = left - parts[-1]
    return np.stack([*parts, left], axis=1)


def _generator(
    rng: np.random.RandomState | np.random.Generator,
) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(rng.randint(2**32, size=4, dtype=np.uint32))


MAX_KEYS = 10
"""Rows whose ten largest scores are all equal count as equal."""


def class_fold_numbers(
    x: FloatMatrix,
    column: IntVector,
    share: FloatVector,
    folds: int,
    rng: np.random.RandomState | np.random.Generator,
) -> IntVector:
    """Return the fold of each row of a multi-class sample.

    Rows are sorted first, by the top score, that of the class that happened and the
    other large ones, so that neither the order of rows nor that of classes matters.
    """
    own = x[np.arange(column.size), column]
    largest = -np.sort(-x, axis=1)[:, :MAX_KEYS]
    # What is equal so far differs by a swap of classes at most: only there does their
    # order count.
    swapped = (column, *x[:, :MAX_KEYS].T)
    order = np.lexsort((share, *swapped, *largest[:, :0:-1].T, own, largest[:, 0]))
    fold = np.empty(order.size, dtype=np.intp)
    fold[order] = fold_numbers(order.size, folds, rng)
    return fold
