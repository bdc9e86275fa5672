"""Rows of results as columns."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calibrant.core.array_types import Frame


def columns_of(rows: Sequence[Mapping[str, Any]]) -> Frame:
    """Return rows that have the same names as columns.

    Examples
    --------
    >>> columns_of([{"method": "pl", "bins": 9.0}, {"method": "es15", "bins": 15.0}])
    {'method': array(['pl', 'es15'], dtype='<U4'), 'bins': array([ 9, 15])}
    """
    names = list(dict.fromkeys(chain.from_iterable(rows)))
    columns = {name: np.array([row[name] for row in rows]) for name in names}
    if "bins" in columns and (columns["bins"] % 1 == 0).all():
        columns["bins"] = columns["bins"].astype(int)  # a mean over classes is not
    return columns
