"""``calibrant evaluate``: a file of predictions to calibration errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli.columns import listed
from calibrant.cli.figures import check_figure_path, write_figure
from calibrant.cli.output import Format
from calibrant.cli.progress import progress_bar
from calibrant.cli.results import print_results
from calibrant.cli.rows import BAD_ROWS_HELP, ENGINE_HELP, read_rows
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from calibrant.engines.memory import MemoryTable
    from calibrant.measures.evaluation import Evaluation


def evaluate(
    source: Annotated[
        list[str],
        typer.Argument(
            help="CSV, TSV, Parquet, JSON lines or npz file; several, a folder or a "
            "pattern, 'lake/*.parquet'; or cells that 'calibrant gather' wrote.",
            metavar="FILE...",
        ),
    ],
    y: Annotated[
        str | None, typer.Option("--y", help="Column of labels; cells need none.")
    ] = None,
    p: Annotated[
        list[str] | None,
        typer.Option(
            "--p",
            help="Column(s) of probabilities, a,b,c. Each is a model; with --task they "
            "are the classes of one model. Repeat for several models. 'forest_*' "
            "stands for all columns that match, name=... names a model.",
        ),
    ] = None,
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
    engine: Annotated[str, typer.Option("--engine", help=ENGINE_HELP)] = "auto",
    bad_rows: Annotated[str, typer.Option("--bad-rows", help=BAD_ROWS_HELP)] = "raise",
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
    per_class: Annotated[
        bool,
        typer.Option("--per-class", help="With --task classwise: a row a class."),
    ] = False,
    fail_above: Annotated[
        float | None,
        typer.Option(
            "--fail-above", min=0.0, help="Exit with 1 if any error is larger."
        ),
    ] = None,
) -> None:
    """Estimate calibration errors of predictions in files, with intervals."""
    from calibrant.engines.opening import open_cells
    from calibrant.measures.evaluation import DEFAULT_METHODS
    from calibrant.measures.tables import evaluate_table

    check_figure_path(plot)
    files = source[0] if len(source) == 1 else source
    cells = open_cells(files)
    if cells is not None:
        _refuse_columns(y, p, task, weight, pos_label, labels)
        _refuse_classwise(cells.origin.task, plot=False, per_class=per_class)
        table: Any = cells
        wanted: dict[str, Any] = {} if by is None else {"by": listed(by)}
    else:
        _refuse_classwise(task, plot=plot is not None, per_class=per_class)
        table, wanted = read_rows(
            files,
            y=y,
            p=p,
            task=task,
            weight=weight,
            by=by,
            pos_label=pos_label,
            labels=labels,
            engine=engine,
            bad_rows=bad_rows,
        )
    _refuse_plot(table, plot)
    with progress_bar("evaluating") as progress:
        found = evaluate_table(
            table,
            **wanted,
            methods=listed(methods) or DEFAULT_METHODS,
            alpha=alpha,
            debias="auto" if debias else False,
            scale=scale,  # type: ignore[arg-type]
            bad_rows=bad_rows,  # type: ignore[arg-type]
            confidence=confidence,
            random_state=seed,
            progress=progress,
        )
    print_results(found, output, per_class=per_class)
    if plot is not None:
        _plot(table, wanted, scale, found, plot)
    _fail_above(found, fail_above)


def _refuse_classwise(task: str | None, *, plot: bool, per_class: bool) -> None:
    if plot and task == "classwise":
        raise OptionError("--plot shows one event; use --task confidence or a class.")
    if per_class and task != "classwise":
        raise OptionError("--per-class goes with --task classwise.")


def _refuse_columns(*given: Any) -> None:
    if any(option is not None and option != [] for option in given):
        raise OptionError(
            "cells know their columns; leave out --y, --p, --task, --weight, "
            "--pos-label and --labels."
        )


def _refuse_plot(table: Any, plot: Path | None) -> None:
    from calibrant.engines.memory import MemoryTable

    if plot is not None and not isinstance(table, MemoryTable):
        raise OptionError(
            "--plot draws rows, not cells; use --engine memory and a file of rows."
        )


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
