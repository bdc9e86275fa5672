"""Folds for cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant._typing import FloatMatrix, FloatVector, IntVector


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


def class_fold_numbers(
    x: FloatMatrix,
    column: IntVector,
    share: FloatVector,
    folds: int,
    rng: np.random.RandomState | np.random.Generator,
) -> IntVector:
    """Return the fold of each row of a multi-class sample.

    Rows are sorted first, by the top score and by that of the class that happened, so
    that neither the order of rows nor that of classes matters.
    """
    own = x[np.arange(column.size), column]
    order = np.lexsort((share, own, x.max(axis=1)))
    fold = np.empty(order.size, dtype=np.intp)
    fold[order] = fold_numbers(order.size, folds, rng)
    return fold
