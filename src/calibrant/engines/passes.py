"""One pass over all rows and one over those that are few, for every engine alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant.engines.cells import AggregatedCells, CellOrigin, cell_table
from calibrant.engines.collected import (
    check_usable,
    count_unusable,
    distinct_columns,
    event_of,
    grid_columns,
)
from calibrant.engines.few_rows import are_few
from calibrant.engines.groups import key_values, numbered_keys
from calibrant.engines.row_checks import RowFaults
from calibrant.engines.sql import distinct_sql, gather_sql, group_columns
from calibrant.engines.usable_rows import check_dropped
from calibrant.exceptions import InputError, Setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from calibrant.core.array_types import BoolVector
    from calibrant.engines.aggregation_spec import AggregationSpec
    from calibrant.engines.row_checks import RowRules
    from calibrant.engines.sql import Dialect
    from calibrant.engines.usable_rows import Reasons

Found: TypeAlias = "dict[str, NDArray[Any]]"
"""The columns of a query's result."""
Keys: TypeAlias = tuple[tuple[Any, ...], ...]
"""Values of the columns of groups, of each group."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the cells: values of the columns of groups, and columns of the cells."""

    by: list[list[Any]]
    columns: Found


@dataclass(frozen=True, eq=False, kw_only=True)
class Passes:
    """Queries over the rows of a table.

    Attributes
    ----------
    wanted : AggregationSpec
        What is to be gathered.
    source : str
        What queries call the rows.
    rules : RowRules
        What every row must meet.
    dialect : Dialect
        Of the engine.
    run : callable
        Gives the columns of a query's result.
    told : str
        What errors call the source.
    """

    wanted: AggregationSpec
    source: str
    rules: RowRules
    dialect: Dialect
    run: Callable[[str], Found]
    told: str

    def cells(self) -> AggregatedCells:
        """Go through the rows and return their cells."""
        query = partial(
            gather_sql,
            self.wanted,
            self.source,
            fault=self.rules.fault_sql(),
            dialect=self.dialect,
        )
        found = self.run(query())
        reasons = self._reasons(found)
        used = check_usable(self.wanted, found, told=self.told)
        if (found["low"][used] < 0.0).any() or (found["high"][used] > 1.0).any():
            found = self.run(query(held=True))  # some pass 0 or 1 by rounding
            used = check_usable(self.wanted, found, told=self.told)
        cells = self._table(self._parts(found, used), count_unusable(found))
        return replace(cells, reasons=reasons)

    def _reasons(self, found: Found) -> Reasons:
        """Return why rows are dropped; raise where they may not be."""
        unusable = count_unusable(found)
        if not unusable:
            return {}
        faults = RowFaults.count(self.rules, self.run, self.source)
        if self.wanted.bad_rows == "error":
            faults.raise_first()
            raise InputError(
                f"{self.told}: {unusable:,} rows cannot be used; pass ",
                Setting("bad_rows", "drop"),
                ".",
            )
        limit = self.wanted.max_dropped
        check_dropped(faults.reasons, faults.rows, limit, faults.ranges)
        return faults.reasons

    def _parts(self, found: Found, used: BoolVector) -> list[Part]:
        """Return the cells of large groups, and the distinct rows of small ones."""
        keys, group = self._numbered(self._by(found, used), int(used.sum()))
        rows = np.asarray(found["n_rows"])[used]
        first = event_of(found)[used] == 0
        own = np.bincount(group[first], rows[first], minlength=len(keys))
        few = are_few(own, int(rows.sum()))
        if few.all():
            return [self._distinct(set(keys), None)]
        many = used.copy()
        many[used] = ~few[group]
        parts = [Part(self._by(found, many), grid_columns(found, many))]
        if few.any():
            small = {key for key, is_few in zip(keys, few, strict=True) if is_few}
            hashes = np.asarray(found["hashed"])[used & ~many]
            parts.append(self._distinct(small, np.unique(hashes).tolist()))
        return parts

    def _distinct(self, small: set[tuple[Any, ...]], hashes: list[int] | None) -> Part:
        """Return the distinct rows of small groups; of all, without hashes."""
        query = distinct_sql(
            self.wanted,
            self.source,
            fault=self.rules.fault_sql(),
            dialect=self.dialect,
            groups=hashes,
        )
        found = self.run(query)
        used = np.ones(len(found["n_rows"]), dtype=bool)
        if hashes is not None:  # other groups may have the same hash
            keys, group = self._numbered(self._by(found, used), used.size)
            used = np.array([key in small for key in keys], dtype=bool)[group]
        return Part(self._by(found, used), distinct_columns(found, used))

    def _by(self, found: Found, used: BoolVector) -> list[list[Any]]:
        """Return the values of the columns of groups."""
        return [key_values(found[name][used]) for name in group_columns(self.wanted)]

    def _numbered(self, by: list[list[Any]], size: int) -> tuple[Keys, NDArray[Any]]:
        """Return the groups in order, and the number of that of each row."""
        if not by:
            return ((),), np.zeros(size, dtype=np.int64)
        return numbered_keys(by, self.wanted.by)

    def _table(self, parts: list[Part], dropped: int) -> AggregatedCells:
        wanted = self.wanted
        columns = {
            name: np.concatenate([part.columns[name] for part in parts])
            for name in parts[0].columns
        }
        by = [[*chain(*lists)] for lists in zip(*(p.by for p in parts), strict=True)]
        groups, columns["group"] = self._numbered(by, columns["cell"].size)
        weighted = wanted.weight is not None
        origin = CellOrigin(wanted.task, wanted.events, wanted.by, weighted)
        return cell_table(origin, groups, columns, dropped)
