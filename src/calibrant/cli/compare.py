"""``calibrant compare``: a file of several models' predictions to their ranking."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import options
from calibrant.cli.figures import check_figure_path, write_figure
from calibrant.cli.output import Format
from calibrant.cli.predictions import read_predictions
from calibrant.cli.progress import progress_bar
from calibrant.cli.results import fail_above_threshold, print_comparison
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHOD
from calibrant.core.scales import MAX_DROPPED
from calibrant.exceptions import OptionError


def compare(
    source: options.Sources,
    y: options.LabelColumns,
    p: options.ModelColumns,
    task: options.TaskName = None,
    method: options.MethodName = DEFAULT_METHOD,
    alpha: options.Alpha = 1.0,
    debias: options.Debiased = True,
    by: options.GroupColumns = None,
    model: options.ModelColumn = None,
    id_: options.IdColumn = None,
    weight: options.WeightColumn = None,
    pos_label: options.PositiveLabel = None,
    labels: options.ClassLabels = None,
    scale: options.InputScale = None,
    bad_rows: options.BadRowsRule = "error",
    max_dropped: options.MaxDropped = MAX_DROPPED,
    confidence: options.Confidence = DEFAULT_CONFIDENCE,
    seed: options.RandomSeed = 0,
    output: options.Output = Format.table,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs",
            help="With --format csv or markdown: one row per pair, not per model.",
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw errors and pairs, .png .svg .pdf."),
    ] = None,
    fail_above: options.FailAbove = None,
) -> None:
    """Tell which of several models is better calibrated, and how surely."""
    from calibrant.measures.comparison import compare as compare_models

    check_figure_path(plot)
    if plot is not None and by is not None:
        raise OptionError("--plot shows one comparison; leave out --by.")
    with progress_bar("comparing") as progress:
        preds = read_predictions(
            source,
            y=y,
            p=p,
            by=by,
            model=model,
            id=id_,
            task=task,
            weight=weight,
            pos_label=pos_label,
            labels=labels,
            scale=scale,
            bad_rows=bad_rows,
            max_dropped=max_dropped,
            rows_for="differences on the same rows",
        )
        found = compare_models(
            preds,
            method=method,
            alpha=alpha,
            debias="auto" if debias else False,
            confidence=confidence,
            random_state=seed,
            progress=progress,
        )
    print_comparison(found, output, pairs=pairs, classes=preds.store.class_counts())
    if plot is not None:
        from calibrant.displays.comparison import ComparisonDisplay

        write_figure(ComparisonDisplay.from_comparison(found).figure(), plot)
    fail_above_threshold(
        [
            (one.key | {"model": standing.model}, standing.estimate)
            for one in found.groups or (found,)
            for standing in one.standings
        ],
        fail_above,
    )
