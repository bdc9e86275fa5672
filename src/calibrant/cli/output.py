"""Frames on standard output."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import typer

from calibrant.core.text_tables import frame_table, shown_rows
from calibrant.core.wording import visible
from calibrant.report.json_numbers import rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calibrant.core.array_types import Frame

WIDEST = 400


Format: TypeAlias = Literal["table", "json", "csv", "markdown", "latex"]
"""How results are printed."""


def print_frame(
    frame: Frame, output: Format, extra: Mapping[str, Any] | None = None
) -> None:
    """Print a frame; JSON also carries what `extra` holds."""
    if output == "json":
        content = {"rows": rows_of(frame)} | dict(extra or {})
        typer.echo(json.dumps(content, indent=2, allow_nan=False, default=str))
    elif output != "table":
        typer.echo(frame_table(frame, output))
    else:
        _print_table(frame)


def _print_table(frame: Frame) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, values in frame.items():
        number = values.dtype.kind in "if"
        table.add_column(
            escape(visible(name)),
            justify="right" if number else "left",
            no_wrap=number,
            overflow="fold",
        )
    for cells in shown_rows(frame):
        table.add_row(*(escape(visible(cell)) for cell in cells))
    console = Console(highlight=False)
    if not console.is_terminal:  # a file or a pipe has no width to keep to
        console.width = max(console.width, WIDEST)
    console.print(table)
