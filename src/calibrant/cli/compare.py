"""``calibrant compare``: a file of several models' predictions to their ranking."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant._validation.scales import MAX_DROPPED
from calibrant.cli import options
from calibrant.cli.columns import label_columns
from calibrant.cli.figures import check_figure_path, write_figure
from calibrant.cli.output import Format
from calibrant.cli.progress import progress_bar
from calibrant.cli.results import fail_above_threshold, print_comparisons
from calibrant.cli.rows import class_counts, columns_of, open_rows
from calibrant.exceptions import OptionError


def compare(
    source: options.Sources,
    y: options.LabelColumns,
    p: options.ModelColumns,
    task: options.TaskName = None,
    method: options.MethodName = "smooth",
    alpha: options.Alpha = 1.0,
    debias: options.Debiased = True,
    by: options.GroupColumns = None,
    weight: options.WeightColumn = None,
    pos_label: options.PositiveLabel = None,
    labels: options.ClassLabels = None,
    scale: options.InputScale = None,
    bad_rows: options.BadRowsRule = "raise",
    max_dropped: options.MaxDropped = MAX_DROPPED,
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
    from calibrant.measures.comparison_table import compare_table
    from calibrant.measures.named_events import telling_to_drop

    check_figure_path(plot)
    if plot is not None and by is not None:
        raise OptionError("--plot shows one comparison; leave out --by.")
    with progress_bar("comparing") as progress:
        rows = open_rows(source, "differences on the same rows")
        table, wanted = columns_of(
            rows,
            y=label_columns(rows.names, y),
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
        with telling_to_drop():
            found = compare_table(
                table,
                **wanted,
                method=method,
                alpha=alpha,
                debias="auto" if debias else False,
                confidence=confidence,
                random_state=seed,
                progress=progress,
            )
    classes = class_counts(table, wanted)
    print_comparisons(found, output, pairs=pairs, classes=classes)
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
