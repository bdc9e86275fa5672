"""Columns of files without types: all values of a column tell what it holds.

One rule for every engine. A column holds true and false, whole numbers or numbers where
each of its values does; else text. Values that are missing, or blank, do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from calibrant.engines.files import load_polars

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind: TypeAlias = Literal["?", "i8", "f8", "U1"]
"""NumPy's word for true and false, whole numbers, numbers, text."""
BLANKS = " \t\n\r\v\f"
MAX_DIGITS = 18
"""Whole numbers of more digits may not fit into 64 bits."""
WHOLE = rf"\s*[+-]?[0-9]{{1,{MAX_DIGITS}}}\s*"
CODE = rf"\s*[+-]?(0[0-9].*|[0-9]{{{MAX_DIGITS + 1},}})\s*"
"""What loses digits where it is read as a number: 007, or very long whole numbers."""


@dataclass(frozen=True)
class ValueCounts:
    """How many values of a column can be read as what.

    Attributes
    ----------
    values : int
        All values, but for missing and blank ones.
    truth, whole, numbers : int
        Those that are true or false, whole numbers, numbers.
    codes : int
        Those that would lose digits as numbers.
    """

    values: int
    truth: int
    whole: int
    numbers: int
    codes: int = 0

    @property
    def kind(self) -> Kind:
        """Return what the column holds.

        Examples
        --------
        >>> ValueCounts(values=3, truth=0, whole=2, numbers=3).kind
        'f8'
        >>> ValueCounts(values=3, truth=0, whole=2, numbers=2).kind
        'U1'
        """
        if self.values and self.truth == self.values:
            return "?"
        if self.numbers < self.values:
            return "U1"
        return "i8" if self.values and self.whole == self.values else "f8"

    @property
    def kind_kept(self) -> Kind:
        """Return the type in which no value loses anything."""
        return "U1" if self.codes or not self.values else self.kind


def counts_sql(token: str, number: str) -> Mapping[str, str]:
    """Return DuckDB's expressions of the counts of a column.

    Parameters
    ----------
    token : str
        The column, as text.
    number : str
        The column as a number, NULL where it is none.
    """
    blanks = f"'{BLANKS}'"
    where = {
        "values": f"TRIM({token}, {blanks}) <> ''",
        "truth": f"LOWER(TRIM({token}, {blanks})) IN ('true', 'false')",
        "whole": f"REGEXP_FULL_MATCH({token}, '{WHOLE}')",
        "numbers": f"{number} IS NOT NULL",
        "codes": f"REGEXP_FULL_MATCH({token}, '{CODE}')",
    }
    return {name: f"COUNT(*) FILTER ({holds})" for name, holds in where.items()}


def truth_sql(token: str) -> str:
    """Return DuckDB's expression of a column as true and false, else NULL."""
    cases = "WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE"
    return f"CASE LOWER(TRIM({token}, '{BLANKS}')) {cases} END"


def value_counts(column: Any) -> ValueCounts:
    """Return the counts of a polars column of text.

    Examples
    --------
    >>> import polars as pl
    >>> value_counts(pl.Series(["1", " 2.5", "", None])).kind
    'f8'
    """
    pl = load_polars("reading text files")
    text = column.str.strip_chars(BLANKS)
    numbers = text.cast(pl.Float64, strict=False)
    values = int((text != "").sum())
    whole = int(text.str.contains(f"^{WHOLE}$").sum()) if numbers.count() else 0
    return ValueCounts(
        values=values,
        truth=int(text.str.to_lowercase().is_in(["true", "false"]).sum()),
        whole=whole,
        numbers=int(numbers.count()),
        codes=int(text.str.contains(f"^{CODE}$").sum()) if whole else 0,
    )


def as_kind(column: Any, kind: Kind) -> Any:
    """Return a polars column of text in a type that all of its values have."""
    pl = load_polars("reading text files")
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
