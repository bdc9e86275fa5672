"""``calibrant evaluate``: a file of predictions to calibration errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import options
from calibrant.cli.columns import listed, models, reading
from calibrant.cli.figures import check_figure_path, write_grid
from calibrant.cli.output import Format
from calibrant.cli.progress import progress_bar
from calibrant.cli.results import fail_above_threshold, print_results
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from calibrant.engines.memory import MemoryTable
    from calibrant.measures.evaluation import Evaluation


def evaluate(
    source: options.Source,
    y: options.LabelColumn,
    p: options.ModelColumns,
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
    scale: options.InputScale = options.Holds.prob,
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
    per_class: Annotated[
        bool,
        typer.Option("--per-class", help="With --task classwise: a row a class."),
    ] = False,
    fail_above: options.FailAbove = None,
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
        "p": models(p, task),
        "sample_weight": weight,
        "by": listed(by),
        **reading(table, y, task, pos_label, labels),
    }
    held: Any = scale.value
    with progress_bar("evaluating") as progress:
        found = evaluate_table(
            table,
            **wanted,
            methods=listed(methods) or DEFAULT_METHODS,
            alpha=alpha,
            debias="auto" if debias else False,
            scale=held,
            confidence=confidence,
            random_state=seed,
            progress=progress,
        )
    print_results(found, output, per_class=per_class)
    if plot is not None:
        _plot(table, wanted | {"input_scale": held}, found, plot)
    fail_above_threshold(
        [(a.key, e) for a in found.assessments for e in a.estimates], fail_above
    )


def _refuse_classwise(task: str | None, *, plot: bool, per_class: bool) -> None:
    if plot and task == "classwise":
        raise OptionError("--plot shows one event; use --task confidence or a class.")
    if per_class and task != "classwise":
        raise OptionError("--per-class goes with --task classwise.")


def _plot(
    table: MemoryTable,
    wanted: dict[str, Any],
    found: Evaluation,
    path: Path,
) -> None:
    from calibrant.displays.tables import reliability_of_table

    method = found.assessments[0].estimates[0].method
    write_grid(reliability_of_table(table, **wanted, method=method), path)
