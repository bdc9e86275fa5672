"""``calibrant compare``: a file of several models' predictions to their ranking."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import options
from calibrant.cli.data_options import DataOptions, takes_predictions
from calibrant.cli.plot import check_figure_path, write_figure
from calibrant.cli.progress import progress_bar
from calibrant.cli.results import (
    check_gate,
    fail_above_threshold,
    print_comparison,
)
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHOD
from calibrant.exceptions import OptionError


@takes_predictions("engine")
def compare(
    data: DataOptions,
    method: options.MethodName = DEFAULT_METHOD,
    alpha: options.Alpha = 1.0,
    debias: options.Debiased = True,
    confidence: options.Confidence = DEFAULT_CONFIDENCE,
    seed: options.RandomSeed = 0,
    output: options.Output = "table",
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs",
            help="With --format csv, markdown or latex: one row per pair of models "
            "instead of one per model; the table shows both, JSON has both.",
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="Also draw the errors and pairs: .png, .svg or .pdf."),
    ] = None,
    fail_above: options.FailAbove = None,
    fail_by: options.FailByWhich = "estimate",
) -> None:
    """Rank models by calibration error and test the differences between them.

    The rank of a model is 1 plus the number of significantly better ones. Significance
    is corrected for the number of pairs (Holm), but each interval is for one pair
    alone, so the interval of a pair that is not significant can exclude 0.
    """
    from calibrant.displays.comparison import ComparisonDisplay
    from calibrant.measures.comparison import compare as compare_models

    check_gate(fail_above, fail_by, data.task)
    check_figure_path(plot)
    if plot is not None and data.by is not None:
        raise OptionError("--plot shows one comparison; remove --by.")
    with progress_bar("comparing") as progress:
        preds = data.predictions(rows_for="differences on the same rows")
        comparison = compare_models(
            preds,
            method=method,
            alpha=alpha,
            debias="auto" if debias else False,
            confidence=confidence,
            random_state=seed,
            progress=progress,
        )
    data.say_if_pooled(preds)
    classes = preds.store.class_counts()
    print_comparison(comparison, output, pairs=pairs, classes=classes)
    if plot is not None:
        write_figure(ComparisonDisplay.from_comparison(comparison).plot().figure, plot)
    fail_above_threshold(
        [
            (one.key | {"model": standing.model}, standing.estimate)
            for one in comparison.groups or (comparison,)
            for standing in one.standings
        ],
        fail_above,
        fail_by,
    )
