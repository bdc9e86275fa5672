"""``calibrant plot``: a file of predictions to reliability diagrams."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from calibrant._validation.scales import MAX_DROPPED
from calibrant.cli import options
from calibrant.cli.figures import check_figure_path, drawn_columns, write_grid
from calibrant.cli.progress import progress_bar
from calibrant.cli.rows import open_any, refuse_own_source
from calibrant.exceptions import OptionError


class Kind(StrEnum):
    """What a diagram shows."""

    diagonal = "diagonal"
    centres = "centres"
    bars = "bars"


def plot(
    source: options.Sources,
    out: Annotated[
        Path, typer.Option("--out", help="Where to write: .png, .svg or .pdf.")
    ],
    y: options.LabelColumnUnlessCells = None,
    p: options.ModelColumnsUnlessCells = None,
    task: options.TaskName = None,
    method: options.MethodName = "es15",
    kind: Annotated[
        Kind,
        typer.Option(
            "--kind",
            help="diagonal: filled up to the map; bars: shares of positives; "
            "centres: with dots and lines to the diagonal.",
        ),
    ] = Kind.diagonal,
    axes: Annotated[
        options.AxesScale,
        typer.Option("--axes", help="Probabilities, or logits that show both ends."),
    ] = options.AxesScale.prob,
    histogram: Annotated[
        bool,
        typer.Option(
            "--histogram/--no-histogram", help="How predictions are distributed."
        ),
    ] = True,
    by: options.GroupColumns = None,
    weight: options.WeightColumn = None,
    pos_label: options.PositiveLabel = None,
    labels: options.ClassLabels = None,
    scale: options.InputScale = None,
    bad_rows: options.BadRowsRule = "raise",
    max_dropped: options.MaxDropped = MAX_DROPPED,
    seed: options.RandomSeed = 0,
) -> None:
    """Draw reliability diagrams of predictions in a file, a diagram a model."""
    from calibrant.displays.tables import reliability_of_table

    check_figure_path(out)
    refuse_own_source(source, out)
    if task == "classwise":
        raise OptionError(
            "a diagram shows one event; use --task confidence or a class."
        )
    with progress_bar("drawing"):
        table, wanted = open_any(
            source,
            y=y,
            p=p,
            task=task,
            weight=weight,
            by=by,
            pos_label=pos_label,
            labels=labels,
            scale=scale,
            bad_rows=bad_rows,
            max_dropped=max_dropped,
        )
        grid = reliability_of_table(
            table,
            **drawn_columns(wanted),
            kind=kind.value,
            scale=axes.value,
            method=method,
            histogram=histogram,
            random_state=seed,
        )
        write_grid(grid, out)
