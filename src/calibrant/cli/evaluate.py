"""``calibrant evaluate``: a file of predictions to calibration errors."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import options
from calibrant.cli.columns import listed
from calibrant.cli.figures import check_figure_path, write_grid
from calibrant.cli.findings import (
    fail_on_findings,
    print_findings,
    print_repairs,
    read_fail_on,
    read_mute,
)
from calibrant.cli.output import Format
from calibrant.cli.predictions import dropping_options, read_predictions
from calibrant.cli.progress import progress_bar
from calibrant.cli.results import fail_above_threshold, print_results
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHODS
from calibrant.core.scales import MAX_DROPPED
from calibrant.exceptions import OptionError


def evaluate(
    source: options.Sources,
    y: options.LabelColumnUnlessCells = None,
    p: options.ModelColumnsUnlessCells = None,
    task: options.TaskName = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", help="a,b,c; see 'calibrant methods'."),
    ] = None,
    alpha: options.Alpha = 1.0,
    debias: options.Debiased = True,
    by: options.GroupColumns = None,
    model: options.ModelColumn = None,
    weight: options.WeightColumn = None,
    pos_label: options.PositiveLabel = None,
    labels: options.ClassLabels = None,
    scale: options.InputScale = None,
    engine: options.EngineName = "auto",
    bad_rows: options.BadRowsRule = "error",
    max_dropped: options.MaxDropped = MAX_DROPPED,
    confidence: options.Confidence = DEFAULT_CONFIDENCE,
    seed: options.RandomSeed = 0,
    output: options.Output = Format.table,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            help="Write reliability diagrams by the first method, .png .svg .pdf.",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also say in words what is wrong.")
    ] = False,
    mute: options.Mute = None,
    per_class: Annotated[
        bool,
        typer.Option("--per-class", help="With --task classwise: a row a class."),
    ] = False,
    fail_on: options.FailOn = None,
    fail_above: options.FailAbove = None,
) -> None:
    """Estimate calibration errors of predictions in files, with intervals."""
    from calibrant.checks.diagnosis import diagnose
    from calibrant.displays.grid import ReliabilityGrid
    from calibrant.measures.evaluation import evaluate as evaluate_predictions
    from calibrant.report.making import origins_of

    failing, muted = read_fail_on(fail_on), read_mute(mute)
    check_figure_path(plot)
    _check_not_classwise(task, plot=plot is not None)
    explained = explain or fail_on is not None
    with progress_bar("evaluating") as progress:
        preds = read_predictions(
            source,
            y=y,
            p=p,
            by=by,
            model=model,
            task=task,
            weight=weight,
            pos_label=pos_label,
            labels=labels,
            scale=scale,
            engine=engine,
            bad_rows=bad_rows,
            max_dropped=max_dropped,
        )
        _check_not_classwise(preds.task, plot=plot is not None)
        if per_class and preds.task != "classwise":
            raise OptionError("--per-class goes with --task classwise.")
        found = evaluate_predictions(
            preds,
            methods=listed(methods) or DEFAULT_METHODS,
            alpha=alpha,
            debias="auto" if debias else False,
            confidence=confidence,
            random_state=seed,
            progress=progress,
        )
        findings = diagnose(preds, mute=muted) if explained else None
    print_results(
        found,
        output,
        per_class=per_class,
        findings=findings,
        classes=preds.store.class_counts(),
    )
    if explain and findings is not None and output is not Format.json:
        aside = output is not Format.table
        print_findings(findings, aside=aside)
        dropping = dropping_options(bad_rows, max_dropped)
        origins = origins_of(preds, source, dropping)
        print_repairs(findings, origins, aside=aside)
    if plot is not None:
        method = found.assessments[0].estimates[0].method
        grid = ReliabilityGrid.from_predictions(preds, method=method)
        write_grid(grid, plot)
    fail_above_threshold(
        [(a.key, a.estimates[0]) for a in found.assessments], fail_above
    )
    if findings is not None:
        fail_on_findings([asdict(f) for f in findings.findings], failing)


def _check_not_classwise(task: str | None, *, plot: bool) -> None:
    if plot and task == "classwise":
        raise OptionError("--plot shows one event; use --task confidence or a class.")
