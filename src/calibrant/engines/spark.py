"""Tables on a cluster, through Spark: executors do the pass, the driver gets cells."""

from __future__ import annotations

import math
import secrets
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.engines.aggregation_sql import Dialect, Event, number
from calibrant.engines.files import FileSet, check_no_lists, check_no_objects
from calibrant.engines.sql_tables import SqlTable
from calibrant.exceptions import MissingDependencyError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

KINDS = {
    "boolean": "?",
    "float": "f4",
    "double": "f8",
    "string": "U1",
    **dict.fromkeys(["tinyint", "smallint", "int", "bigint"], "i8"),
}
"""NumPy's word for each type; decimals count as doubles, all else as objects."""
INTEGER_COLUMNS = ("event", "cell", "n_rows", "hashed", "missed")
"""Columns of whole numbers in results of queries."""


def _unnest(events: list[Event]) -> str:
    parts = (
        f"NAMED_STRUCT('event', {e.number}, 'p', {e.p}, 'y', {e.y})" for e in events
    )
    return f"INLINE(ARRAY({', '.join(parts)}))"


def literal(value: Any) -> str:
    """Return a value as Spark reads it; neither number, bytes nor text becomes text.

    Text is written by its bytes: what a backslash means depends on settings.

    >>> literal("it's"), literal(True), literal(2), literal(b"it")
    ("CAST(X'69742773' AS STRING)", 'TRUE', '2', "X'6974'")
    """
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, bool | int):
        return str(value).upper()
    if isinstance(value, float) and math.isfinite(value):
        return number(value)
    return f"CAST(X'{str(value).encode().hex()}' AS STRING)"


def quoted(name: str) -> str:
    """Return the name of a column as Spark reads it, whatever characters it contains.

    >>> quoted("a `b`")
    '`a ``b```'
    """
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, eq=False)
class SparkTable(SqlTable):
    """Rows of a Spark data frame."""

    frame: Any
    display_name: str = "the Spark data frame"
    _view: str = field(default_factory=lambda: f"calibrant_{secrets.token_hex(6)}")

    dialect = Dialect(_unnest, literal, "XXHASH64")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns, in order."""
        return tuple(self.frame.columns)

    def kinds(self, names: Sequence[str]) -> dict[str, str]:
        """Return what columns contain, in NumPy's words."""
        declared = self.declared(names)
        check_no_lists([n for n, kind in declared.items() if kind.startswith("array")])
        fields = ("struct<", "map<")
        check_no_objects([n for n, kind in declared.items() if kind.startswith(fields)])
        return {
            name: "f8" if kind.startswith("decimal") else KINDS.get(kind, "O")
            for name, kind in declared.items()
        }

    def declared(self, names: Sequence[str]) -> dict[str, str]:
        """Return Spark's types of columns."""
        types = dict(self.frame.dtypes)
        return {name: types[name] for name in names}

    def select(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return the query for columns called c_0, c_1, ..., in their types."""
        chosen = (f"{quoted(name)} AS c_{k}" for k, (name, _) in enumerate(columns))
        return f"SELECT {', '.join(chosen)} FROM {self._view}"

    def run(self, query: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a query's result, and leave no view behind."""
        session = self.frame.sparkSession
        with reading(self.display_name):
            self.frame.createOrReplaceTempView(self._view)
            try:
                frame = session.sql(query)
                rows = frame.collect()
            finally:
                session.catalog.dropTempView(self._view)
        columns = {}
        for place, (name, declared) in enumerate(frame.dtypes):
            kind: Any = np.int64 if name in INTEGER_COLUMNS else np.float64
            numbers = KINDS.get(declared, "O")[0] in "fi"
            if not numbers or name.startswith(("by_", "other_", "label")):
                kind = object
            columns[name] = np.array([row[place] for row in rows], dtype=kind)
        return columns


def open_spark(source: Any) -> SparkTable:
    """Open a Spark data frame, or Parquet files through the active session."""
    check_installed()
    if hasattr(source, "sparkSession"):
        return SparkTable(source)
    if not isinstance(source, FileSet) or source.kind != "parquet":
        what = source if isinstance(source, FileSet) else type(source).__name__
        raise SourceError(
            f"the spark engine reads Spark data frames and Parquet files; got {what}. "
            "Read other files with Spark, and pass the data frame."
        )
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        raise SourceError(
            "the spark engine needs a running session to read files; start one by "
            "SparkSession.builder.getOrCreate()."
        )
    with reading(str(source)):
        return SparkTable(session.read.parquet(*source.paths), str(source))


@contextmanager
def reading(display_name: str) -> Iterator[None]:
    """Turn Spark's errors into ours."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise SourceError(
            f"{display_name} cannot be read: {'; '.join(lines[:2])}"
        ) from None


def check_installed() -> None:
    """Raise an error that says how to install Spark if it is missing."""
    if find_spec("pyspark") is None:
        raise MissingDependencyError.for_extra("the spark engine", "pyspark", "spark")
