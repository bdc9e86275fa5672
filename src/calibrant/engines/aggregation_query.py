"""The queries that aggregate a table, and their results as cells; for SQL engines.

One query goes over all rows, a second one over those that are few and kept exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant.core.labels import check_label_values
from calibrant.core.scales import precision_of_columns
from calibrant.core.weights import check_total, no_weight
from calibrant.core.wording import MEASURE_WORDING
from calibrant.engines.aggregation_sql import (
    UNUSABLE,
    WEIGHTLESS,
    aggregation_sql,
    code,
    distinct_sql,
    group_columns,
)
from calibrant.engines.cells import AggregatedCells, CellOrigin, exact_columns
from calibrant.engines.groups import (
    Group,
    key_values,
    numbered_keys,
    warn_of_weightless,
)
from calibrant.engines.memory import MemoryTable
from calibrant.engines.row_checks import (
    check_dropped,
    count_reasons,
    raise_first,
    row_faults,
)
from calibrant.engines.sql_row_checks import fault_sql
from calibrant.exceptions import (
    DROP_ROWS,
    EmptyInputError,
    InputError,
    MissingValueError,
    OptionError,
    Setting,
)
from calibrant.numerics.cell_grid import cell_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant.core.array_types import BoolVector
    from calibrant.engines.aggregation_spec import AggregationSpec
    from calibrant.engines.groups import Keys
    from calibrant.engines.row_checks import Reasons, ScaleEvidence
    from calibrant.engines.sql_tables import TypedRows

Columns: TypeAlias = "dict[str, NDArray[Any]]"
Part: TypeAlias = tuple[list[list[Any]], Columns]
"""Some of the cells: values of the columns of groups, and columns of the cells."""
MAX_INVALID_VALUES = 2**22
"""How many values of distinct invalid rows are examined to say what is wrong."""
REST = "for reasons that were not counted"
"""The reason that is given for further invalid rows."""
MAX_OF_CLUSTERS = 2**21
"""Combinations of cluster and cell that are returned at most: some 500 MB."""
GRID_COLUMNS = {"n_rows": "rows", "near_end": "near"}
"""Columns of cells that have another name in queries."""


@dataclass(frozen=True, eq=False)
class GridResult:
    """The columns of the result of `aggregation_sql`."""

    columns: Columns

    def __getitem__(self, name: str) -> NDArray[Any]:
        return np.asarray(self.columns[name])

    @cached_property
    def event(self) -> NDArray[Any]:
        """Return the number of each cell's event."""
        return event_numbers(self.columns)

    @cached_property
    def used(self) -> BoolVector:
        """Return which cells contain valid rows that have weight."""
        return np.asarray((self["cell"] != UNUSABLE) & (self["cell"] != WEIGHTLESS))

    @property
    def n_rows(self) -> int:
        """Return the number of all rows."""
        return int(self["n_rows"][self.event == 0].sum())

    @property
    def n_invalid(self) -> int:
        """Return the number of invalid rows."""
        invalid = (self["cell"] == UNUSABLE) & (self.event == 0)
        return int(self["n_rows"][invalid].sum())

    def cell_columns(self, which: BoolVector) -> Columns:
        """Return the columns of some of the cells."""
        columns = {
            GRID_COLUMNS.get(name, name): self[name][which]
            for name in self.columns
            if name not in ("cell", "hashed") and not name.startswith(("by_", "other_"))
        }
        columns["event"] = self.event[which]
        columns["cell"] = cell_numbers(columns["low"])
        return columns


def event_numbers(columns: Columns) -> NDArray[Any]:
    """Return the number of each row's event; a query for one event has no column."""
    return np.asarray(columns.get("event", np.zeros(len(columns["n_rows"]), np.int64)))


@dataclass(frozen=True, eq=False)
class AggregationQuery:
    """Queries over the rows of a table."""

    rows: TypedRows

    @property
    def spec(self) -> AggregationSpec:
        """Return what is to be aggregated."""
        return self.rows.spec

    @cached_property
    def source(self) -> str:
        """Return what queries call the rows."""
        return self.rows.source_query()

    @cached_property
    def fault(self) -> str:
        """Return a number that is 0 for valid rows."""
        dtype = {n: self.rows.dtype_example(n).dtype for n in self.spec.columns}
        own = ([dtype[name] for name in model.columns] for model in self.spec.models)
        return fault_sql(
            self.spec,
            [precision_of_columns(types) for types in own],
            nan_clusters=self.rows.source.may_be_nan(self.spec.cluster),
        )

    def cells(self) -> AggregatedCells:
        """Go through the rows and return their cells."""
        result = self._aggregated()
        reasons = self._reasons(result)
        self._check_usable(result)
        self._warn_of_weightless(result)
        low, high = result["low"][result.used], result["high"][result.used]
        if (low < 0.0).any() or (high > 1.0).any():  # by rounding
            result = self._aggregated(clip=True)
        parts = self._parts(result)
        columns = {
            name: np.concatenate([columns[name] for _, columns in parts])
            for name in parts[0][1]
        }
        by = [[*chain(*lists)] for lists in zip(*(by for by, _ in parts), strict=True)]
        size = columns["cell"].size
        groups, columns["group"] = numbered_keys(by, self.spec.by, size)
        origin, dropped = CellOrigin.of(self.spec), result.n_invalid
        cells = AggregatedCells.of_columns(origin, groups, columns, dropped)
        weightless = result.n_rows - cells.n_read
        return replace(cells, reasons=reasons, weightless=weightless)

    def _aggregated(self, *, clip: bool = False) -> GridResult:
        dialect = self.rows.source.dialect
        query = aggregation_sql(self.spec, self.source, self.fault, dialect, clip=clip)
        if self.spec.cluster is None:
            return GridResult(self.rows.run(query))
        result = GridResult(self.rows.run(f"{query} LIMIT {MAX_OF_CLUSTERS + 1}"))
        self._check_clusters(result)
        return result

    def _check_clusters(self, result: GridResult) -> None:
        """Raise where clusters are missing, or too many to be returned."""
        name = f"column {self.spec.cluster!r}"
        if len(result["cell"]) > MAX_OF_CLUSTERS:
            raise OptionError(
                f"{self.rows.source.display_name}: {name} has too many clusters to "
                f"keep apart; the rows have more than {MAX_OF_CLUSTERS:,} combinations "
                "of cluster and cell of predictions. "
                "Pass whole clusters, chosen at random, that have fewer rows together."
            )
        last = group_columns(self.spec)[-1]
        if None in key_values(result[last][result.used]):
            raise MissingValueError.of(
                name,
                "must not contain missing values",
                "some rows have none",
                DROP_ROWS,
            )

    def _reasons(self, result: GridResult) -> Reasons:
        """Return why rows are dropped; raise where they may not be."""
        if not result.n_invalid:
            return {}
        self.rows.check_guess()
        spec, invalid, total = self.spec, result.n_invalid, result.n_rows
        may_drop = spec.bad_rows == "drop" and invalid <= spec.max_dropped * total
        table, counts = self._invalid_rows(all_of_them=may_drop)
        ranges: list[ScaleEvidence] = []
        share = counts.sum() / invalid
        faults = list(row_faults(table, spec, ranges, counts / share))
        ranges = [self._with_valid(one, result) for one in ranges]
        if spec.bad_rows == "error":
            raise_first(faults, ranges, counts, invalid=invalid, total=total)
            raise InputError(
                f"{self.rows.source.display_name}: {invalid:,} rows cannot be used; "
                "pass ",
                Setting("bad_rows", "drop"),
                ".",
            )
        reasons, _ = count_reasons(faults, counts)
        if rest := invalid - sum(reasons.values()):
            reasons[REST] = rest
        check_dropped(reasons, total, spec.max_dropped, ranges)
        return reasons

    def _invalid_rows(self, *, all_of_them: bool) -> tuple[MemoryTable, NDArray[Any]]:
        """Return distinct invalid rows, and how many there are of each.

        Without `all_of_them`, only the first ones, as there may be very many.
        """
        spec = self.spec
        names = {f"x_{place}": name for place, name in enumerate(spec.columns)}
        names["label"] = spec.y
        if spec.weight is not None:
            names["w"] = spec.weight
        if spec.cluster is not None:
            names[group_columns(spec)[-1]] = spec.cluster
        labels = {code(place): m.labels for place, m in enumerate(spec.models)}
        labels = {name: known for name, known in labels.items() if known}
        chosen = ", ".join([*names, *labels])
        limit = f"LIMIT {MAX_INVALID_VALUES // len(names)}"
        invalid = f"WHERE NOT COALESCE({self.fault} = 0, FALSE)"
        rows = f"SELECT {chosen} FROM {self.source} {invalid}"
        rows = rows if all_of_them else f"{rows} {limit}"
        found = self.rows.run(
            f"SELECT {chosen}, COUNT(*) AS n_rows FROM ({rows}) "
            f"GROUP BY {chosen} {limit}"
        )
        columns = {}
        for own, name in names.items():
            if own.startswith("x_"):  # as exact as they were
                kind = self.rows.dtype_example(name).dtype
                values = np.ma.filled(found[own].astype(np.float64), np.nan)
                columns[name] = values.astype(kind) if kind.kind == "f" else values
            else:
                columns[name] = np.fromiter(key_values(found[own]), dtype=object)
        # Engines may return a label as another value than the user's.
        for name, known in labels.items():
            number = np.ma.filled(found[name].astype(np.float64), -1.0)
            for row in np.flatnonzero(number >= 0.0):
                columns[spec.y][row] = known[int(number[row])]
        counts = np.asarray(found["n_rows"]).astype(np.int64)
        return MemoryTable(tuple(columns), columns.__getitem__), counts

    def _with_valid(self, one: ScaleEvidence, result: GridResult) -> ScaleEvidence:
        """Return what all predictions of a model look like, given the invalid ones."""
        names = {model.name for model in self.spec.models if str(model) == one.name}
        own = [i for i, (name, _) in enumerate(self.spec.events) if name in names]
        of_model = result.used & np.isin(result.event, own)
        extremes = np.concatenate([result[name][of_model] for name in ("low", "high")])
        rows = result.n_rows - result.n_invalid
        return replace(one, summary=one.summary.and_valid(rows, extremes, one.scale))

    def _check_usable(self, result: GridResult) -> None:
        """Raise where no row can be used, or labels or weights as a whole cannot."""
        used = result.used
        if not used.any():
            raise self._empty_error(result)
        if self.spec.compares_labels:
            self._check_two_labels(result)
        if self.spec.weight is not None:
            weight, first = result["weight"][used], result.event[used] == 0
            check_total(
                float(weight[first].sum()),
                float(np.max(weight / result["n_rows"][used])),
                name=f"column {self.spec.weight!r}",
            )

    def _warn_of_weightless(self, result: GridResult) -> None:
        """Warn of groups whose valid rows all have weight 0."""
        by = CellOrigin.of(self.spec).group_columns
        if self.spec.weight is None or not by:
            return
        names = group_columns(self.spec)[: len(by)]
        columns = [key_values(result.columns[name]) for name in names]
        keys, group = numbered_keys(columns, by)
        valid = np.bincount(group, result["cell"] != UNUSABLE, len(keys))
        weighted = np.bincount(group, result.used, len(keys))
        warn_of_weightless(
            [
                Group(dict(zip(by, keys[place], strict=True)), slice(None))
                for place in np.flatnonzero((valid > 0.0) & (weighted == 0.0))
            ]
        )

    def _empty_error(self, result: GridResult) -> InputError:
        rows, invalid = result.n_rows, result.n_invalid
        if rows > invalid:
            return no_weight(rows, name=f"column {self.spec.weight!r}")
        none = f"none of its {invalid:,} rows can be used"
        return EmptyInputError.of(
            self.rows.source.display_name,
            "must have at least one row that can be used",
            none if invalid else "it has no rows",
        )

    def _check_two_labels(self, result: GridResult) -> None:
        others = {
            value
            for name in ("other_low", "other_high")
            for value in key_values(result.columns[name][result.used])
            if value is not None
        }
        some_events = result["event_rows"][result.used].sum() > 0
        check_label_values(
            [*sorted(others), *([self.spec.pos_label] if some_events else [])],
            pos_label=self.spec.pos_label,
            wording=replace(MEASURE_WORDING, label=f"column {self.spec.y!r}"),
        )

    def _parts(self, result: GridResult) -> list[Part]:
        """Return the cells of large groups, and the distinct rows of small ones."""
        used = result.used
        keys, group = self._numbered(result.columns, used)
        rows, first = result["n_rows"][used], result.event[used] == 0
        own = np.bincount(group[first], rows[first], minlength=len(keys))
        exact = self.spec.limits.keeps(own, int(rows.sum()))
        if exact.all():
            return [self._distinct(set(keys), None)]
        many = used.copy()
        many[used] = ~exact[group]
        parts = [(self._by(result.columns, many), result.cell_columns(many))]
        if exact.any():
            small = {key for key, few in zip(keys, exact, strict=True) if few}
            hashes = result["hashed"][used & ~many]
            parts.append(self._distinct(small, np.unique(hashes).tolist()))
        return parts

    def _distinct(self, small: set[tuple[Any, ...]], hashes: list[int] | None) -> Part:
        """Return the distinct rows of small groups; without hashes, of all."""
        dialect = self.rows.source.dialect
        query = distinct_sql(self.spec, self.source, self.fault, dialect, groups=hashes)
        columns = self.rows.run(query)
        used = np.ones(len(columns["n_rows"]), dtype=bool)
        if hashes is not None:  # other groups may have the same hash
            keys, group = self._numbered(columns, used)
            used = np.array([key in small for key in keys], dtype=bool)[group]
        p, rows, event_rows = (
            np.asarray(columns[name])[used] for name in ("p", "n_rows", "event_rows")
        )
        weight = np.asarray(columns["w"])[used] if "w" in columns else None
        counts = rows.astype(np.int64), event_rows.astype(np.int64)
        kept = exact_columns(p, *counts, weight)
        kept["event"] = event_numbers(columns)[used]
        return self._by(columns, used), kept

    def _by(self, columns: Columns, used: BoolVector) -> list[list[Any]]:
        """Return the values of the columns of groups."""
        return [key_values(columns[name][used]) for name in group_columns(self.spec)]

    def _numbered(
        self, columns: Columns, used: BoolVector
    ) -> tuple[Keys, NDArray[Any]]:
        """Return the groups in order, and the number of the group of each row."""
        return numbered_keys(self._by(columns, used), self.spec.by, int(used.sum()))
