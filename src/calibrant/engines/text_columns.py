"""Columns of files without types: all values of a column tell what it holds.

One rule for every engine. A column holds true and false, whole numbers or numbers where
each of its values does; else text. Values that are missing, or blank, do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from calibrant.engines.files import load_polars

if TYPE_CHECKING:
    from types import ModuleType

Kind: TypeAlias = Literal["?", "i8", "f8", "U1"]
"""NumPy's word for true and false, whole numbers, numbers, text."""
BLANKS = " \t\n\r\v\f"
WHOLE = "[+-]?(0|[1-9][0-9]{0,17})"
"""Whole numbers that fit into 64 bits."""
CODE = "[+-]?0[0-9]{1,17}"
"""Whole numbers that lose digits as such, 007."""
LONG = r"[+-]?(0[0-9]+\..*|[0-9]{19,})"
"""Other numbers that may lose digits."""


@dataclass(frozen=True)
class ValueCounts:
    """How many values of a column are what.

    Attributes
    ----------
    text, truth : int
        Text; and text that says true or false.
    whole, code, number, long : int
        Whole numbers; those that lose digits as such; other numbers; and those that may
        lose digits.
    """

    text: int = 0
    truth: int = 0
    whole: int = 0
    code: int = 0
    number: int = 0
    long: int = 0

    @property
    def kind(self) -> Kind:
        """Return what the column holds; where it holds nothing, numbers.

        Examples
        --------
        >>> ValueCounts(whole=2, number=1).kind, ValueCounts(whole=2, text=1).kind
        ('f8', 'U1')
        """
        numbers = self.whole + self.code + self.number + self.long
        if self.text or (self.truth and numbers):
            return "U1"
        if self.truth:
            return "?"
        return "i8" if numbers and not self.number + self.long else "f8"

    @property
    def kind_kept(self) -> Kind:
        """Return the type in which no value loses anything."""
        return "U1" if self.code or self.long or self == ValueCounts() else self.kind


def class_sql(token: str, number: str) -> str:
    """Return DuckDB's expression for what a value is, as in `ValueCounts`.

    Parameters
    ----------
    token : str
        The value, as text.
    number : str
        The value as a number, NULL where it is none.
    """
    blanks = f"'{BLANKS}'"

    def matches(pattern: str) -> str:
        return rf"REGEXP_FULL_MATCH({token}, '\s*{pattern}\s*')"

    return f"""
        CASE WHEN ({number}) IS NULL THEN
            CASE WHEN TRIM({token}, {blanks}) = '' OR {token} IS NULL THEN NULL
            WHEN LOWER(TRIM({token}, {blanks})) IN ('true', 'false') THEN 'truth'
            ELSE 'text' END
        WHEN {matches(WHOLE)} THEN 'whole' WHEN {matches(CODE)} THEN 'code'
        WHEN {matches(LONG)} THEN 'long' ELSE 'number' END"""


def truth_sql(token: str) -> str:
    """Return DuckDB's expression of a column as true and false, else NULL."""
    cases = "WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE"
    return f"CASE LOWER(TRIM({token}, '{BLANKS}')) {cases} END"


def value_counts(column: Any) -> ValueCounts:
    """Return what the values of a polars column of text are.

    Examples
    --------
    >>> import polars as pl
    >>> value_counts(pl.Series(["1", " 2.5", "", None]))
    ValueCounts(text=0, truth=0, whole=1, code=0, number=1, long=0)
    """
    pl = _polars()
    text = column.str.strip_chars(BLANKS)
    text = text.filter(text != "")
    is_number = text.cast(pl.Float64, strict=False).is_not_null()
    numbers, others = text.filter(is_number), text.filter(~is_number)
    truth = int(others.str.to_lowercase().is_in(["true", "false"]).sum())
    whole, code, long = (
        int(numbers.str.contains(f"^{pattern}$").sum())
        for pattern in (WHOLE, CODE, LONG)
    )
    rest = len(numbers) - whole - code - long
    return ValueCounts(len(others) - truth, truth, whole, code, rest, long)


def as_kind(column: Any, kind: Kind) -> Any:
    """Return a polars column of text in a type that all of its values have."""
    pl = _polars()
    if kind == "U1":
        return column
    text = column.str.strip_chars(BLANKS)
    if kind == "?":
        truth = {"true": True, "false": False}
        lower = text.str.to_lowercase()
        return lower.replace_strict(truth, default=None, return_dtype=pl.Boolean)
    return text.cast(pl.Int64 if kind == "i8" else pl.Float64, strict=False)


def typed_column(column: Any) -> Any:
    """Return a polars column of text in the type that its values have.

    Examples
    --------
    >>> import polars as pl
    >>> typed_column(pl.Series(["True", "false"])).to_list()
    [True, False]
    """
    return as_kind(column, value_counts(column).kind)


def typed_frame(frame: Any) -> Any:
    """Return a polars data frame of text with types in which no value loses anything.

    Examples
    --------
    >>> import polars as pl
    >>> typed_frame(pl.DataFrame({"id": ["007"], "p": ["0.50"]})).rows()
    [('007', 0.5)]
    """
    kept = (as_kind(column, value_counts(column).kind_kept) for column in frame)
    return frame.with_columns(*kept)


def _polars() -> ModuleType:
    return load_polars("reading text files")
