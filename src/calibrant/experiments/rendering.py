"""Tables as Markdown, LaTeX and HTML, in the layout of the paper.

The rank is a subscript, the best value of a row is bold, the last row has average
ranks. Below each value are its standard error and, for the paper's grid, the value
that the paper printed and the ratio of ours to it; with the oracle, the ratio to its
value.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from calibrant.experiments.tables import ResultTable

    Place = tuple[int, int]

AVERAGE = "average rank"


def caption(table: ResultTable) -> str:
    """Return what a table shows and how certain it is, in words."""
    study = f"{table.study}: " if table.study else ""
    below = "the standard error"
    if np.isfinite(table.printed).any():
        below += ", the value the paper printed"
        below += "" if table.kind.signed else " and in brackets ours divided by it"
    if np.isfinite(table.over_oracle).any():
        below += " and the ratio to the oracle, which is not ranked"
    failed = f"{table.failures} cell{'s' * (table.failures > 1)} failed"
    return (
        f"{study}{table.kind.title}. Rank as subscript, the best in bold; below, "
        f"{below}. Only {table.draws} draws of labels are independent: labels depend "
        f"on size and seed alone."
    ) + (f" {failed}; see the column failure." if table.failures else "")


def format_number(value: float, digits: int) -> str:
    """Return a number, or a dash where there is none."""
    return f"{value:.{digits}f}" if np.isfinite(value) else "-"


def _notes(table: ResultTable, at: Place) -> list[str]:
    """Return the lines below a value."""
    digits = table.kind.digits
    notes = []
    if np.isfinite(table.errors[at]):
        notes.append(f"± {table.errors[at]:.{digits}f}")
    if np.isfinite(table.printed[at]):
        ratio = "" if table.kind.signed else f" ({format_number(table.ratios[at], 3)})"
        notes.append(f"{table.printed[at]:.{digits}f}{ratio}")
    if np.isfinite(table.over_oracle[at]):
        notes.append(f"{table.over_oracle[at]:.2f} x")
    return notes if np.isfinite(table.values[at]) else []


class _Markup(NamedTuple):
    """How a language writes a ranked value, the best value, and a note below it."""

    ranked: str
    best: str
    note: str


MARKDOWN = _Markup("{}<sub>{}</sub>", "**{}**", "<br><sub>{}</sub>")
HTML = _Markup("{}<sub>{}</sub>", "<b>{}</b>", "<br><small>{}</small>")
LATEX = _Markup("{}_{{{}}}", r"\mathbf{{{}}}", r"\\ \scriptstyle {}")


def _rows(table: ResultTable, markup: _Markup) -> list[list[str]]:
    """Return the text of all cells, the shape first, average ranks last."""
    ranks = table.ranks
    columns = range(len(table.methods))
    rows = [
        [shape, *(_cell(table, (i, j), ranks[i, j], markup) for j in columns)]
        for i, shape in enumerate(table.shapes)
    ]
    return [*rows, [AVERAGE, *(format_number(r, 1) for r in table.average_ranks)]]


def _cell(table: ResultTable, at: Place, rank: float, markup: _Markup) -> str:
    text = format_number(table.values[at], table.kind.digits)
    text = markup.ranked.format(text, int(rank)) if np.isfinite(rank) else text
    text = markup.best.format(text) if rank // 1 == 1 else text
    return text + "".join(markup.note.format(note) for note in _notes(table, at))


def as_markdown(table: ResultTable) -> str:
    """Return a table as GitHub shows it."""
    rule = ["---", *["---:"] * len(table.methods)]
    lines = [["", *table.methods], rule, *_rows(table, MARKDOWN)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{text}\n\n{caption(table)}\n"


def as_latex(table: ResultTable) -> str:
    r"""Return a table for a paper; it needs the package booktabs."""
    *body, average = _rows(table, LATEX)
    lines = [" & ".join([row[0], *map(_as_formula, row[1:])]) for row in body]
    text = caption(table).replace("c_hat", r"$\hat{c}$").replace("c*", "$c^*$")
    text = text.replace("^2", "$^2$").replace("|", r"$\vert$")
    head, foot = " & ".join(["", *table.methods]), " & ".join(average)
    parts = [r"\toprule", _ended(head), r"\midrule", *map(_ended, lines)]
    parts += [r"\midrule", _ended(foot), r"\bottomrule"]
    tabular = rf"\begin{{tabular}}{{l{'r' * len(table.methods)}}}"
    start = [r"\begin{table}", rf"\caption{{{text}}}", tabular]
    return "\n".join([*start, *parts, r"\end{tabular}", r"\end{table}", ""])


def _ended(line: str) -> str:
    return rf"{line} \\"


def _as_formula(cell: str) -> str:
    if r"\\" not in cell:
        return f"${cell}$"
    cell = cell.replace("±", r"\pm")
    return rf"$\begin{{array}}{{r}}{cell}\end{{array}}$"


def as_html(table: ResultTable) -> str:
    """Return a table as an HTML element."""
    head = "".join(f"<th>{escape(name)}</th>" for name in ["", *table.methods])
    body = "\n".join(
        f"<tr><th>{escape(shape)}</th>"
        + "".join(f"<td>{text}</td>" for text in cells)
        + "</tr>"
        for shape, *cells in _rows(table, HTML)
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
    """Return a self-contained page of tables."""
    paragraphs = "".join(f"<p>{escape(note)}</p>\n" for note in notes)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{paragraphs}{''.join(tables)}</body></html>\n"
    )
