"""Tables of any size in files, through DuckDB: one pass, in little memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant.core.scales import precision_of
from calibrant.engines.collected import count_unusable
from calibrant.engines.duckdb_sources import (
    KEY,
    ParquetFiles,
    RelationSource,
    connect,
    literal,
    load_duckdb,
    reading,
)
from calibrant.engines.duckdb_text import JsonLines, SeparatedFiles
from calibrant.engines.groups import plain_keys
from calibrant.engines.passes import Passes
from calibrant.engines.prepared import comparable, label_cases, prepared_columns
from calibrant.engines.row_checks import check_some_numbers, row_rules
from calibrant.engines.source_files import FileSet
from calibrant.engines.sql import Dialect, number
from calibrant.engines.usable_rows import LINES_REASON, check_dropped
from calibrant.exceptions import (
    InputError,
    MissingDependencyError,
    Setting,
    SourceError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from calibrant.engines.aggregation_spec import (
        AggregationSpec,
        BadRows,
        WatchedModel,
    )
    from calibrant.engines.cells import AggregatedCells
    from calibrant.engines.duckdb_sources import Source
    from calibrant.engines.sql import Event

    SourceOfFiles: TypeAlias = ParquetFiles | JsonLines | SeparatedFiles


class WrongGuessError(Exception):
    """Columns hold something else than their first rows."""


@dataclass(frozen=True, eq=False)
class DuckDBTable:
    """Rows that DuckDB reads.

    Attributes
    ----------
    source : Source
        Where they are.
    """

    source: Source

    @property
    def told(self) -> str:
        """Return what errors call the source."""
        return self.source.told

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns that there are, in order."""
        with reading(self.told):
            return self.source.names

    @property
    def all_names(self) -> tuple[str, ...]:
        """Return the columns of all rows, which may take a look at all of them."""
        with reading(self.told):
            return self.source.all_names

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column is not there, or lacks in some of the files."""
        with reading(self.told):
            self.source.check_columns(names)

    def dtype_example(self, name: str) -> NDArray[Any]:
        """Return an empty array of the type that a column of labels holds."""
        return np.empty(0, dtype=self._kind(name))

    def contains(self, name: str, value: Any) -> bool:
        """Tell whether a column holds a value."""
        if not comparable([value], self.dtype_example(name)):
            return False
        column = self.source.select([(name, self._kind(name))])
        equal = f"SELECT 1 AS one FROM ({column}) WHERE c_0 = {literal(value)} LIMIT 1"
        with reading(self.told):
            return bool(self.source.run(equal)["one"].size)

    def _kind(self, name: str) -> str:
        self.check_columns([name])
        with reading(self.told):
            return self.source.kind_of_few(name)

    def aggregate(self, wanted: AggregationSpec) -> AggregatedCells:
        """Go once through the rows and return their cells."""
        weights = () if wanted.weight is None else (wanted.weight,)
        numbers = (*wanted.columns, *weights)
        self.check_columns([wanted.y, *numbers, *wanted.by])
        with reading(self.told):
            guessed = self.source.guess(wanted.y, numbers)
        try:
            return TypedRows(self.source, guessed, wanted, sure=False).cells()
        except WrongGuessError:
            with reading(self.told):
                kinds = self.source.kinds(list(guessed))
            return TypedRows(self.source, kinds, wanted).cells()


@dataclass(frozen=True, eq=False)
class TypedRows:
    """The rows of a source, read as a gathering wants them.

    Attributes
    ----------
    source : Source
        Where they are.
    kinds : mapping
        What the columns of labels, predictions and weights are read as.
    wanted : AggregationSpec
        What is to be gathered.
    sure : bool
        Whether all values of these columns are known to be that.
    """

    source: Source
    kinds: Mapping[str, str]
    wanted: AggregationSpec
    sure: bool = True

    def cells(self) -> AggregatedCells:
        """Go once through the rows and return their cells."""
        wanted = self.wanted
        try:
            check_some_numbers(self, wanted, numbers_as_text=wanted.bad_rows == "drop")
        except InputError:  # about a file that may not be what it seems
            if self.sure:
                raise
            raise WrongGuessError from None
        precision = {
            name: precision_of(self.dtype_example(name).dtype)
            for name in wanted.columns
        }
        passes = Passes(
            wanted=wanted,
            source=self._prepared(),
            rules=row_rules(wanted, precision),
            dialect=Dialect(_exploded, "HASH"),
            run=lambda query: self._read_groups(self._run(query)),
            told=self.source.told,
        )
        cells = passes.cells()
        groups = plain_keys(cells.groups) if self.source.is_text else cells.groups
        return self._without_lines(replace(cells, groups=groups))

    def _without_lines(self, cells: AggregatedCells) -> AggregatedCells:
        """Count lines of a text file that are no rows among those dropped."""
        lines = self.source.lines_left_out()
        if not lines:
            return cells
        reasons = cells.reasons | {LINES_REASON: lines}
        dropped = cells.dropped + lines
        check_dropped(reasons, cells.n + dropped, self.wanted.max_dropped)
        return replace(cells, dropped=dropped, reasons=reasons)

    def dtype_example(self, name: str) -> NDArray[Any]:
        """Return an empty array of the type that a column is read as."""
        return np.empty(0, dtype=self.kinds[name])

    def distinct(self, name: str, most: int) -> list[Any]:
        """Return some of the distinct values of a column, in order."""
        column = self.source.select([(name, self.kinds[name])])
        query = f"SELECT DISTINCT c_0 FROM ({column}) WHERE c_0 IS NOT NULL"
        return sorted(self._run(f"{query} LIMIT {most}")["c_0"].tolist(), key=str)

    def _run(self, query: str) -> dict[str, NDArray[Any]]:
        with reading(self.source.told):
            return self.source.run(query)

    def _read_groups(self, found: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return a query's result with the values of groups as they are meant."""
        if not self.sure and "cell" in found and count_unusable(found):
            self._check_guess()
        keys = {f"by_{place}": name for place, name in enumerate(self.wanted.by)}
        return {
            name: self.source.key_values(keys[name], v) if name in keys else v
            for name, v in found.items()
        }

    def _check_guess(self) -> None:
        """Raise where rows cannot be used because columns hold something else."""
        with reading(self.source.told):
            kinds = self.source.kinds(list(self.kinds))
        if self.wanted.bad_rows == "drop":  # whole numbers are numbers
            kinds = {name: kind.replace("i", "f") for name, kind in kinds.items()}
        if kinds != self.kinds:
            raise WrongGuessError

    def _prepared(self) -> str:
        """Return the query for rows with names of our own, as `sql` reads them."""
        by = self.wanted.by
        chosen = prepared_columns(
            self.wanted,
            column=self._column,
            key=lambda name: Sql(f"c_{len(self.kinds) + by.index(name)}"),
            number=self._number,
            label_code=self._code,
        )
        columns = [*self.kinds.items(), *((name, KEY) for name in by)]
        return f"(SELECT {', '.join(chosen)} FROM ({self.source.select(columns)}))"

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.kinds)}

    def _column(self, name: str) -> Sql:
        return Sql(f"c_{self._place[name]}")

    def _number(self, name: str) -> Sql:
        """Return a column as numbers; text that is none is missing."""
        cast = "TRY_CAST" if self.kinds[name] == "U1" else "CAST"
        return Sql(f"{cast}({self._column(name)} AS DOUBLE)")

    def _code(self, model: WatchedModel) -> Sql:
        """Return the number of the label's class."""
        name = self.wanted.y
        cases = label_cases(self.wanted, model, self.dtype_example(name))
        if cases is None:
            return self._number(name)
        label = self._column(name)
        known = [
            f"WHEN {label} = {literal(v)} THEN {number(k)}" for v, k in cases.known
        ]
        other = f"WHEN {label} IS NOT NULL THEN {number(cases.otherwise)}"
        return Sql(f"CASE {' '.join([*known, other])} END")


class Sql(str):
    """An expression of SQL that can be given a name."""

    __slots__ = ()

    def alias(self, name: str) -> str:
        """Return the expression with a name."""
        return f"{self} AS {name}"


def open_duckdb(source: Any, *, bad_rows: BadRows = "error") -> DuckDBTable:
    """Open files, a data frame or a DuckDB relation."""
    duckdb = load_duckdb()
    if isinstance(source, duckdb.DuckDBPyRelation):
        return DuckDBTable(RelationSource(source, "the relation"))
    if not isinstance(source, FileSet):
        return DuckDBTable(_of_frame(source))
    return DuckDBTable(open_in_place(source, bad_rows=bad_rows))


def open_in_place(files: FileSet, *, bad_rows: BadRows = "error") -> SourceOfFiles:
    """Open files by a connection of our own."""
    connection = connect()
    if files.kind == "parquet":
        return ParquetFiles(connection, files)
    if files.kind == "json":
        return JsonLines(connection, files)
    return SeparatedFiles(connection, files, bad_rows == "drop")


def _of_frame(source: Any) -> RelationSource:
    import narwhals as nw

    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    is_polars = isinstance(frame, nw.DataFrame) and frame.implementation.is_polars()
    native = nw.to_native(frame, pass_through=True)
    without_pyarrow = is_polars and find_spec("pyarrow") is None
    connection = connect()
    try:
        connection.register(
            "calibrant_frame", ArrowStream(native) if without_pyarrow else native
        )
    except load_duckdb().Error:
        if without_pyarrow:
            raise MissingDependencyError(
                "this version of DuckDB needs pyarrow to read a polars data frame; "
                "install it with: pip install pyarrow, or pass ",
                Setting("engine", "memory"),
                ".",
            ) from None
        raise SourceError(
            f"source must be a path, a data frame or a relation; got "
            f"{type(source).__name__}."
        ) from None
    relation = connection.table("calibrant_frame")
    names = tuple(frame.columns) if isinstance(frame, nw.DataFrame) else ()
    return RelationSource(relation, "the data frame", connection, names)


@dataclass(frozen=True, eq=False)
class ArrowStream:
    """A data frame of which nothing is known but that it speaks Arrow."""

    frame: Any

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.frame.__arrow_c_stream__(requested_schema)


def _exploded(events: list[Event]) -> str:
    parts = (f"{{'event': {e.number}, 'p': {e.p}, 'y': {e.y}}}" for e in events)
    return f"UNNEST([{', '.join(parts)}], recursive := true)"
