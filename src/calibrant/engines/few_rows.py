"""Few rows are kept as they are; many are gathered into the cells of the grid.

What is few depends on numbers of rows alone, and more rows never turn many into few. So
parts that were gathered one by one end, added up, as the whole does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.numerics.cell_grid import cell_numbers
from calibrant.numerics.weighted_points import MAX_EXACT_ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant.core.array_types import BoolVector, FloatVector, IntVector

FEW_IN_GROUP = MAX_EXACT_ROWS
"""A group of at most so many rows is kept: methods look at its rows one by one."""
FEW_IN_TABLE = 2**21
"""A table of at most so many rows, those of each event counted, is kept as well."""
FEW_IN_ALL_GROUPS = 2**21
"""Kept groups have no more rows than that together, however many groups there are."""


def are_few(rows: IntVector, total: int) -> BoolVector:
    """Tell of each group whether its rows are kept.

    Parameters
    ----------
    rows : ndarray of shape (groups,)
        Rows of each group.
    total : int
        Rows of the table, those of each event counted.

    Returns
    -------
    ndarray of shape (groups,)

    Examples
    --------
    >>> are_few(np.array([3_000_000, 500]), 3_000_500)
    array([False,  True])
    >>> are_few(np.full(10_000, 50_000), 500_000_000).any()  # would be too many
    np.False_
    """
    if total <= FEW_IN_TABLE:
        return np.ones(rows.size, dtype=bool)
    # The more groups, the fewer rows of each: neither number falls when tables add up.
    events = total / rows.sum()
    share = FEW_IN_ALL_GROUPS / (rows.size * events)
    return np.asarray(rows <= min(FEW_IN_GROUP, share))


def kept_columns(
    p: FloatVector,
    rows: IntVector,
    happened: IntVector,
    weight: FloatVector | None,
) -> dict[str, NDArray[Any]]:
    """Return the columns of cells that each hold rows which are alike.

    Parameters
    ----------
    p : ndarray of shape (m,)
        Prediction of the rows.
    rows, happened : ndarray of shape (m,)
        Their number, and of how many the event happened.
    weight : ndarray of shape (m,) or None
        Weight of each of them.

    Returns
    -------
    dict of ndarray
        As the columns of a table of cells.

    Examples
    --------
    >>> kept = kept_columns(np.array([0.25]), np.array([3]), np.array([1]), None)
    >>> {name: values.tolist() for name, values in kept.items() if name != "cell"}
    {'rows': [3], 'happened': [1], 'near': [0.75], 'low': [0.25], 'high': [0.25]}
    """
    near = rows * np.minimum(p, 1.0 - p)
    columns = {
        "cell": cell_numbers(p),
        "rows": rows,
        "happened": happened,
        "near": near if weight is None else weight * near,
        "low": p,
        "high": p,
    }
    if weight is not None:
        columns["weight"] = weight * rows
        columns["weight_happened"] = weight * happened
        columns["weight_squared"] = weight**2 * rows
    return columns
