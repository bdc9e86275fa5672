"""Where DuckDB reads rows: what all sources can do; relations and data frames."""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.engines.aggregation_query import AggregationQuery
from calibrant.engines.aggregation_sql import (
    Dialect,
    Event,
    label_cases,
    labels_of_type,
    number,
    source_columns,
)
from calibrant.engines.files import check_no_lists
from calibrant.engines.groups import plain_keys
from calibrant.engines.row_checks import (
    LINES_REASON,
    check_dropped,
    check_some_numbers,
)
from calibrant.exceptions import (
    InputError,
    MissingDependencyError,
    Setting,
    SourceError,
    UnknownNameError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from calibrant.engines.aggregation_spec import AggregationSpec, ModelColumns
    from calibrant.engines.cells import AggregatedCells

KINDS = {
    "BOOLEAN": "?",
    "FLOAT": "f4",
    "DOUBLE": "f8",
    "VARCHAR": "U1",
    "DATE": "M8[D]",
    **dict.fromkeys(["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"], "i8"),
    **dict.fromkeys(["UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"], "u8"),
}
"""NumPy's word for each type; decimals count as doubles, all else as objects."""
KEY = "key"
"""What columns of groups are read as."""
BITS = 17
"""Of the numbers of cells, and one for nothing."""
SETTINGS = {
    # Cells have short numbers: looked up in a plain array, not in a hash table.
    "perfect_ht_threshold": BITS,
    # Nothing is fetched from anywhere.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # Nothing is printed that was not asked for.
    "enable_progress_bar": "false",
}


class Source(ABC):
    """Rows that DuckDB reads; by default from columns that have types."""

    is_text = False
    """Whether values of groups are text, be they numbers or not."""

    @property
    @abstractmethod
    def display_name(self) -> str:
        """Return what errors call the source."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Return the columns, in order."""

    @abstractmethod
    def select(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return the query for columns called c_0, c_1, ..., each read as a kind."""

    @abstractmethod
    def _query(self, query: str) -> Any:
        """Return the relation of a query."""

    def run(self, query: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a query's result."""
        with reading(self.display_name):
            columns: dict[str, NDArray[Any]] = self._query(query).fetchnumpy()
        return columns

    @property
    def all_names(self) -> tuple[str, ...]:
        """Return the columns of all rows, for which all may have to be read."""
        return self.names

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column does not exist, or is missing from some of the files."""
        check_known(names, self.names)

    def guess(self, label: str, numbers: Sequence[str]) -> dict[str, str]:
        """Return what columns of labels, predictions and weights contain.

        Where files have no types it is a guess, which is never whole numbers. It may
        be wrong: then some rows have no value when they are read as that.
        """
        return self.kinds(list(dict.fromkeys([label, *numbers])))

    def kinds(self, names: Sequence[str]) -> dict[str, str]:
        """Return what whole columns contain, in NumPy's words."""
        declared = self._declared(names)
        check_no_lists([name for name, kind in declared.items() if kind.endswith("]")])
        return {
            name: "f8" if is_decimal(kind) else KINDS.get(kind, "O")
            for name, kind in declared.items()
        }

    def _declared(self, names: Sequence[str]) -> dict[str, str]:
        """Return DuckDB's types of columns."""
        if not names:
            return {}
        described = self.run(f"DESCRIBE {self.select([(name, '') for name in names])}")
        return dict(zip(names, described["column_type"].tolist(), strict=True))

    def _typed(self, columns: Sequence[tuple[str, str]], called: Sequence[str]) -> str:
        """Return columns in their types, called c_0, c_1, ...; decimal keys as text."""
        declared = self._declared([name for name, kind in columns if kind == KEY])
        return numbered(
            [
                f"CAST({own} AS VARCHAR)"
                if kind == KEY and is_decimal(declared[name])
                else own
                for (name, kind), own in zip(columns, called, strict=True)
            ]
        )

    def kind_of_few(self, name: str) -> str:
        """Return what a whole column of few distinct values contains."""
        return self.kinds([name])[name]

    def key_values(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of groups from those of a column read as `KEY`."""
        declared = self._declared([name])[name]
        if is_decimal(declared):  # as doubles they would lose digits
            keys = [None if v is None else Decimal(v) for v in values.tolist()]
            return np.array(keys, dtype=object)
        # DuckDB returns dates as times.
        return values.astype(KINDS[declared]) if declared == "DATE" else values

    def dtype_example(self, name: str) -> NDArray[Any]:
        """Return an empty array of the type of a column of labels."""
        self.check_columns([name])
        return np.empty(0, dtype=self.kind_of_few(name))

    def contains(self, name: str, value: Any) -> bool:
        """Tell whether a column contains a value."""
        if not labels_of_type([value], self.dtype_example(name)):
            return False
        column = self.select([(name, self.kind_of_few(name))])
        query = f"SELECT 1 AS one FROM ({column}) WHERE c_0 = {literal(value)}"
        return bool(self.run(f"{query} LIMIT 1")["one"].size)

    def aggregate(self, spec: AggregationSpec) -> AggregatedCells:
        """Go once through the rows and return their cells."""
        self.check_columns([spec.y, *spec.numbers, *spec.by])
        guessed = self.guess(spec.y, spec.numbers)
        try:
            return TypedRows(self, guessed, spec, sure=False).cells()
        except WrongGuessError:
            kinds = self.kinds(list(guessed))
            return TypedRows(self, kinds, spec).cells()

    def lines_left_out(self) -> int:
        """Return the number of lines that are not rows."""
        return 0


class WrongGuessError(Exception):
    """Columns contain something else than their first rows."""


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
        query = AggregationQuery(
            spec=spec,
            source=self._source_query(),
            dtype_example=self.dtype_example,
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


def _unnest(events: list[Event]) -> str:
    parts = (f"{{'event': {e.number}, 'p': {e.p}, 'y': {e.y}}}" for e in events)
    return f"UNNEST([{', '.join(parts)}], recursive := true)"


@dataclass(frozen=True, eq=False)
class RelationSource(Source):
    """A relation of the user's, or a data frame that was registered.

    DuckDB renames columns of a data frame that differ by case alone; `own_names` are
    those of the data frame. `connection` is one of our own that must stay open.
    """

    relation: Any
    display_name: str = ""
    connection: Any = None
    own_names: tuple[str, ...] = ()
    _view: str = field(default_factory=lambda: f"calibrant_{secrets.token_hex(6)}")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns, in order."""
        return self.own_names or tuple(self.relation.columns)

    def select(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return the query for columns called c_0, c_1, ..., in their types."""
        called = dict(zip(self.names, self.relation.columns, strict=True))
        chosen = self._typed(columns, [quoted(called[name]) for name, _ in columns])
        return f"SELECT {chosen} FROM {self._view}"

    def _query(self, query: str) -> Any:
        return self.relation.query(self._view, query)

    def run(self, query: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a query's result, and leave no view behind."""
        try:
            return super().run(query)
        finally:
            self.relation.query(self._view, f"DROP VIEW IF EXISTS {self._view}")


def open_relation(source: Any) -> RelationSource:
    """Open a DuckDB relation or a data frame."""
    import narwhals as nw

    duckdb = load_duckdb()
    if isinstance(source, duckdb.DuckDBPyRelation):
        return RelationSource(source, "the relation")
    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    connection = connect()
    try:
        connection.register("calibrant_frame", nw.to_native(frame, pass_through=True))
    except duckdb.Error:
        if isinstance(frame, nw.DataFrame) and find_spec("pyarrow") is None:
            raise MissingDependencyError(
                "DuckDB needs pyarrow to read this data frame; install it with: pip "
                "install pyarrow, or pass ",
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


def check_known(names: Sequence[str], known: Sequence[str]) -> None:
    """Raise where a column does not exist."""
    unknown = set(names).difference(known)
    for name in names:
        if name in unknown:
            raise UnknownNameError.among("column", name, known)


def is_decimal(declared: str) -> bool:
    """Tell whether a type of DuckDB's is that of decimals."""
    return declared.startswith("DECIMAL")


def numbered(expressions: Sequence[str]) -> str:
    """Return expressions of columns, called c_0, c_1, ..."""
    return ", ".join(f"{e} AS c_{place}" for place, e in enumerate(expressions))


def quoted(name: str) -> str:
    """Return the name of a column as DuckDB reads it, whatever characters it contains.

    >>> quoted('odd "name" here')
    '"odd ""name"" here"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """Return a value as DuckDB reads it; neither number nor text becomes text.

    >>> literal("it's"), literal(True), literal(0.5)
    ("'it''s'", 'TRUE', '5.0000000000000000e-01')
    """
    if isinstance(value, bool | int):
        return str(value).upper()
    if isinstance(value, float) and math.isfinite(value):
        return number(value)
    escaped = str(value).replace("'", "''").replace("\0", "' || CHR(0) || '")
    return f"('{escaped}')" if "\0" in str(value) else f"'{escaped}'"


def listed(texts: Sequence[str]) -> str:
    """Return several texts as a list in SQL."""
    return f"[{', '.join(map(literal, texts))}]"


def connect() -> Any:
    """Return a connection of our own."""
    connection = load_duckdb().connect()
    for name, value in SETTINGS.items():
        connection.execute(f"SET {name} = {value}")
    return connection


@contextmanager
def reading(display_name: str) -> Iterator[None]:
    """Turn DuckDB's errors into ours."""
    try:
        yield
    except load_duckdb().Error as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise SourceError(
            f"{display_name} cannot be read: {'; '.join(lines[:3])}"
        ) from None


def load_duckdb() -> ModuleType:
    """Return DuckDB, or say how to install it."""
    try:
        import duckdb
    except ImportError:
        raise MissingDependencyError.for_extra(
            "reading in place", "duckdb", "data"
        ) from None
    return duckdb
