"""Figures on disk: whole, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from calibrant.__about__ import __version__
from calibrant.core.output_files import FIGURE, atomic_write, check_derived, check_named
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from calibrant.displays.grid import ReliabilityGrid

SOFTWARE = {".png": "Software", ".svg": "Creator", ".pdf": "Creator"}
"""What formats call the program that made a figure."""


def check_figure_path(path: Path | None, *, named: bool = True) -> None:
    """Raise where a figure cannot be written, before any work is done.

    `named` says whether the user has named the file.
    """
    if path is None:
        return
    if path.suffix.lower() not in FIGURE.suffixes:
        raise OptionError(
            f"{path}: figures are written as {', '.join(FIGURE.suffixes)}; got "
            f"{path.suffix or 'no ending'!r}."
        )
    (check_named if named else check_derived)(path, FIGURE)


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure and say where."""
    made_by = {SOFTWARE[path.suffix.lower()]: f"calibrant {__version__}"}
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=150, metadata=made_by)
    typer.echo(f"wrote {path}", err=True)


def write_grid(grid: ReliabilityGrid, path: Path) -> None:
    """Write the diagrams of a table, and say where some were left out."""
    write_figure(grid.plot(), path)
    if grid.left_out:
        typer.echo(
            f"only the first {len(grid.displays)} diagrams are drawn, "
            f"{grid.left_out} more are not",
            err=True,
        )
