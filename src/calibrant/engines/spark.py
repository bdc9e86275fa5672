"""Tables on a cluster, through Spark: executors do the pass, the driver gets cells."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.engines.aggregation_query import AggregationQuery
from calibrant.engines.aggregation_sql import (
    Dialect,
    label_cases,
    labels_of_type,
    source_columns,
)
from calibrant.engines.files import FileSet, check_no_lists
from calibrant.engines.row_checks import check_some_numbers
from calibrant.exceptions import MissingDependencyError, SourceError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from calibrant.engines.aggregation_spec import AggregationSpec, ModelColumns
    from calibrant.engines.aggregation_sql import Event
    from calibrant.engines.cells import AggregatedCells

KINDS = {
    "boolean": "?",
    "float": "f4",
    "double": "f8",
    "string": "U1",
    **dict.fromkeys(["tinyint", "smallint", "int", "bigint"], "i8"),
}
"""NumPy's word for each type; decimals count as doubles, all else as objects."""
WHOLE = ("event", "cell", "n_rows", "hashed", "missed")
"""Columns of whole numbers in results of queries."""


@dataclass(frozen=True, eq=False)
class SparkTable:
    """Rows of a Spark data frame, which errors call `display_name`."""

    frame: Any
    display_name: str = "the Spark data frame"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns, in order."""
        return tuple(self.frame.columns)

    @property
    def all_names(self) -> tuple[str, ...]:
        """Return the columns, in order."""
        return self.names

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column does not exist."""
        for name in names:
            self.dtype_example(name)

    def dtype_example(self, name: str) -> NDArray[Any]:
        """Return an empty array of the type of a column."""
        declared = dict(self.frame.dtypes)
        if name not in declared:
            raise UnknownNameError.among("column", name, self.names)
        kind = declared[name]
        check_no_lists([name] if kind.startswith("array") else [])
        known = "f8" if kind.startswith("decimal") else KINDS.get(kind, "O")
        return np.empty(0, dtype=known)

    def contains(self, name: str, value: Any) -> bool:
        """Tell whether a column contains a value."""
        if not labels_of_type([value], self.dtype_example(name)):
            return False
        equal = _column(name) == load_functions().lit(value)
        with reading(self.display_name):
            return bool(self.frame.where(equal).limit(1).collect())

    def distinct(self, name: str, most: int) -> list[Any]:
        """Return some of the distinct values of a column, in order."""
        with reading(self.display_name):
            rows = self.frame.select(_column(name)).distinct().limit(most).collect()
        return sorted(row[0] for row in rows if row[0] is not None)

    def aggregate(self, spec: AggregationSpec) -> AggregatedCells:
        """Go once through the rows, where they are, and return their cells."""
        check_some_numbers(self, spec)
        with self._view(spec) as view:
            query = AggregationQuery(
                spec=spec,
                source=view,
                dtype_example=self.dtype_example,
                dialect=Dialect(_unnest, "XXHASH64"),
                run=self._run,
                display_name=self.display_name,
            )
            return query.cells()

    def _run(self, query: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a query's result."""
        with reading(self.display_name):
            frame = self.frame.sparkSession.sql(query)
            rows = frame.collect()
        columns = {}
        for place, name in enumerate(frame.columns):
            kind: Any = np.int64 if name in WHOLE else np.float64
            if name.startswith(("by_", "other_")):
                kind = object
            columns[name] = np.array([row[place] for row in rows], dtype=kind)
        return columns

    @contextmanager
    def _view(self, spec: AggregationSpec) -> Iterator[str]:
        """Give a name to the rows with columns of our own, as `sql` reads them."""
        chosen = source_columns(
            spec,
            column=_column,
            key=_column,
            number=lambda name: _column(name).cast("double"),
            label_code=partial(self._code, spec),
        )
        name = f"calibrant_{secrets.token_hex(6)}"
        self.frame.select(*chosen).createOrReplaceTempView(name)
        try:
            yield name
        finally:
            self.frame.sparkSession.catalog.dropTempView(name)

    def _code(self, spec: AggregationSpec, model: ModelColumns) -> Any:
        """Return the number of the label's class."""
        label = _column(spec.y)
        cases = label_cases(spec, model, self.dtype_example(spec.y))
        if cases is None:
            return label.cast("double")
        case: Any = load_functions()
        for value, place in cases.known:
            case = case.when(label == load_functions().lit(value), place)
        return case.when(label.isNotNull(), cases.otherwise)


def open_spark(source: Any) -> SparkTable:
    """Open a Spark data frame, or Parquet files by the session that is running."""
    load_functions()
    if hasattr(source, "sparkSession"):
        return SparkTable(source)
    if not isinstance(source, FileSet) or source.kind != "parquet":
        what = source if isinstance(source, FileSet) else type(source).__name__
        raise SourceError(
            f"the spark engine reads Spark data frames and Parquet files; got {what}. "
            "Read other files by Spark, and pass the data frame."
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


def _column(name: str) -> Any:
    """Return a column by its name, whatever characters that contains."""
    quoted = "`" + name.replace("`", "``") + "`"
    return load_functions().col(quoted)


def _unnest(events: list[Event]) -> str:
    parts = (
        f"NAMED_STRUCT('event', {e.number}, 'p', {e.p}, 'y', {e.y})" for e in events
    )
    return f"INLINE(ARRAY({', '.join(parts)}))"


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


def load_functions() -> ModuleType:
    """Return Spark's functions of columns, or say how to install it."""
    try:
        return import_module("pyspark.sql.functions")
    except ImportError:
        raise MissingDependencyError.for_extra(
            "the spark engine", "pyspark", "spark"
        ) from None
