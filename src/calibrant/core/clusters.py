"""Clusters: rows that belong together, and the sums by which dependence is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.labels import is_missing
from calibrant.exceptions import DROP_ROWS, MissingValueError, OptionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums over clusters, by cells of predictions.

    They add up over data that share no cluster, if the cells are those of one grid.
    """

    p: FloatVector  # mean prediction of each cell
    # sum of weights and of weighted labels of each cell
    weight: FloatVector
    label_sum: FloatVector
    # products of the sums that a cluster has in two cells, summed over clusters: of
    # weights, of labels (row) and weights (column), and of labels
    weights: FloatMatrix
    mixed: FloatMatrix
    labels: FloatMatrix
    # sums over clusters of the second and fourth power of their sum of label less
    # prediction
    second: float
    fourth: float
    count: int  # number of clusters


def cluster_codes(values: NDArray[Any], *, name: str) -> IntVector:
    """Return a number for each row, the same for rows of one cluster.

    Examples
    --------
    >>> cluster_codes(np.array(["b", "a", "b"]), name="clusters")
    array([0, 1, 0])
    """
    first: dict[Any, int] = {}
    try:
        codes = [first.setdefault(value, len(first)) for value in values.tolist()]
    except TypeError:
        raise OptionError(
            f"{name} must contain simple values (text, numbers or dates), the same for "
            "rows that belong together."
        ) from None
    missing = next((value for value in first if is_missing(value)), first)
    if missing is not first:
        row = codes.index(first[missing])
        raise MissingValueError.of(
            name,
            "must not contain missing values",
            f"row {row} has no value",
            DROP_ROWS,
            place=(row,),
            value=missing,
        )
    return np.array(codes, dtype=np.intp)
