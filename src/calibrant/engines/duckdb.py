"""Tables of any size through DuckDB: one pass, in little memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant.core.output_files import atomic_write
from calibrant.core.row_rules import precision_of
from calibrant.engines.aggregation_query import AggregationQuery
from calibrant.engines.aggregation_sql import (
    Dialect,
    label_cases,
    labels_of_type,
    number,
    source_columns,
)
from calibrant.engines.dropped_rows import LINES_REASON, check_dropped
from calibrant.engines.duckdb_sources import (
    KEY,
    ParquetFiles,
    RelationSource,
    connect,
    literal,
    load_duckdb,
    quoted,
)
from calibrant.engines.duckdb_text import JsonFiles, SeparatedFiles
from calibrant.engines.files import PARQUET, SEPARATORS, FileSet, check_writable
from calibrant.engines.groups import plain_keys
from calibrant.engines.row_checks_sql import (
    RowFaults,
    check_some_numbers,
    prediction_rules,
    sql_row_checks,
)
from calibrant.exceptions import (
    InputError,
    MissingDependencyError,
    OptionError,
    Setting,
    SourceError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from calibrant.engines.aggregation_spec import (
        AggregationSpec,
        BadRows,
        ModelColumns,
    )
    from calibrant.engines.aggregation_sql import Event
    from calibrant.engines.cells import AggregatedCells
    from calibrant.engines.duckdb_sources import FileSource, Source

NO_PROBABILITY = "no probability"
SCORE = "calibrant_score"


class WrongGuessError(Exception):
    """Columns contain something else than their first rows."""


@dataclass(frozen=True, eq=False)
class DuckDBTable:
    """Rows that DuckDB reads from a source."""

    source: Source

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns, in order."""
        return self.source.names

    @property
    def all_names(self) -> tuple[str, ...]:
        """Return the columns of all rows, for which all may have to be read."""
        return self.source.all_names

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column does not exist, or is missing from some of the files."""
        self.source.check_columns(names)

    def dtype_example(self, name: str) -> NDArray[Any]:
        """Return an empty array of the type of a column of labels."""
        self.check_columns([name])
        return np.empty(0, dtype=self.source.kind_of_few(name))

    def contains(self, name: str, value: Any) -> bool:
        """Tell whether a column contains a value."""
        if not labels_of_type([value], self.dtype_example(name)):
            return False
        column = self.source.select([(name, self.source.kind_of_few(name))])
        query = f"SELECT 1 AS one FROM ({column}) WHERE c_0 = {literal(value)}"
        return bool(self.source.run(f"{query} LIMIT 1")["one"].size)

    def aggregate(self, spec: AggregationSpec) -> AggregatedCells:
        """Go once through the rows and return their cells."""
        self.check_columns([spec.y, *spec.numbers, *spec.by])
        guessed = self.source.guess(spec.y, spec.numbers)
        try:
            return TypedRows(self.source, guessed, spec, sure=False).cells()
        except WrongGuessError:
            kinds = self.source.kinds(list(guessed))
            return TypedRows(self.source, kinds, spec).cells()


@dataclass(frozen=True, eq=False)
class TypedRows:
    """The rows of a source, with columns of labels, predictions and weights as `kinds`.

    It is `sure` if all values of these columns are known to be of their kind.
    """

    source: Source
    kinds: Mapping[str, str]
    spec: AggregationSpec
    sure: bool = True

    def cells(self) -> AggregatedCells:
        """Go once through the rows and return their cells."""
        spec = self.spec
        try:
            check_some_numbers(self, spec, numbers_as_text=spec.bad_rows == "drop")
        except InputError:  # about a file that may not be what it seems
            if self.sure:
                raise
            raise WrongGuessError from None
        precision = {
            name: precision_of(self.dtype_example(name).dtype) for name in spec.columns
        }
        query = AggregationQuery(
            spec=spec,
            source=self._source_query(),
            rules=sql_row_checks(spec, precision),
            dialect=Dialect(_unnest, "HASH"),
            run=self._run,
            display_name=self.source.display_name,
            on_invalid=None if self.sure else self._check_guess,
        )
        cells = query.cells()
        if self.source.is_text:
            cells = replace(cells, groups=plain_keys(cells.groups))
        lines = self.source.lines_left_out()
        if not lines:
            return cells
        reasons = cells.reasons | {LINES_REASON: lines}
        dropped = cells.dropped + lines
        check_dropped(reasons, cells.n_read + lines, spec.max_dropped)
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
        """Return a query's result, with the values of groups as they are meant."""
        columns = self.source.run(query)
        for place, name in enumerate(self.spec.by):
            key = f"by_{place}"
            if key in columns:
                columns[key] = self.source.key_values(name, columns[key])
        return columns

    def _check_guess(self) -> None:
        """Raise where rows are invalid because columns contain something else."""
        kinds = self.source.kinds(list(self.kinds))
        if self.spec.bad_rows == "drop":  # whole numbers are numbers
            kinds = {name: kind.replace("i", "f") for name, kind in kinds.items()}
        if kinds != self.kinds:
            raise WrongGuessError

    def _source_query(self) -> str:
        """Return the query for rows with names of our own, as `sql` reads them."""
        by = self.spec.by
        chosen = source_columns(
            self.spec,
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
        """Return a column as numbers; text that is not a number is missing."""
        cast = "TRY_CAST" if self.kinds[name] == "U1" else "CAST"
        return Sql(f"{cast}({self._column(name)} AS DOUBLE)")

    def _code(self, model: ModelColumns) -> Sql:
        """Return the number of the label's class."""
        name = self.spec.y
        cases = label_cases(self.spec, model, self.dtype_example(name))
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
    if isinstance(source, load_duckdb().DuckDBPyRelation):
        return DuckDBTable(RelationSource(source, "the relation"))
    if isinstance(source, FileSet):
        return DuckDBTable(open_in_place(source, bad_rows=bad_rows))
    return DuckDBTable(_of_frame(source))


def open_in_place(files: FileSet, *, bad_rows: BadRows = "error") -> FileSource:
    """Open files by a connection of our own."""
    connection = connect()
    if files.kind == "parquet":
        return ParquetFiles(connection, files)
    if files.kind in ("json", "records"):
        return JsonFiles(connection, files)
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
    """A data frame of which only the Arrow interface is visible."""

    frame: Any

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.frame.__arrow_c_stream__(requested_schema)


def _unnest(events: list[Event]) -> str:
    parts = (f"{{'event': {e.number}, 'p': {e.p}, 'y': {e.y}}}" for e in events)
    return f"UNNEST([{', '.join(parts)}], recursive := true)"


class Applied(NamedTuple):
    """How many rows were written, and how many predictions lie outside of limits."""

    rows: int
    outside: int = 0


def apply_in_duckdb(
    to_sql: Callable[[str], str],
    files: FileSet,
    column: str,
    name: str,
    out: Path,
    *,
    limits: tuple[float, float] | None = None,
    allow_missing: bool = False,
) -> Applied:
    """Write all rows of files with a new column of calibrated probabilities.

    The file `out` is written atomically. `to_sql` returns the expression of a map
    for a column; the new column is called `name`. With `allow_missing` it is NULL
    where there is no prediction.
    """
    check_writable(out)
    suffix = out.suffix.lower()
    if suffix not in (*SEPARATORS, *PARQUET):
        raise OptionError(
            f"{out}: the duckdb engine can only write .csv, .tsv and .parquet."
        )
    source = open_in_place(files)
    names = source.all_names
    source.check_columns([column])
    if name in names:
        raise OptionError(f"{files} already has a column {name!r}; choose another.")
    _check_distinct_ignoring_case([*names, name])
    _check_numbers(column, source.guess(column, []))
    try:
        with atomic_write(out) as temporary:
            # From text to text nothing is parsed and formatted again.
            kept = source.kept_columns(as_text=suffix in SEPARATORS)
            read = source.select([*kept, (column, "f8")])
            chosen = [f"c_{place} AS {quoted(own)}" for place, own in enumerate(names)]
            calibrated = f"COALESCE({to_sql(SCORE)}, ERROR('{NO_PROBABILITY}'))"
            if allow_missing:
                calibrated = f"CASE WHEN {_known(SCORE)} THEN {calibrated} END"
            chosen.append(f"{calibrated} AS {quoted(name)}")
            score = f"SELECT *, CAST(c_{len(names)} AS DOUBLE) AS {SCORE} FROM ({read})"
            query = f"SELECT {', '.join(chosen)} FROM ({score})"
            rows = _write(source, query, temporary)
    except SourceError as error:
        if NO_PROBABILITY in str(error):
            _raise_no_probability(source, column, allow_missing=allow_missing)
        what = str(error).partition("cannot be read: ")[2]
        if "write" in what.lower():
            raise SourceError(f"{out} cannot be written: {what}") from None
        raise
    return Applied(rows, 0 if limits is None else _outside(source, column, *limits))


def _outside(source: FileSource, column: str, low: float, high: float) -> int:
    beyond = f"(c_0 < {number(low)} OR c_0 > {number(high)})"
    query = f"SELECT COUNT(*) AS n FROM ({source.select([(column, 'f8')])})"
    return int(source.run(f"{query} WHERE {beyond} AND {_known('c_0')}")["n"][0])


def _check_numbers(column: str, kinds: Mapping[str, str]) -> None:
    if np.dtype(kinds[column]).kind not in "biuf":
        raise InputError(f"column {column!r} must contain numbers; it contains text.")


def _check_distinct_ignoring_case(names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise OptionError(
                f"columns {other!r} and {name!r} differ only in case, which "
                "DuckDB cannot write; use --engine memory, or rename one."
            )


def _write(source: FileSource, query: str, path: Path) -> int:
    """Write the rows of a query and return how many there are."""
    suffix = path.suffix.lower()
    options = "FORMAT parquet"
    if suffix in SEPARATORS:
        options = f"FORMAT csv, HEADER, DELIMITER {literal(SEPARATORS[suffix])}"
    written = f"COPY ({query}) TO {literal(str(path))} ({options})"
    (count,) = source.run(written).values()
    return int(count[0])


def _known(value: str) -> str:
    """Return the condition that a number is there."""
    return f"({value} IS NOT NULL AND NOT ISNAN({value}))"


def _raise_no_probability(
    source: FileSource, column: str, *, allow_missing: bool
) -> None:
    """Raise the error about predictions that are not probabilities."""
    kinds = source.kinds([column])
    _check_numbers(column, kinds)
    rules = prediction_rules(column, "x_0", precision_of(np.dtype(kinds[column])))
    read = source.select([(column, "f8")])
    rows = f"(SELECT CAST(c_0 AS DOUBLE) AS x_0 FROM ({read}))"
    if allow_missing:
        filled = f"CASE WHEN {_known('x_0')} THEN x_0 ELSE 0 END"
        rows = f"(SELECT {filled} AS x_0 FROM {rows})"
    RowFaults.count(rules, source.run, rows).raise_first(droppable=False)
    raise InputError(
        f"column {column!r} is outside [0, 1] because of rounding; apply the map "
        "with --engine memory."
    )
