"""``calibrant evaluate``: a file of predictions to calibration errors."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from calibrant.cli.columns import listed, typed_label, typed_labels
from calibrant.cli.figures import check_figure_path, write_figure
from calibrant.cli.findings import fail_on_findings, print_findings
from calibrant.cli.output import Format
from calibrant.cli.progress import progress_bar
from calibrant.cli.results import print_results
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant.checks.diagnosis import Diagnosis
    from calibrant.engines.memory import MemoryTable
    from calibrant.measures.evaluation import Evaluation


def evaluate(
    source: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV, Parquet, JSON lines or npz file.", metavar="FILE"
        ),
    ],
    y: Annotated[str, typer.Option("--y", help="Column of labels.")],
    p: Annotated[
        list[str],
        typer.Option(
            "--p",
            help="Column(s) of probabilities, a,b,c. Each is a model; with --task they "
            "are the classes of one model. Repeat for several models. 'forest_*' "
            "stands for all columns that match, name=... names a model.",
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option("--task", help="confidence, classwise, or a class."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", help="a,b,c; see 'calibrant methods'."),
    ] = None,
    alpha: Annotated[
        float, typer.Option("--alpha", help="1: absolute, 2: squared error.")
    ] = 1.0,
    debias: Annotated[
        bool, typer.Option("--debias/--raw", help="Take out known bias, or not.")
    ] = True,
    by: Annotated[
        str | None, typer.Option("--by", help="Column(s) of groups, a,b.")
    ] = None,
    weight: Annotated[
        str | None, typer.Option("--weight", help="Column of sample weights.")
    ] = None,
    pos_label: Annotated[
        str | None, typer.Option("--pos-label", help="Label of the event.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option("--labels", help="Label of each class column, a,b,c."),
    ] = None,
    scale: Annotated[
        str, typer.Option("--scale", help="What columns hold: prob or logit.")
    ] = "prob",
    confidence: Annotated[
        float, typer.Option("--confidence", help="Level of the intervals.")
    ] = 0.9,
    seed: Annotated[int, typer.Option("--seed", help="For folds and resamples.")] = 0,
    output: Annotated[
        Format, typer.Option("--format", help="How to print.")
    ] = Format.table,
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
    mute: Annotated[
        str | None,
        typer.Option("--mute", help="With --explain: checks to leave out, CAL008."),
    ] = None,
    per_class: Annotated[
        bool,
        typer.Option("--per-class", help="With --task classwise: a row a class."),
    ] = False,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            help="Exit with 1 at findings: minor, moderate or severe ones and worse, "
            "or by code, CAL001,CAL010.",
        ),
    ] = None,
    fail_above: Annotated[
        float | None,
        typer.Option(
            "--fail-above", min=0.0, help="Exit with 1 if any error is larger."
        ),
    ] = None,
) -> None:
    """Estimate calibration errors of predictions in a file, with intervals."""
    from calibrant.engines.memory import open_table
    from calibrant.measures.evaluation import DEFAULT_METHODS
    from calibrant.measures.tables import evaluate_table

    check_figure_path(plot)
    _refuse_classwise(task, plot=plot is not None, per_class=per_class)
    table = open_table(source)
    wanted: dict[str, Any] = {
        "y": y,
        "p": _models(p, task),
        "sample_weight": weight,
        "by": listed(by),
        **_reading(table, y, task, pos_label, labels),
    }
    with progress_bar("evaluating") as progress:
        found = evaluate_table(
            table,
            **wanted,
            methods=listed(methods) or DEFAULT_METHODS,
            alpha=alpha,
            debias="auto" if debias else False,
            scale=scale,  # type: ignore[arg-type]
            confidence=confidence,
            random_state=seed,
            progress=progress,
        )
    findings = _findings(
        table, wanted, scale, mute, wanted_at_all=explain or fail_on is not None
    )
    print_results(found, output, per_class=per_class, findings=findings)
    if explain and findings is not None and output is Format.table:
        print_findings(findings)
    if plot is not None:
        _plot(table, wanted, scale, found, plot)
    _fail_above(found, fail_above)
    if findings is not None:
        fail_on_findings([asdict(f) for f in findings.findings], fail_on)


def _findings(
    table: MemoryTable,
    wanted: dict[str, Any],
    scale: str,
    mute: str | None,
    *,
    wanted_at_all: bool,
) -> Diagnosis | None:
    from calibrant.checks.tables import diagnose_table

    if not wanted_at_all:
        return None
    return diagnose_table(table, **wanted, scale=scale, mute=listed(mute))  # type: ignore[arg-type]


def _refuse_classwise(task: str | None, *, plot: bool, per_class: bool) -> None:
    if plot and task == "classwise":
        raise OptionError("--plot shows one event; use --task confidence or a class.")
    if per_class and task != "classwise":
        raise OptionError("--per-class goes with --task classwise.")


def _models(p: list[str], task: str | None) -> list[str] | dict[str, list[str]] | str:
    """Return what `evaluate_table` takes for the given --p options."""
    if len(p) == 1 and "=" not in p[0]:
        columns = listed(p[0])
        return columns[0] if len(columns) == 1 else columns
    if task is None and not any("=" in entry for entry in p):
        return [column for entry in p for column in listed(entry)]
    models: dict[str, list[str]] = {}
    for entry in p:
        name, equals, columns_text = entry.partition("=")
        if name in models:
            raise OptionError(f"--p names the model {name!r} twice.")
        models[name] = listed(columns_text if equals else entry)
    return models


def _reading(
    table: MemoryTable,
    y: str,
    task: str | None,
    pos_label: str | None,
    labels: str | None,
) -> dict[str, Any]:
    """Read labels that were typed as text in the type of the label column."""
    column = table.column(y)
    return {
        "task": _task(column, task),
        "pos_label": typed_label(column, pos_label),
        "labels": typed_labels(column, labels),
    }


def _task(column: NDArray[Any], task: str | None) -> Any:
    """Return a class as its label if the column has it, else as a column number."""
    from calibrant.measures.table_models import NOT_A_CLASS, typed_like

    if task in NOT_A_CLASS:
        return task
    label = typed_like(column, str(task))
    is_label = bool(np.any(column == label))
    return int(str(task)) if str(task).isdecimal() and not is_label else label


def _plot(
    table: MemoryTable,
    wanted: dict[str, Any],
    scale: str,
    found: Evaluation,
    path: Path,
) -> None:
    from calibrant.displays.tables import MOST_DIAGRAMS, reliability_of_table

    method = found.assessments[0].estimates[0].method
    grid = reliability_of_table(
        table,
        **wanted,
        method=method,
        input_scale=scale,  # type: ignore[arg-type]
    )
    write_figure(grid.plot(), path)
    if len(found.assessments) > MOST_DIAGRAMS:
        typer.echo(f"only the first {MOST_DIAGRAMS} diagrams are drawn", err=True)


def _fail_above(found: Evaluation, threshold: float | None) -> None:
    if threshold is None:
        return
    if threshold != threshold:  # noqa: PLR0124  (NaN would never be exceeded)
        raise OptionError("--fail-above must be a number.")
    worst, whose = max(
        (
            (e.value, " ".join([e.method, *map(str, a.key.values())]))
            for a in found.assessments
            for e in a.estimates
        ),
    )
    if worst > threshold:
        typer.echo(f"failed: {whose}: {worst:.4f} exceeds {threshold:g}", err=True)
        raise typer.Exit(1)
