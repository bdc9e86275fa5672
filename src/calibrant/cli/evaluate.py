"""``calibrant evaluate``: a file of predictions to calibration errors."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import options
from calibrant.cli.data_options import DataOptions, named_list, takes_predictions
from calibrant.cli.plot import check_figure_path, write_figure
from calibrant.cli.progress import progress_bar
from calibrant.cli.results import (
    check_gate,
    end_if_failed,
    errors_above,
    findings_failing,
    print_findings,
    print_repairs,
    print_results,
    read_checks,
)
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHODS
from calibrant.core.tasks import SEVERAL_EVENTS
from calibrant.exceptions import OptionError


@takes_predictions("id_")
def evaluate(
    data: DataOptions,
    methods: options.MethodNames = None,
    alpha: options.Alpha = 1.0,
    debias: options.Debiased = True,
    confidence: options.Confidence = DEFAULT_CONFIDENCE,
    seed: options.RandomSeed = 0,
    output: options.Output = "table",
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Also draw reliability diagrams by the first method: .png, .svg or "
            ".pdf.",
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Also explain what is wrong and how to repair it."
        ),
    ] = False,
    mute: options.Mute = None,
    per_class: Annotated[
        bool,
        typer.Option(
            "--per-class",
            help="With --task classwise or multilabel: one row per class or label.",
        ),
    ] = False,
    fail_on: options.FailOn = None,
    fail_above: options.FailAbove = None,
    fail_by: options.FailByWhich = "estimate",
) -> None:
    """Estimate the calibration error of predictions in files, with intervals."""
    from calibrant.checks.diagnosis import diagnose
    from calibrant.displays.grid import ReliabilityGrid
    from calibrant.measures.evaluation import evaluate as evaluate_predictions

    check_gate(fail_above, fail_by, data.task)
    failing, muted = read_checks(fail_on, mute)
    check_figure_path(plot)
    with progress_bar("evaluating") as progress:
        preds = data.predictions()
        if per_class and preds.task not in SEVERAL_EVENTS:
            raise OptionError("--per-class requires --task classwise or multilabel.")
        evaluation = evaluate_predictions(
            preds,
            methods=named_list(methods, "--methods") or DEFAULT_METHODS,
            alpha=alpha,
            debias="auto" if debias else False,
            confidence=confidence,
            random_state=seed,
            progress=progress,
        )
        diagnosed = explain or fail_on is not None
        findings = diagnose(preds, mute=muted) if diagnosed else None
    data.say_if_pooled(preds)
    print_results(
        evaluation,
        output,
        per_class=per_class,
        findings=findings,
        classes=preds.store.class_counts(),
    )
    if explain and findings is not None and output != "json":
        aside = output != "table"
        print_findings(findings, aside=aside)
        print_repairs(findings, preds, aside=aside)
    if plot is not None:
        method = evaluation.assessments[0].estimates[0].method
        grid = ReliabilityGrid.from_predictions(
            preds,
            method=method,
            debias="auto" if debias else False,
            confidence=confidence,
            random_state=seed,
        )
        write_figure(grid.plot(), plot)
    first = [(a.key, a.estimates[0]) for a in evaluation.assessments]
    found = [asdict(f) for f in findings.findings] if findings is not None else []
    end_if_failed(
        errors_above(first, fail_above, fail_by), findings_failing(found, failing)
    )
