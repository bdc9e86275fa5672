"""``calibrant compare``: a file of several models' predictions to their ranking."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli import options
from calibrant.cli.columns import listed, models, reading
from calibrant.cli.figures import check_figure_path, write_figure
from calibrant.cli.output import Format
from calibrant.cli.progress import progress_bar
from calibrant.cli.results import fail_above_threshold, print_comparisons
from calibrant.exceptions import OptionError


def compare(
    source: options.Source,
    y: options.LabelColumn,
    p: options.ModelColumns,
    task: options.TaskName = None,
    method: options.MethodName = "smooth",
    alpha: options.Alpha = 1.0,
    debias: options.Debiased = True,
    by: options.GroupColumns = None,
    weight: options.WeightColumn = None,
    pos_label: options.PositiveLabel = None,
    labels: options.ClassLabels = None,
    scale: options.InputScale = options.Holds.prob,
    confidence: options.Confidence = 0.9,
    seed: options.RandomSeed = 0,
    output: options.Output = Format.table,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs",
            help="With --format csv or markdown: a row a pair instead of a model.",
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw errors and pairs, .png .svg .pdf."),
    ] = None,
    fail_above: options.FailAbove = None,
) -> None:
    """Tell which of several models is better calibrated, and how surely."""
    from calibrant.engines.memory import open_table
    from calibrant.measures.comparison_table import compare_table

    check_figure_path(plot)
    if plot is not None and by is not None:
        raise OptionError("--plot shows one comparison; leave out --by.")
    table = open_table(source)
    held: Any = scale.value
    with progress_bar("comparing") as progress:
        found = compare_table(
            table,
            y=y,
            p=models(p, task),
            by=listed(by),
            method=method,
            alpha=alpha,
            debias="auto" if debias else False,
            sample_weight=weight,
            scale=held,
            confidence=confidence,
            random_state=seed,
            progress=progress,
            **reading(table, y, task, pos_label, labels),
        )
    print_comparisons(found, output, pairs=pairs)
    if plot is not None:
        from calibrant.displays.comparison import ComparisonDisplay

        write_figure(ComparisonDisplay(found[0]).figure(), plot)
    fail_above_threshold(
        [
            (one.key | {"model": standing.model}, standing.estimate)
            for one in found
            for standing in one.standings
        ],
        fail_above,
    )
