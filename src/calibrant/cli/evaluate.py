"""``calibrant evaluate``: a file of predictions to calibration errors."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant._validation.scales import MAX_DROPPED
from calibrant.cli import options
from calibrant.cli.columns import listed
from calibrant.cli.figures import check_figure_path, drawn_columns, write_grid
from calibrant.cli.findings import (
    fail_on_findings,
    print_findings,
    print_repairs,
    read_fail_on,
    read_mute,
)
from calibrant.cli.output import Format
from calibrant.cli.progress import progress_bar
from calibrant.cli.results import fail_above_threshold, print_results
from calibrant.cli.rows import class_counts, dropping_options, open_any
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.checks.diagnosis import Diagnosis
    from calibrant.measures.evaluation import Evaluation
    from calibrant.report.commands import Origin


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
    weight: options.WeightColumn = None,
    pos_label: options.PositiveLabel = None,
    labels: options.ClassLabels = None,
    scale: options.InputScale = None,
    engine: options.EngineName = "auto",
    bad_rows: options.BadRowsRule = "raise",
    max_dropped: options.MaxDropped = MAX_DROPPED,
    confidence: options.Confidence = 0.9,
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
    from calibrant.measures.evaluation import DEFAULT_METHODS
    from calibrant.measures.tables import evaluate_table

    failing, muted = read_fail_on(fail_on), read_mute(mute)
    check_figure_path(plot)
    _refuse_classwise(task, plot=plot is not None)
    explained = explain or fail_on is not None
    with progress_bar("evaluating") as progress:
        table, wanted = open_any(
            source,
            by=by,
            engine=engine,
            bad_rows=bad_rows,
            max_dropped=max_dropped,
            again=explained or plot is not None,
            y=y,
            p=p,
            task=task,
            weight=weight,
            pos_label=pos_label,
            labels=labels,
            scale=scale,
        )
        task = _task(table, wanted)
        _refuse_classwise(task, plot=plot is not None)
        if per_class and task != "classwise":
            raise OptionError("--per-class goes with --task classwise.")
        found = evaluate_table(
            table,
            **wanted,
            methods=listed(methods) or DEFAULT_METHODS,
            alpha=alpha,
            debias="auto" if debias else False,
            confidence=confidence,
            random_state=seed,
            progress=progress,
        )
        findings = _findings(table, wanted | {"mute": muted}) if explained else None
    print_results(
        found,
        output,
        per_class=per_class,
        findings=findings,
        classes=class_counts(table, wanted),
    )
    if explain and findings is not None and output is not Format.json:
        aside = output is not Format.table
        print_findings(findings, aside=aside)
        dropping = dropping_options(bad_rows, max_dropped)
        origins = _origins(table, wanted, source, dropping)
        print_repairs(findings, origins, aside=aside)
    if plot is not None:
        _plot(table, wanted, found, plot)
    fail_above_threshold(
        [(a.key, e) for a in found.assessments for e in a.estimates], fail_above
    )
    if findings is not None:
        fail_on_findings([asdict(f) for f in findings.findings], failing)


def _task(table: Any, wanted: dict[str, Any]) -> Any:
    """Return the task, which cells know themselves."""
    return table.origin.task if "y" not in wanted else wanted["task"]


def _findings(table: Any, wanted: dict[str, Any]) -> Diagnosis:
    from calibrant.checks.tables import diagnose_table

    return diagnose_table(table, **wanted)


def _origins(
    table: Any,
    wanted: dict[str, Any],
    source: Sequence[str],
    fit_options: Sequence[str],
) -> dict[str, Origin]:
    """Return where each model's predictions come from, for the commands.

    Aggregated predictions do not know it.
    """
    from calibrant.measures.events import Reading
    from calibrant.measures.table_models import models_of_table
    from calibrant.report.commands import origin_of

    if "y" not in wanted:
        return {}
    read = {n: wanted[n] for n in ("task", "pos_label", "labels", "scale")}
    spec = Reading(**read)
    return {
        model.name: origin_of(
            model,
            spec,
            files=source,
            fit_options=fit_options,
            label=wanted["y"],
            weight=wanted["sample_weight"],
            labels=read["labels"] or model.labels(table.like(wanted["y"])),
        )
        for model in models_of_table(table, wanted["p"], spec)
    }


def _refuse_classwise(task: str | None, *, plot: bool) -> None:
    if plot and task == "classwise":
        raise OptionError("--plot shows one event; use --task confidence or a class.")


def _plot(table: Any, wanted: dict[str, Any], found: Evaluation, path: Path) -> None:
    from calibrant.displays.tables import reliability_of_table

    method = found.assessments[0].estimates[0].method
    columns = drawn_columns(wanted)
    write_grid(reliability_of_table(table, **columns, method=method), path)
