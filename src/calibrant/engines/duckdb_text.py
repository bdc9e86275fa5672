"""Files without types as DuckDB reads them: all values tell what a column holds."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from glob import escape
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.engines.duckdb_sources import (
    KEY,
    check_known,
    fetched,
    in_partitions,
    listed,
    literal,
    numbered,
    quoted,
)
from calibrant.engines.files import (
    check_distinct_names,
    check_in_every_file,
    lacking_columns,
    load_polars,
    read_first_rows,
    read_header,
)
from calibrant.engines.text_columns import (
    ValueCounts,
    class_sql,
    truth_sql,
    value_counts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calibrant.engines.source_files import FileSet

SEPARATORS = {"csv": ",", "tsv": "\t"}
TEXT = "U1"
FIRST_ROWS = 1000
"""So many rows are looked at for a guess."""
FIRST_OBJECTS = 20_000
"""So many lines of JSON are looked at for names."""
LINE_SIZE = 2**21
"""Bytes of a line, at most; of a file with very many columns, more."""
VALUE_SIZE = 40


@dataclass(frozen=True, eq=False)
class UntypedFiles(ABC):
    """Files whose columns have no types.

    Attributes
    ----------
    connection : DuckDBPyConnection
        Of our own.
    files : FileSet
        What to read.
    """

    connection: Any
    files: FileSet
    _whole: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    @property
    def told(self) -> str:
        """Return what errors call the files."""
        return str(self.files)

    @property
    @abstractmethod
    def is_text(self) -> bool:
        """Tell whether values of groups are text, be they numbers or not."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Return the columns that there are, in order."""

    @property
    @abstractmethod
    def all_names(self) -> tuple[str, ...]:
        """Return the columns of all rows, if that takes a look at all of them."""

    @abstractmethod
    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column is not there, or lacks in some of the files."""

    @abstractmethod
    def key_values(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of groups, of what a column read as `KEY` gave."""

    @abstractmethod
    def lines_left_out(self) -> int:
        """Return the number of lines that are no rows."""

    @abstractmethod
    def _tokens(self, names: Sequence[str]) -> str:
        """Return the query for columns c_0, c_1, ... as they stand in the files."""

    @abstractmethod
    def _number(self, token: str) -> str:
        """Return a column as a number, NULL where it is none."""

    @abstractmethod
    def _text(self, token: str) -> str:
        """Return a column as text."""

    def guess(self, label: str, numbers: Sequence[str]) -> dict[str, str]:
        """Return what columns of labels, predictions and weights seem to hold.

        The first labels tell, and all else must be numbers.
        """
        found: dict[str, str] = dict.fromkeys([label, *numbers], "f8")
        first = self._whole.get(label) or self._first_values(label).kind
        return found | {label: "f8" if first == "i8" else first}

    def kinds(self, names: Sequence[str]) -> dict[str, str]:
        """Return what whole columns hold, in NumPy's words."""
        unknown = [name for name in names if name not in self._whole]
        counted = self._counted(unknown, self._tokens(unknown))
        self._whole.update({name: counts.kind for name, counts in counted.items()})
        return {name: self._whole[name] for name in names}

    @abstractmethod
    def _first_values(self, name: str) -> ValueCounts:
        """Return how many values in the first rows can be read as what."""

    def kind_of_few(self, name: str) -> str:
        """Return what a column of few distinct values holds, sooner than `kinds`."""
        if name not in self._whole:
            distinct = f"SELECT DISTINCT c_0 FROM ({self._tokens([name])})"
            self._whole[name] = self._counted([name], distinct)[name].kind
        return self._whole[name]

    def kept_columns(self, *, as_text: bool) -> list[tuple[str, str]]:
        """Return all columns, and as what no value of them loses anything."""
        names = self.all_names
        if as_text:
            return [(name, TEXT) for name in names]
        counted = self._counted(names, self._tokens(names))
        return [(name, counts.kind_kept) for name, counts in counted.items()]

    def _counted(self, names: Sequence[str], query: str) -> dict[str, ValueCounts]:
        """Return how many values of the columns of a query can be read as what."""
        if not names:
            return {}
        numbers = ", ".join(map(str, range(len(names))))
        tokens = ", ".join(f"c_{place}" for place in range(len(names)))
        # A row for each value: many columns need no more expressions than one.
        rows = f"SELECT UNNEST([{numbers}]) AS k, UNNEST([{tokens}]) AS token"
        classes = class_sql("token", self._number("token"))
        found = self.connection.execute(
            f"SELECT k, class, COUNT(*) FROM (SELECT k, {classes} AS class FROM "
            f"({rows} FROM ({query}))) WHERE class IS NOT NULL GROUP BY k, class"
        ).fetchall()
        counts: list[dict[str, int]] = [{} for _ in names]
        for place, name, count in found:
            counts[place][name] = count
        return {n: ValueCounts(**own) for n, own in zip(names, counts, strict=True)}

    def select(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return the query for columns called c_0, c_1, ..., each read as a kind."""
        read = [
            self._as_kind(f"c_{place}", kind) for place, (_, kind) in enumerate(columns)
        ]
        tokens = self._tokens([name for name, _ in columns])
        return f"SELECT {numbered(read)} FROM ({tokens})"

    def run(self, query: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a query's result."""
        return fetched(self.connection, query)

    def _as_kind(self, token: str, kind: str) -> str:
        if kind == "?":
            return truth_sql(token)
        if kind == "f8":
            return self._number(token)
        if kind == "i8":
            return f"TRY_CAST({token} AS BIGINT)"
        return token if kind == KEY else self._text(token)


@dataclass(frozen=True, eq=False)
class SeparatedFiles(UntypedFiles):
    """CSV or TSV files, several of them as one table with the columns of all.

    Attributes
    ----------
    leave_out : bool
        Whether lines that are no rows are noted and left out.
    """

    leave_out: bool = False

    is_text = True

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the columns that there are, in order."""
        every = (name for header in self._headers for name in header.names)
        return (*dict.fromkeys(every), *self._partitions)

    @property
    def all_names(self) -> tuple[str, ...]:
        """Return the columns of all rows."""
        return self.names

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column is not there, or lacks in some of the files."""
        check_known(names, self.names)
        own = {header.paths[0]: header.names for header in self._headers}
        lacking = lacking_columns(own)
        for name in names:
            if name not in self._partitions:
                check_in_every_file(name, lacking)

    def key_values(self, name: str, values: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        """Return the values: they are what stands there."""
        return values

    def lines_left_out(self) -> int:
        """Return the number of lines that are no rows."""
        if not self.leave_out:
            return 0
        lines = "SELECT DISTINCT file_path, line FROM reject_errors JOIN reject_scans "
        counted = f"SELECT COUNT(*) FROM ({lines} USING (scan_id, file_id))"
        return int(self.connection.execute(counted).fetchall()[0][0])

    def _first_values(self, name: str) -> ValueCounts:
        first = self._headers[0]
        rows = read_first_rows(Path(first.paths[0]), SEPARATORS[self.files.kind])
        columns = dict(zip(first.names, zip_longest(*rows), strict=False))
        pl = load_polars("reading text files")
        return value_counts(pl.Series(columns.get(name, ()), dtype=pl.String))

    def _number(self, token: str) -> str:
        # DuckDB takes 1_000 for a number.
        return (
            f"CASE WHEN NOT CONTAINS({token}, '_') THEN TRY_CAST({token} AS DOUBLE) END"
        )

    def _text(self, token: str) -> str:
        return token

    def _tokens(self, names: Sequence[str]) -> str:
        parts = []
        for header in self._headers:
            own = {name: f"k_{place}" for place, name in enumerate(header.names)}
            own |= {n: f"CAST({quoted(n)} AS VARCHAR)" for n in self._partitions}
            columns = [own.get(name, "CAST(NULL AS VARCHAR)") for name in names]
            parts.append(f"SELECT {numbered(columns)} FROM {self._reader(header)}")
        return " UNION ALL ".join(parts)

    def _reader(self, header: Header) -> str:
        size = max(LINE_SIZE, VALUE_SIZE * len(header.names))
        columns = ", ".join(f"k_{k}: 'VARCHAR'" for k in range(len(header.names)))
        options = [
            listed([escape(path) for path in header.paths]),
            f"columns = {{{columns}}}",
            f"delim = '{SEPARATORS[self.files.kind]}'",
            f"skip = {header.skipped}",
            f"max_line_size = {size}",
            """quote = '"', escape = '"', comment = '', header = true""",
            "auto_detect = false, allow_quoted_nulls = false",
            f"store_rejects = {self.leave_out}",
        ]
        return f"read_csv({', '.join(options)})"

    @cached_property
    def _headers(self) -> list[Header]:
        """Return files that follow each other with the same first line."""
        separator = SEPARATORS[self.files.kind]
        found: list[Header] = []
        for path in self.files.paths:
            names, skipped = read_header(Path(path), separator)
            check_distinct_names(path, names)
            if found and (found[-1].names, found[-1].skipped) == (names, skipped):
                found[-1].paths.append(path)
            else:
                found.append(Header(names, skipped, [path]))
        return found

    @cached_property
    def _partitions(self) -> list[str]:
        """Return the columns that names of folders give, as in year=2024/."""
        if not in_partitions(self.files.paths):
            return []
        first = self._headers[0]
        query = f"SELECT * FROM {self._reader(first)}"
        return list(self.connection.sql(query).columns[len(first.names) :])


@dataclass(frozen=True)
class Header:
    """Files with the same first line.

    Attributes
    ----------
    names : list of str
        The columns.
    skipped : int
        Empty lines before.
    paths : list of str
        The files.
    """

    names: list[str]
    skipped: int
    paths: list[str]


@dataclass(frozen=True, eq=False)
class JsonLines(UntypedFiles):
    """Files with an object of JSON in each line; keys may lack in some."""

    is_text = False

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the columns of the first rows, in order."""
        return self._keys(f" LIMIT {FIRST_OBJECTS}")

    @cached_property
    def all_names(self) -> tuple[str, ...]:
        """Return the columns of all rows."""
        return tuple(dict.fromkeys([*self.names, *self._keys()]))

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column is not there; values may lack."""
        if not set(names) <= set(self.names):
            check_known(names, self.all_names)

    def key_values(self, name: str, values: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        """Return the values that tokens of JSON stand for, all of one type."""
        tokens = values.tolist()
        read = {token: json.loads(token) for token in set(tokens) if token is not None}
        kinds = {type(value) for value in read.values()}
        if kinds == {int, float}:
            read = {token: float(value) for token, value in read.items()}
        elif str in kinds:
            read = {t: v if isinstance(v, str) else t for t, v in read.items()}
        found = np.empty(len(tokens), dtype=object)
        found[:] = [read.get(token) for token in tokens]
        return found

    def lines_left_out(self) -> int:
        """Return 0: all there is are rows."""
        return 0

    def kept_columns(self, *, as_text: bool) -> list[tuple[str, str]]:
        """Return all columns, and as what no value of them loses anything."""
        kept = super().kept_columns(as_text=as_text)
        return kept if as_text else [self._with_parts(*column) for column in kept]

    def _with_parts(self, name: str, kind: str) -> tuple[str, str]:
        """Return a column, and its type if it holds lists or objects."""
        if kind != TEXT:
            return name, kind
        structure = "json_group_structure(CAST(c_0 AS JSON))"
        query = f"SELECT {structure} FROM ({self._tokens([name])})"
        found = json.loads(self.connection.execute(query).fetchall()[0][0])
        return name, TEXT if isinstance(found, str) else _type_of(found)

    def _as_kind(self, token: str, kind: str) -> str:
        if kind in (KEY, TEXT, "?", "i8", "f8"):
            return super()._as_kind(token, kind)
        return f"CAST(CAST({token} AS JSON) AS {kind})"

    def _first_values(self, name: str) -> ValueCounts:
        first = f"SELECT * FROM ({self._tokens([name])}) LIMIT {FIRST_ROWS}"
        return self._counted([name], first)[name]

    def _number(self, token: str) -> str:
        return f"TRY_CAST({token} AS DOUBLE)"

    def _text(self, token: str) -> str:
        return f"CAST({token} AS JSON) ->> '$'"

    def _tokens(self, names: Sequence[str]) -> str:
        own = dict.fromkeys(name for name in names if name not in self._partitions)
        if len({name.lower() for name in own}) < len(own):
            return self._exact_tokens(names)
        columns = ", ".join(f"{literal(name)}: 'JSON'" for name in own)
        tokens = (
            f"CAST(TO_JSON({quoted(name)}) AS VARCHAR)"
            if name in self._partitions
            else f"CAST({quoted(name)} AS VARCHAR)"
            for name in names
        )
        reader = f"read_json({self._options}, records = true, columns = {{{columns}}})"
        return f"SELECT {numbered(list(tokens))} FROM {reader}"

    def _exact_tokens(self, names: Sequence[str]) -> str:
        """Return tokens by names that differ by case alone, which takes longer."""
        found = [
            f"TO_JSON({quoted(name)})"
            if name in self._partitions
            else f"json_extract(json, {_pointer(name)})"
            for name in names
        ]
        tokens = [f"NULLIF(CAST({value} AS VARCHAR), 'null')" for value in found]
        return f"SELECT {numbered(tokens)} FROM read_json_objects({self._options})"

    @property
    def _options(self) -> str:
        return f"{listed(self.files.patterns)}, format = 'newline_delimited'"

    def _keys(self, limit: str = "") -> tuple[str, ...]:
        lines = f"SELECT json FROM read_json_objects({self._options}){limit}"
        query = f"SELECT json_keys(json) AS keys, COUNT(*) FROM ({lines}) GROUP BY keys"
        found = self.connection.execute(f"{query} ORDER BY 2 DESC, keys").fetchall()
        every = (name for keys, _ in found for name in keys or ())
        return (*dict.fromkeys(every), *self._partitions)

    @cached_property
    def _partitions(self) -> list[str]:
        """Return the columns that names of folders give, as in year=2024/."""
        if not in_partitions(self.files.paths):
            return []
        reader = (
            f"read_json({self._options}, records = true, columns = {{'k': 'JSON'}})"
        )
        return list(self.connection.sql(f"SELECT * FROM {reader}").columns[1:])


def _pointer(name: str) -> str:
    """Return where an object of JSON has a key.

    Examples
    --------
    >>> _pointer("a/b")
    "'/a~1b'"
    """
    return literal("/" + name.replace("~", "~0").replace("/", "~1"))


def _type_of(structure: Any) -> str:
    """Return DuckDB's type of a structure of JSON.

    Examples
    --------
    >>> _type_of({"a": ["UBIGINT"]})
    'STRUCT("a" UBIGINT[])'
    """
    if isinstance(structure, dict):
        parts = (f"{quoted(name)} {_type_of(own)}" for name, own in structure.items())
        return f"STRUCT({', '.join(parts)})"
    if isinstance(structure, list):
        return f"{_type_of(structure[0])}[]"
    return "VARCHAR" if structure == "NULL" else str(structure)
