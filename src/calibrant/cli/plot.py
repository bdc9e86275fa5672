"""``calibrant plot``: a file of predictions to reliability diagrams."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import options
from calibrant.cli.data_options import DataOptions, check_not_source, takes_predictions
from calibrant.cli.figures import check_figure_path, write_grid
from calibrant.cli.progress import progress_bar
from calibrant.core.defaults import DEFAULT_METHOD
from calibrant.exceptions import OptionError


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
        Path, typer.Option("--out", help="Where to write: .png, .svg or .pdf.")
    ],
    method: options.MethodName = DEFAULT_METHOD,
    kind: Annotated[
        Kind,
        typer.Option(
            "--kind",
            help="diagonal: filled between curve and diagonal; bars: observed rates; "
            "centres: with dots and lines to the diagonal.",
        ),
    ] = Kind.diagonal,
    axes: Annotated[
        Axes,
        typer.Option(
            "--axes", help="Probabilities, or logits, which spread both ends."
        ),
    ] = Axes.prob,
    histogram: Annotated[
        bool,
        typer.Option(
            "--histogram/--no-histogram", help="How predictions are distributed."
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
