"""Tables as Markdown, LaTeX and HTML, in the layout of the paper.

The rank is a subscript, the best of a row is bold, the last row has average ranks.
Beneath each value stand its standard error and, for the paper's grid, the value that
the paper printed and the ratio of ours to it; with the oracle, the ratio to its value.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.experiments.tables import ResultTable

AVERAGE = "average rank"


def caption(table: ResultTable) -> str:
    """Return what a table shows and how sure it is, in words."""
    parts = [
        f"{table.study}: {table.kind.title}."
        if table.study
        else f"{table.kind.title}.",
        "Rank as subscript, the best in bold; below, the standard error",
    ]
    if np.isfinite(table.printed).any():
        parts[-1] += ", the value the paper printed"
        parts[-1] += "" if table.kind.signed else " and in brackets ours over it"
    if np.isfinite(table.over_oracle).any():
        parts[-1] += " and the ratio to the oracle, which is out of competition"
    parts[-1] += "."
    parts.append(
        f"Only {table.draws} draws of labels are independent: labels depend on size "
        f"and seed alone."
    )
    if table.failures:
        parts.append(f"{table.failures} cells failed; see the column failure.")
    return " ".join(parts)


def shown(value: float, digits: int) -> str:
    """Return a number, or a dash where there is none."""
    return f"{value:.{digits}f}" if np.isfinite(value) else "-"


def _notes(table: ResultTable, row: int, column: int) -> list[str]:
    """Return what stands beneath a value."""
    digits = table.kind.digits
    error, printed = table.errors[row, column], table.printed[row, column]
    notes = []
    if np.isfinite(error):
        notes.append(f"± {shown(error, digits)}")
    if np.isfinite(printed):
        ratio = "" if table.kind.signed else shown(table.ratios[row, column], 3)
        notes.append(shown(printed, digits) + (f" ({ratio})" if ratio else ""))
    over = table.over_oracle[row, column]
    if np.isfinite(over):
        notes.append(f"{shown(over, 2)} x")
    return notes


def _rows(
    table: ResultTable, cell: Callable[[str, float, list[str]], str]
) -> list[list[str]]:
    """Return the text of all cells, the shape first, average ranks last."""
    lines = []
    ranks = table.ranks
    for i, shape in enumerate(table.shapes):
        values = [
            cell(
                shown(table.values[i, j], table.kind.digits),
                ranks[i, j],
                _notes(table, i, j) if np.isfinite(table.values[i, j]) else [],
            )
            for j in range(len(table.methods))
        ]
        lines.append([shape, *values])
    return [*lines, [AVERAGE, *(shown(rank, 1) for rank in table.average_ranks)]]


def as_markdown(table: ResultTable) -> str:
    """Return a table as GitHub shows it."""

    def cell(value: str, rank: float, notes: list[str]) -> str:
        text = f"{value}<sub>{int(rank)}</sub>" if np.isfinite(rank) else value
        text = f"**{text}**" if rank // 1 == 1 else text
        return "<br>".join([text, *(f"<sub>{note}</sub>" for note in notes)])

    head = ["", *table.methods]
    lines = [head, ["---", *["---:"] * len(table.methods)], *_rows(table, cell)]
    return (
        "\n".join("| " + " | ".join(line) + " |" for line in lines)
        + f"\n\n{caption(table)}\n"
    )


def as_latex(table: ResultTable) -> str:
    r"""Return a table for a paper; it needs the package booktabs."""

    def cell(value: str, rank: float, notes: list[str]) -> str:
        text = f"{value}_{{{int(rank)}}}" if np.isfinite(rank) else value
        text = rf"\mathbf{{{text}}}" if rank // 1 == 1 else text
        signs = [note.replace("±", r"\pm") for note in notes]
        small = "".join(rf"\\ \scriptstyle {sign}" for sign in signs)
        return (
            rf"$\begin{{array}}{{r}}{text}{small}\end{{array}}$"
            if small
            else (f"${text}$")
        )

    rows = _rows(table, cell)
    lines = [" & ".join(row) + r" \\" for row in rows]
    words = caption(table).replace("c_hat", r"$\hat{c}$").replace("c*", "$c^*$")
    words = words.replace("^2", "$^2$").replace("|", r"$\vert$")
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{words}}}",
            rf"\begin{{tabular}}{{l{'r' * len(table.methods)}}}",
            r"\toprule",
            " & ".join(["", *table.methods]) + r" \\",
            r"\midrule",
            *lines[:-1],
            r"\midrule",
            lines[-1],
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def as_html(table: ResultTable) -> str:
    """Return a table as an HTML element."""

    def cell(value: str, rank: float, notes: list[str]) -> str:
        text = f"{value}<sub>{int(rank)}</sub>" if np.isfinite(rank) else value
        text = f"<b>{text}</b>" if rank // 1 == 1 else text
        return text + "".join(f"<br><small>{escape(note)}</small>" for note in notes)

    head = "".join(f"<th>{escape(name)}</th>" for name in ["", *table.methods])
    body = "\n".join(
        f"<tr><th>{escape(row[0])}</th>"
        + "".join(f"<td>{text}</td>" for text in row[1:])
        + "</tr>"
        for row in _rows(table, cell)
    )
    return (
        f"<table>\n<caption>{escape(caption(table))}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n"
    )


STYLE = (
    "body{font:15px system-ui,sans-serif;margin:2em}table{border-collapse:collapse;"
    "margin:2em 0}th,td{padding:.3em .7em;text-align:right;vertical-align:top}"
    "thead,tbody tr:last-child{border:solid #888;border-width:1px 0}"
    "caption{text-align:left;max-width:60em;padding:.5em 0}small{color:#555}"
)


def html_page(title: str, notes: list[str], tables: list[str]) -> str:
    """Return a page of tables that needs nothing beside itself."""
    told = "".join(f"<p>{escape(note)}</p>\n" for note in notes)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{told}{''.join(tables)}</body></html>\n"
    )
