"""Tables that engines read by SQL: what they can do, and how rows are aggregated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.row_rules import BINARY_LABEL, MAX_LISTED, list_values
from calibrant.core.wording import MEASURE_WORDING
from calibrant.engines.aggregation_query import AggregationQuery
from calibrant.engines.aggregation_sql import code, labels_of_type, number
from calibrant.engines.groups import plain_keys
from calibrant.engines.row_checks import LINES_REASON, check_dropped
from calibrant.exceptions import InputError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from calibrant.engines.aggregation_spec import AggregationSpec, ModelColumns
    from calibrant.engines.aggregation_sql import Dialect
    from calibrant.engines.cells import AggregatedCells

KEY = "key"
"""What columns of groups are read as."""


class SqlTable(ABC):
    """Rows that an engine reads by SQL; by default from columns that have types."""

    dialect: Dialect
    is_text = False
    """Whether columns have no types: what they contain is a guess at first, and values
    of groups are text, be they numbers or not."""

    @property
    @abstractmethod
    def display_name(self) -> str:
        """Return what errors call the table."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Return the columns, in order."""

    @abstractmethod
    def select(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return the query for columns called c_0, c_1, ..., each read as a kind."""

    @abstractmethod
    def run(self, query: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a query's result."""

    @abstractmethod
    def kinds(self, names: Sequence[str]) -> dict[str, str]:
        """Return what whole columns contain, in NumPy's words."""

    @abstractmethod
    def declared(self, names: Sequence[str]) -> dict[str, str]:
        """Return the engine's types of columns."""

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column does not exist, or is missing from some of the files."""
        unknown = set(names).difference(self.names)
        for name in names:
            if name in unknown:
                raise UnknownNameError.among("column", name, self.names)

    def guess(self, label: str, numbers: Sequence[str]) -> dict[str, str]:
        """Return what columns of labels, predictions and weights contain.

        Where files have no types it is a guess, by which numbers are doubles. It may be
        wrong: then some rows have no value when they are read as that.
        """
        return self.kinds(list(dict.fromkeys([label, *numbers])))

    def kind_of_few(self, name: str) -> str:
        """Return what a whole column of few distinct values contains."""
        return self.kinds([name])[name]

    def key_values(self, name: str, values: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        """Return the values of groups from those of a column read as `KEY`."""
        return values

    def may_be_nan(self, name: str | None) -> bool:
        """Tell whether values of groups may be NaN; without a column none is."""
        if name is None or self.is_text:
            return False
        return self.declared([name])[name].upper() in ("FLOAT", "DOUBLE")

    def dtype_example(self, name: str) -> NDArray[Any]:
        """Return an empty array of the type of a column of labels."""
        self.check_columns([name])
        return np.empty(0, dtype=self.kind_of_few(name))

    def contains(self, name: str, value: Any) -> bool:
        """Tell whether a column contains a value."""
        literals = self.label_literals(name, [value], self.dtype_example(name))
        column = self.select([(name, self.kind_of_few(name))])
        return any(
            self.run(f"SELECT 1 AS one FROM ({column}) WHERE c_0 = {own} LIMIT 1")[
                "one"
            ].size
            for _, own in literals
        )

    def label_literals(
        self, name: str, labels: Sequence[Any], like: NDArray[Any]
    ) -> list[tuple[int, str]]:
        """Return number and SQL of the labels that a column of a type can contain."""
        known = labels_of_type(labels, like)
        literal = self.dialect.literal
        if like.dtype.kind not in "OM":
            return [(place, literal(value)) for place, value in known]
        declared = self.declared([name])[name]
        if declared.upper() not in ("BLOB", "BINARY"):
            known = [(k, v) for k, v in known if not isinstance(v, bytes)]
        texts = ((k, v if isinstance(v, bytes) else str(v)) for k, v in known)
        return [(k, f"TRY_CAST({literal(v)} AS {declared})") for k, v in texts]

    def aggregate(self, spec: AggregationSpec) -> AggregatedCells:
        """Go once through the rows, where they are, and return their cells."""
        self.check_columns([spec.y, *spec.numbers, *spec.by])
        guessed = self.guess(spec.y, spec.numbers)
        try:
            return TypedRows(self, guessed, spec, sure=not self.is_text).cells()
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
    """The rows of a table, with columns of labels, predictions and weights as `kinds`.

    It is `sure` if all values of these columns are known to be of their kind.
    """

    source: SqlTable
    kinds: Mapping[str, str]
    spec: AggregationSpec
    sure: bool = True

    def cells(self) -> AggregatedCells:
        """Go once through the rows and return their cells."""
        spec = self.spec
        try:
            _check_some_numbers(self, spec, numbers_as_text=spec.bad_rows == "drop")
        except InputError:  # about a file that may not be what it seems
            if self.sure:
                raise
            raise WrongGuessError from None
        cells = AggregationQuery(self).cells()
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

    def distinct(self, name: str, limit: int) -> list[Any]:
        """Return some of the distinct values of a column, in order."""
        column = self.source.select([(name, self.kinds[name])])
        query = f"SELECT DISTINCT c_0 AS label FROM ({column}) WHERE c_0 IS NOT NULL"
        return sorted(self.run(f"{query} LIMIT {limit}")["label"].tolist(), key=str)

    def run(self, query: str) -> dict[str, NDArray[Any]]:
        """Return a query's result, with the values of groups as they are meant."""
        columns = self.source.run(query)
        for place, name in enumerate(self.spec.by):
            key = f"by_{place}"
            if key in columns:
                columns[key] = self.source.key_values(name, columns[key])
        label = np.dtype(self.kinds[self.spec.y])
        for own in {"label", "other_low", "other_high"}.intersection(columns):
            if label.kind == "M":  # DuckDB returns dates as times
                columns[own] = columns[own].astype(label)
        return columns

    def check_guess(self) -> None:
        """Raise where rows are invalid because columns contain something else."""
        if self.sure:
            return
        for name, kind in self.source.kinds(list(self.kinds)).items():
            whole_numbers = name != self.spec.y and kind == "i8"
            if self.kinds[name] != ("f8" if whole_numbers else kind):
                raise WrongGuessError

    def source_query(self) -> str:
        """Return the query for rows with names of our own, as our queries read them."""
        spec = self.spec
        columns = [*self.kinds.items(), *((name, KEY) for name in spec.by)]
        first = len(self.kinds)
        chosen = [f"c_{first + i} AS by_{i}" for i in range(len(spec.by))]
        chosen += [f"{self._number(n)} AS x_{i}" for i, n in enumerate(spec.columns)]
        chosen += [f"{self._code(m)} AS {code(i)}" for i, m in enumerate(spec.models)]
        chosen.append(f"{self._column(spec.y)} AS label")
        if spec.weight is not None:
            chosen.append(f"{self._number(spec.weight)} AS w")
        return f"(SELECT {', '.join(chosen)} FROM ({self.source.select(columns)}))"

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.kinds)}

    def _column(self, name: str) -> str:
        return f"c_{self._place[name]}"

    def _number(self, name: str) -> str:
        """Return a column as numbers; text that is not a number is missing."""
        cast = "TRY_CAST" if self.kinds[name] == "U1" else "CAST"
        return f"{cast}({self._column(name)} AS DOUBLE)"

    def _code(self, model: ModelColumns) -> str:
        """Return the number of the label's class.

        The event is 1 and all else 0; or classes have their places, and all else -1.
        """
        spec, several = self.spec, bool(model.labels)
        if not several and spec.pos_label is None:
            return self._number(spec.y)
        label, like = self._column(spec.y), self.dtype_example(spec.y)
        classes = model.labels if several else [spec.pos_label]
        known = [
            f"WHEN {label} = {literal} THEN {number(place if several else 1)}"
            for place, literal in self.source.label_literals(spec.y, classes, like)
        ]
        rest = number(-1 if several else 0)
        if like.dtype.kind == "f":  # NaN is no label
            rest += f" + 0 * ATAN({label})"
        other = f"WHEN {label} IS NOT NULL THEN {rest}"
        return f"CASE {' '.join([*known, other])} END"


def _check_some_numbers(
    table: TypedRows,
    spec: AggregationSpec,
    *,
    numbers_as_text: bool = False,
) -> None:
    """Raise where a column of numbers is none, or labels need to be named.

    With `numbers_as_text`, text will do that may hold numbers.
    """
    known = "biufU" if numbers_as_text else "biuf"
    weights = [] if spec.weight is None else [spec.weight]
    for name in [*spec.columns, *weights]:
        kind = table.dtype_example(name).dtype
        if kind.kind not in known:
            raise InputError.of(
                f"column {name!r}",
                "must contain numbers",
                f"it contains {'text' if kind.kind == 'U' else kind}",
                ("Convert the values to numbers, or choose another column.",),
            )
    binary = not spec.models[0].labels and spec.pos_label is None
    if binary and table.dtype_example(spec.y).dtype.kind not in "biuf":
        values = table.distinct(spec.y, MAX_LISTED + 1)
        if numbers_as_text and not {"0", "1"}.isdisjoint(map(str, values)):
            return
        more = " and more" if len(values) > MAX_LISTED else ""
        two = len(values) <= 2  # noqa: PLR2004
        raise BINARY_LABEL.broken(
            f"column {spec.y!r}",
            f"the distinct values are {list_values(values[:MAX_LISTED])}{more}",
            MEASURE_WORDING.two_labels if two else MEASURE_WORDING.several_labels,
        )
