"""Tables of a study, from the file ``tables.parquet`` that ``reproduce`` writes.

.. code-block:: markdown

    ```{study-tables} synthetic.parquet
    ```

shows one table per study and kind, with a row per shape and a column per method.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from docutils import nodes
from docutils.parsers.rst import Directive

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = Path(__file__).parents[1] / "data" / "tables"


class StudyTables(Directive):
    """Show all tables of a file below headings."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Build the tables."""
        path = FOLDER / self.arguments[0]
        self.state.document.settings.env.note_dependency(str(path))
        frame = pl.read_parquet(path).fill_nan(None)
        parts: list[nodes.Node] = []
        for (study,), tables in frame.group_by("study", maintain_order=True):
            shown = [
                _table(t) for _, t in tables.group_by("title", maintain_order=True)
            ]
            if study:
                shown.insert(0, nodes.rubric(text=study))
            parts += shown
        return parts


def _table(rows: pl.DataFrame) -> nodes.raw:
    """Return a table of shapes by methods."""
    methods = rows["method"].unique(maintain_order=True).to_list()
    digits = 2 if rows["value"].abs().max() > 1.0 else 4
    head = "".join(f"<th>{escape(name)}</th>" for name in ["", *methods])
    body = ""
    for (shape,), line in rows.group_by("shape", maintain_order=True):
        cells = {
            row["method"]: _cell(row, digits) for row in line.iter_rows(named=True)
        }
        texts = "".join(f"<td>{cells.get(name, '-')}</td>" for name in methods)
        body += f"<tr><td>{escape(str(shape))}</td>{texts}</tr>"
    html = (
        f'<p class="study-title">{escape(rows["title"][0])}</p>'
        f'<div class="wide-table" tabindex="0"><table class="table study">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    return nodes.raw("", html, format="html")


def _cell(row: dict[str, Any], digits: int) -> str:
    """Return a value with its rank, and what stands below it."""
    if row["value"] is None:
        return "-"
    text = f"{row['value']:.{digits}f}"
    if row["rank"] is not None:
        text += f"<sub>{int(row['rank'])}</sub>"
    text = f"<strong>{text}</strong>" if row["rank"] == 1 else text
    below = [
        ("standard_error", f"± {{:.{digits}f}}"),
        ("printed", f"{{:.{digits}f}}"),
        ("ratio", "({:.3f})"),
        ("over_oracle", "{:.2f} x"),
    ]
    notes = [form.format(row[name]) for name, form in below if row[name] is not None]
    return text + "".join(f"<br><small>{note}</small>" for note in notes)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("study-tables", StudyTables)
    return {"parallel_read_safe": True}
