"""``calibrant plot``, and figures on disk: whole, or not at all."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.__about__ import __version__
from calibrant.cli import options
from calibrant.cli.data_options import DataOptions, check_not_source, takes_predictions
from calibrant.cli.progress import progress_bar
from calibrant.core.defaults import DEFAULT_METHOD
from calibrant.core.output_files import FIGURE, atomic_write, check_derived, check_named
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from calibrant.displays.grid import ReliabilityGrid


class Kind(StrEnum):
    """What a diagram shows."""

    diagonal = "diagonal"
    centres = "centres"
    bars = "bars"


class Axes(StrEnum):
    """What the axes of a diagram show."""

    prob = "prob"
    logit = "logit"


@takes_predictions("engine", "id_")
def plot(
    data: DataOptions,
    out: Annotated[
        Path, typer.Option("--out", help="File to write: .png, .svg or .pdf.")
    ],
    method: options.MethodName = DEFAULT_METHOD,
    kind: Annotated[
        Kind,
        typer.Option(
            "--kind",
            help="diagonal: filled between curve and diagonal; bars: bars of observed "
            "rates; centres: bars with dots and lines to the diagonal.",
        ),
    ] = Kind.diagonal,
    axes: Annotated[
        Axes,
        typer.Option(
            "--axes", help="Probability axes, or logit axes, which stretch both ends."
        ),
    ] = Axes.prob,
    histogram: Annotated[
        bool,
        typer.Option(
            "--histogram/--no-histogram",
            help="Show how the predictions are distributed.",
        ),
    ] = True,
    seed: options.RandomSeed = 0,
) -> None:
    """Draw one reliability diagram per model."""
    from calibrant.displays.grid import ReliabilityGrid

    check_figure_path(out)
    check_not_source(data.source, out)
    if data.task == "classwise":
        raise OptionError(
            "a diagram shows one event; use --task confidence or a class."
        )
    with progress_bar("drawing"):
        grid = ReliabilityGrid.from_predictions(
            data.predictions(prefer_memory=True),
            kind=kind.value,
            axes=axes.value,
            method=method,
            histogram=histogram,
            random_state=seed,
        )
        write_grid(grid, out)


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
            f"{path.suffix or 'no extension'!r}."
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
            f"only the first {len(grid.displays)} diagrams are drawn; "
            f"{grid.left_out} more are omitted",
            err=True,
        )
