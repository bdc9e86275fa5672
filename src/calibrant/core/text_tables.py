"""Tables as text: aligned, in Markdown, or in LaTeX."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from calibrant.core.parameters import check_choice
from calibrant.core.wording import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

TextFormat: TypeAlias = Literal["text", "markdown", "latex"]
LATEX_SIGNS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
MINUS = re.compile(r"(?<!\w)-(?=\d)")
"""A hyphen before a number is a minus; in words and exponents it stays."""


def text_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[bool],
    format: TextFormat = "text",  # noqa: A002
) -> str:
    r"""Return a table as text; `right` says which columns are flush right.

    Examples
    --------
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
