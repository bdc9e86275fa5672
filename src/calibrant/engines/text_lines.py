"""Lines of text files: rows have as many fields as the header.

Polars fills rows that are too short, which may be a file that was cut in the middle of
a number, and takes empty lines for rows. Here neither is a row, as in DuckDB.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from calibrant.exceptions import MissingDependencyError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UNREADABLE = (csv.Error, OSError, EOFError, zlib.error)
"""What damaged files raise, packed or not."""
NOT_UTF_8 = re.compile("[\ud800-\udfff]")
"""What bytes become that are not UTF-8."""
NEVER = "\x01"
"""A separator that is in no line."""


@dataclass(frozen=True)
class WholeLines:
    """The lines of a text file that are rows, below the header.

    Attributes
    ----------
    text : str
        The header and these lines.
    rows : int
        How many rows there are.
    left_out : int
        How many lines are no rows, apart from empty ones.
    first_fault : str
        What is wrong with the first of these.
    unsure : bool
        Whether it is not clear what they are: quotes may hide where they end, and text
        that is not UTF-8 where it is from.
    """

    text: str
    rows: int
    left_out: int = 0
    first_fault: str = ""
    unsure: bool = False


def read_content(path: Path) -> bytes:
    """Return the bytes of a file, unpacked."""
    try:
        if path.suffix == ".zst":
            return _unpacked(path)
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                return file.read()
        return path.read_bytes()
    except UNREADABLE as error:
        raise SourceError(f"{path} cannot be read: {error}.") from None


def _unpacked(path: Path) -> bytes:
    try:
        import polars as pl
    except ImportError:
        raise MissingDependencyError.for_extra(
            "reading .zst files", "polars", "data"
        ) from None
    how: dict[str, Any] = {"has_header": False, "infer_schema": False, "glob": False}
    lines = pl.read_csv(path, separator=NEVER, quote_char=None, **how)
    return "\n".join(line or "" for (line,) in lines.iter_rows()).encode()


def has_all_fields(content: bytes, separator: str, *, fields: int, lines: int) -> bool:
    r"""Tell whether every line surely has all fields, from the number of separators.

    Examples
    --------
    >>> has_all_fields(b"a,b\n1,\n", ",", fields=2, lines=2)
    True
    """
    expected = (fields - 1) * lines
    return b'"' not in content and content.count(separator.encode()) == expected


def whole_lines(content: bytes, separator: str) -> WholeLines:
    r"""Return the lines that are rows.

    Examples
    --------
    >>> found = whole_lines(b"a,b\n1,2\n\n3\n", ",")
    >>> found.text, found.first_fault
    ('a,b\n1,2\n', 'line 4 has 1 field, the header has 2')
    """
    kept: list[str] = []
    faults: list[str] = []
    fields, unsure = 0, False
    for number, text, found in _records(content, separator):
        if not found and fields != 1:
            continue
        fields = fields or len(found)
        if NOT_UTF_8.search(text):
            return WholeLines("", 0, 1, f"line {number} is not UTF-8", unsure=True)
        if len(found) == fields + 1 and text.rstrip("\r\n").endswith(separator):
            kept.append(text.rstrip("\r\n")[:-1] + "\n")
        elif found and len(found) != fields:
            told = f"{len(found)} field" + ("s" if len(found) > 1 else "")
            faults.append(f"line {number} has {told}, the header has {fields}")
            unsure |= '"' in text
        else:
            kept.append(text)
    first = faults[0] if faults else ""
    return WholeLines("".join(kept), len(kept) - 1, len(faults), first, unsure)


def _records(content: bytes, separator: str) -> Iterator[tuple[int, str, list[str]]]:
    """Give the number of the first line of each record, its text and its fields."""
    read: list[str] = []

    def lines() -> Iterator[str]:
        text = content.decode("utf-8-sig", errors="surrogateescape")
        for line in StringIO(text, newline=""):
            read.append(line)
            yield line

    reader = csv.reader(lines(), delimiter=separator)
    first = 1
    for fields in reader:
        yield first, "".join(read), fields
        first = reader.line_num + 1
        read.clear()
