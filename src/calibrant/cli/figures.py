"""Figures on disk: whole, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from calibrant._atomic import replacing
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from calibrant.displays.grid import ReliabilityGrid

SUFFIXES = (".png", ".svg", ".pdf")


def check_figure_path(path: Path | None) -> None:
    """Refuse a name that cannot be written, before any work is done."""
    if path is None:
        return
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(
            f"{path}: figures are written as {', '.join(SUFFIXES)}; got "
            f"{path.suffix or 'no ending'!r}."
        )
    if not path.resolve().parent.is_dir():
        raise OptionError(f"{path}: the folder {path.parent} does not exist.")
    if path.is_dir():
        raise OptionError(f"{path} is a folder; name a file in it.")


def drawn_columns(wanted: dict[str, Any]) -> dict[str, Any]:
    """Return what is wanted of a table as diagrams call it: scale is that of axes."""
    others = ("scale", "bad_rows", "max_dropped")
    given = {n: value for n, value in wanted.items() if n not in others}
    return given | ({"input_scale": wanted["scale"]} if "scale" in wanted else {})


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure and say where."""
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150)
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
