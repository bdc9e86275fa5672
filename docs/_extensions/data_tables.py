"""Tables of results, from the CSV files in docs/data that studies write.

.. code-block:: markdown

    ```{data-table} arena.csv
    :columns: method, rows, excess
    :where: kind=binary
    ```

Readers can sort them by any column.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = Path(__file__).parents[1] / "data"


class DataTable(Directive):
    """Show some columns and rows of a CSV file."""

    required_arguments = 1
    option_spec: ClassVar = {
        "columns": directives.unchanged,
        "where": directives.unchanged,
        "caption": directives.unchanged,
        "digits": directives.nonnegative_int,
    }

    def run(self) -> list[nodes.Node]:
        """Build the table."""
        path = FOLDER / self.arguments[0]
        self.state.document.settings.env.note_dependency(str(path))
        with path.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if self._chosen(row)]
        if not rows:
            raise self.error(f"{path.name}: no row is left")
        listed = self.options.get("columns", ",".join(rows[0])).split(",")
        names = [name.strip() for name in listed]
        table = nodes.table(classes=["sortable"])
        if "caption" in self.options:
            table += nodes.title(text=self.options["caption"])
        group = nodes.tgroup(cols=len(names))
        table += group
        group += [nodes.colspec(colwidth=1) for _ in names]
        group += nodes.thead("", _row(names))
        body = nodes.tbody()
        group += body
        body += [_row([self._format(row[name]) for name in names]) for row in rows]
        return [nodes.container("", table, classes=["wide-table"])]

    def _chosen(self, row: dict[str, str]) -> bool:
        conditions = self.options.get("where", "").split(",")
        pairs = (condition.strip().partition("=") for condition in conditions)
        return all(row[name] == value for name, _, value in pairs if name)

    def _format(self, value: str) -> str:
        if "digits" not in self.options or "." not in value:
            return value
        try:
            return f"{float(value):.{self.options['digits']}f}"
        except ValueError:
            return value


def _row(cells: list[str]) -> nodes.row:
    entries = [nodes.entry("", nodes.paragraph(text=cell)) for cell in cells]
    return nodes.row("", *entries)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("data-table", DataTable)
    return {"parallel_read_safe": True}
