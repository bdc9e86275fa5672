"""Predictions of several classes, reduced to those of one event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector


def event_of_class(
    prob: FloatMatrix, column: IntVector, which: int | None
) -> tuple[FloatVector, FloatVector]:
    """Return the predictions of a class, and whether it happened; None: the top class.

    Of classes with the same probability the first is on top.

    Examples
    --------
    >>> prob, column = np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([1, 1])
    >>> event_of_class(prob, column, None)
    (array([0.5, 0.8]), array([0., 1.]))
    """
    if which is not None:
        return np.ascontiguousarray(prob[:, which]), (column == which).astype(float)
    top = prob.argmax(axis=1)
    confidence = prob[np.arange(top.size), top]
    return confidence, (top == column).astype(np.float64)
