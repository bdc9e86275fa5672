"""Tables as text: aligned, in Markdown, in LaTeX, or as CSV."""

from __future__ import annotations

import csv
import io
import math
import re
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from calibrant.core.formatting import fixed
from calibrant.core.parameters import check_choice
from calibrant.core.wording import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import Frame

TextFormat: TypeAlias = Literal["text", "markdown", "latex"]
TableFormat: TypeAlias = Literal["text", "markdown", "latex", "csv"]
DIGITS = 4
"""Decimals of numbers in tables of columns."""
LATEX_SIGNS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
MINUS = re.compile(r"(?<!\w)-(?=\d)")
"""A hyphen before a number is a minus; in words and exponents it stays."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def text_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[bool],
    format: TextFormat = "text",  # noqa: A002
) -> str:
    r"""Return a table as text; `right` says which columns are flush right.

    >>> print(text_table(["a", "b"], [["x", "1"], ["y", "10"]], [False, True]))
    a   b
    x   1
    y  10
    >>> print(text_table(["a|", "b"], [["x", "1"]], [False, True], "markdown"))
    | a\| | b |
    |---|---:|
    | x | 1 |
    """
    check_choice(format, get_args(TextFormat), name="format")
    lines = [[visible(cell) for cell in line] for line in (head, *rows)]
    if format == "markdown":
        return _markdown(lines, right)
    return _latex(lines, right) if format == "latex" else _aligned(lines, right)


def frame_table(frame: Frame, format: TableFormat = "text") -> str:  # noqa: A002
    """Return columns as a table as text, numbers flush right.

    CSV has all digits of numbers, and formulas marked as `csv_value` does.

    >>> import numpy as np
    >>> print(frame_table({"n": np.array([9, 10]), "low": np.array([0.25, np.nan])}))
     n     low
     9  0.2500
    10       -
    """
    check_choice(format, get_args(TableFormat), name="format")
    if format == "csv":
        return _csv(frame)
    numbers = [values.dtype.kind in "if" for values in frame.values()]
    return text_table(list(frame), shown_rows(frame), numbers, format)


def _csv(frame: Frame) -> str:
    rows = zip(*(values.tolist() for values in frame.values()), strict=True)
    lines = []
    for row in [tuple(frame), *rows]:
        line = io.StringIO()
        # Both signs that end a line in some system are put in quotes.
        csv.writer(line, lineterminator="\r\n").writerow(map(csv_value, row))
        lines.append(line.getvalue().removesuffix("\r\n"))
    return "\n".join(lines)


def csv_value(value: Any) -> Any:
    """Return a value for CSV; text that spreadsheets take for a formula is marked.

    Such text begins with one of the signs of `FORMULA` and is not a number. It gets an
    apostrophe in front, by which spreadsheets know text.

    >>> csv_value("=1+1"), csv_value("-x"), csv_value("-1.5"), csv_value(-1.5)
    ("'=1+1", "'-x", '-1.5', -1.5)
    """
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    return value if NUMBER.fullmatch(value) else f"'{value}"


def shown_rows(frame: Frame) -> list[list[str]]:
    """Return the rows of columns as text, a hyphen where a value is missing.

    All numbers of a column have the same decimals: none if all of them are whole.
    """
    columns = (_shown(values.tolist()) for values in frame.values())
    return [list(row) for row in zip(*columns, strict=True)]


def _shown(values: list[Any]) -> list[str]:
    numbers = [value for value in values if isinstance(value, float)]
    finite = [number for number in numbers if math.isfinite(number)]
    decimals = 0 if all(number.is_integer() for number in finite) else DIGITS
    return [_shown_value(value, decimals) for value in values]


def _shown_value(value: Any, decimals: int) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    return fixed(value, decimals) if isinstance(value, float) else str(value)


def _aligned(lines: list[list[str]], right: Sequence[bool]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def _markdown(lines: list[list[str]], right: Sequence[bool]) -> str:
    head, *rows = (
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |"
        for line in lines
    )
    rule = "|" + "|".join("---:" if flush else "---" for flush in right) + "|"
    return "\n".join([head, rule, *rows])


def _latex(lines: list[list[str]], right: Sequence[bool]) -> str:
    """Return a tabular, which needs the package booktabs."""
    head, *rows = (" & ".join(map(_latex_cell, line)) for line in lines)
    columns = "".join("r" if flush else "l" for flush in right)
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            rf"{head} \\",
            r"\midrule",
            *(rf"{row} \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _latex_cell(text: str) -> str:
    return MINUS.sub("$-$", "".join(LATEX_SIGNS.get(sign, sign) for sign in text))
