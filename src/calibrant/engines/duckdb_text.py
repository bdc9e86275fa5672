"""Files without types as DuckDB reads them: all values say what a column contains."""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from glob import escape
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant.engines.duckdb_sources import (
    KEY,
    FileSource,
    check_known,
    listed,
    literal,
    numbered,
    quoted,
)
from calibrant.engines.files import check_distinct_names, load_polars
from calibrant.engines.text_files import (
    FIRST_ROWS,
    ValueCounts,
    class_sql,
    read_first_rows,
    read_header,
    truth_sql,
    value_counts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

TEXT = "U1"
FIRST_OBJECTS = 20_000
"""So many objects of JSON are looked at for names."""
LINE_SIZE = 2**21
"""Bytes of a line, at most; of a file with very many columns, more."""
VALUE_SIZE = 40


@dataclass(frozen=True, eq=False)
class UntypedFiles(FileSource):
    """Files whose columns have no types."""

    _whole: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    @abstractmethod
    def _tokens(self, names: Sequence[str]) -> str:
        """Return the query for columns c_0, c_1, ... as they stand in the files."""

    @abstractmethod
    def _number(self, token: str) -> str:
        """Return a column as a number, NULL where it is not one."""

    @abstractmethod
    def _first_values(self, name: str) -> ValueCounts:
        """Return how many values in the first rows can be read as what."""

    def _text(self, token: str) -> str:
        """Return a column as text."""
        return token

    def guess(self, label: str, numbers: Sequence[str]) -> dict[str, str]:
        """Return what columns of labels, predictions and weights seem to contain.

        The first labels are looked at, and all else must be numbers.
        """
        kinds: dict[str, str] = dict.fromkeys([label, *numbers], "f8")
        first = self._whole.get(label) or self._first_values(label).kind
        return kinds | {label: "f8" if first == "i8" else first}

    def kinds(self, names: Sequence[str]) -> dict[str, str]:
        """Return what whole columns contain, in NumPy's words."""
        unknown = [name for name in names if name not in self._whole]
        counted = self._counted(unknown, self._tokens(unknown))
        self._whole.update({name: counts.kind for name, counts in counted.items()})
        return {name: self._whole[name] for name in names}

    def kind_of_few(self, name: str) -> str:
        """Return what a column of few distinct values contains, sooner than `kinds`."""
        if name not in self._whole:
            distinct = f"SELECT DISTINCT c_0 FROM ({self._tokens([name])})"
            self._whole[name] = self._counted([name], distinct)[name].kind
        return self._whole[name]

    def kept_columns(self, *, as_text: bool) -> list[tuple[str, str]]:
        """Return all columns, and the kinds in which no value loses anything."""
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
        # One row per value: many columns need no more expressions than one.
        rows = f"SELECT UNNEST([{numbers}]) AS k, UNNEST([{tokens}]) AS token"
        classes = class_sql("token", self._number("token"))
        counted = self._rows(
            f"SELECT k, class, COUNT(*) FROM (SELECT k, {classes} AS class FROM "
            f"({rows} FROM ({query}))) WHERE class IS NOT NULL GROUP BY k, class"
        )
        counts: list[dict[str, int]] = [{} for _ in names]
        for place, name, count in counted:
            counts[place][name] = count
        return {n: ValueCounts(**own) for n, own in zip(names, counts, strict=True)}

    def select(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return the query for columns called c_0, c_1, ..., each read as a kind."""
        read = [
            self._as_kind(f"c_{place}", kind) for place, (_, kind) in enumerate(columns)
        ]
        tokens = self._tokens([name for name, _ in columns])
        return f"SELECT {numbered(read)} FROM ({tokens})"

    def _as_kind(self, token: str, kind: str) -> str:
        if kind == "?":
            return truth_sql(token)
        if kind == "f8":
            return self._number(token)
        if kind == "i8":
            return f"TRY_CAST({token} AS BIGINT)"
        return token if kind == KEY else self._text(token)


class Header(NamedTuple):
    """Files with the same first line: columns, empty lines before, paths."""

    names: list[str]
    skipped: int
    paths: list[str]


@dataclass(frozen=True, eq=False)
class SeparatedFiles(UntypedFiles):
    """CSV or TSV files; with `leave_out`, lines that are not rows are left out."""

    leave_out: bool = False

    is_text = True

    def key_values(self, name: str, values: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        """Return the values, which are the text of the file."""
        return values

    def lines_left_out(self) -> int:
        """Return the number of lines that are not rows."""
        if not self.leave_out:
            return 0
        lines = "SELECT DISTINCT file_path, line FROM reject_errors JOIN reject_scans "
        counted = f"SELECT COUNT(*) FROM ({lines} USING (scan_id, file_id))"
        return int(self._rows(counted)[0][0])

    def _first_values(self, name: str) -> ValueCounts:
        first = self._headers[0]
        rows = read_first_rows(Path(first.paths[0]), self.files.separator)
        columns = dict(zip(first.names, zip_longest(*rows), strict=False))
        pl = load_polars("reading text files")
        return value_counts(pl.Series(columns.get(name, ()), dtype=pl.String))

    def _number(self, token: str) -> str:
        # DuckDB takes 1_000 for a number.
        return (
            f"CASE WHEN NOT CONTAINS({token}, '_') THEN TRY_CAST({token} AS DOUBLE) END"
        )

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
            f"delim = '{self.files.separator}'",
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
        headers: list[Header] = []
        for path in self.files.paths:
            names, skipped = read_header(Path(path), self.files.separator)
            check_distinct_names(f"{path} has", names)
            if headers and headers[-1][:2] == (names, skipped):
                headers[-1].paths.append(path)
            else:
                headers.append(Header(names, skipped, [path]))
        return headers

    @property
    def _columns(self) -> dict[str, list[str]]:
        return {header.paths[0]: header.names for header in self._headers}

    @cached_property
    def _partitions(self) -> list[str]:
        if not self.files.has_partitions:
            return []
        first = self._headers[0]
        return self._columns_read_by(self._reader(first))[len(first.names) :]


@dataclass(frozen=True, eq=False)
class JsonFiles(UntypedFiles):
    """Files of JSON objects, one per line or in an array; some may lack keys."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the columns of the first rows, in order."""
        return self._keys(f" LIMIT {FIRST_OBJECTS}")

    @cached_property
    def all_names(self) -> tuple[str, ...]:
        """Return the columns of all rows."""
        return tuple(dict.fromkeys([*self.names, *self._keys()]))

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column does not exist; values may be missing."""
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
        keys = np.empty(len(tokens), dtype=object)
        keys[:] = [read.get(token) for token in tokens]
        return keys

    def kept_columns(self, *, as_text: bool) -> list[tuple[str, str]]:
        """Return all columns, and the kinds in which no value loses anything."""
        kept = super().kept_columns(as_text=as_text)
        return kept if as_text else [self._with_parts(*column) for column in kept]

    def _with_parts(self, name: str, kind: str) -> tuple[str, str]:
        """Return a column, and its type if it contains lists or objects."""
        if kind != TEXT:
            return name, kind
        query = "SELECT json_group_structure(CAST(c_0 AS JSON))"
        query += f" FROM ({self._tokens([name])})"
        structure = json.loads(self._rows(query)[0][0])
        return name, TEXT if isinstance(structure, str) else _type_of(structure)

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
        tokens = [
            f"CAST(TO_JSON({quoted(name)}) AS VARCHAR)"
            if name in self._partitions
            else f"CAST({quoted(name)} AS VARCHAR)"
            for name in names
        ]
        return f"SELECT {numbered(tokens)} FROM {self._reader(own)}"

    def _exact_tokens(self, names: Sequence[str]) -> str:
        """Return tokens by names that differ by case alone, which takes longer."""
        values = [
            f"TO_JSON({quoted(name)})"
            if name in self._partitions
            else f"json_extract(json, {_pointer(name)})"
            for name in names
        ]
        tokens = [f"NULLIF(CAST({value} AS VARCHAR), 'null')" for value in values]
        return f"SELECT {numbered(tokens)} FROM read_json_objects({self._options})"

    @property
    def _options(self) -> str:
        layout = "array" if self.files.kind == "records" else "newline_delimited"
        return f"{listed(self.files.patterns)}, format = '{layout}'"

    def _reader(self, names: Sequence[str] | dict[str, None]) -> str:
        columns = ", ".join(f"{literal(name)}: 'JSON'" for name in names)
        return f"read_json({self._options}, records = true, columns = {{{columns}}})"

    def _keys(self, limit: str = "") -> tuple[str, ...]:
        lines = f"SELECT json FROM read_json_objects({self._options}){limit}"
        query = f"SELECT json_keys(json) AS keys, COUNT(*) FROM ({lines}) GROUP BY keys"
        counted = self._rows(f"{query} ORDER BY 2 DESC, keys")
        every = (name for keys, _ in counted for name in keys or ())
        return (*dict.fromkeys(every), *self._partitions)

    @property
    def _columns(self) -> dict[str, list[str]]:
        return {}  # objects may lack any key

    @cached_property
    def _partitions(self) -> list[str]:
        if not self.files.has_partitions:
            return []
        return self._columns_read_by(self._reader(["k"]))[1:]


def _pointer(name: str) -> str:
    """Return where a JSON object has a key.

    >>> _pointer("a/b")
    "'/a~1b'"
    """
    return literal("/" + name.replace("~", "~0").replace("/", "~1"))


def _type_of(structure: Any) -> str:
    """Return DuckDB's type of a structure of JSON.

    >>> _type_of({"a": ["UBIGINT"]})
    'STRUCT("a" UBIGINT[])'
    """
    if isinstance(structure, dict):
        parts = (f"{quoted(name)} {_type_of(own)}" for name, own in structure.items())
        return f"STRUCT({', '.join(parts)})"
    if isinstance(structure, list):
        return f"{_type_of(structure[0])}[]"
    return "VARCHAR" if structure == "NULL" else str(structure)
