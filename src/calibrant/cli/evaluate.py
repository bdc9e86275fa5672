"""``calibrant evaluate``: a file of predictions to calibration errors."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import options
from calibrant.cli.columns import listed
from calibrant.cli.figures import check_figure_path, write_grid
from calibrant.cli.findings import fail_on_findings, print_findings, read_fail_on
from calibrant.cli.output import Format
from calibrant.cli.progress import progress_bar
from calibrant.cli.results import fail_above_threshold, print_results
from calibrant.cli.rows import read_rows
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from calibrant.checks.diagnosis import Diagnosis
    from calibrant.engines.memory import MemoryTable
    from calibrant.measures.evaluation import Evaluation


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
    scale: options.InputScale = options.Holds.prob,
    engine: options.EngineName = "auto",
    bad_rows: options.BadRowsRule = "raise",
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
    from calibrant.engines.opening import open_cells
    from calibrant.measures.evaluation import DEFAULT_METHODS
    from calibrant.measures.named_events import refuse_with_cells
    from calibrant.measures.tables import evaluate_table

    failing = read_fail_on(fail_on)
    check_figure_path(plot)
    files = source[0] if len(source) == 1 else source
    cells = open_cells(files)
    if cells is not None:
        refuse_with_cells(
            **{
                "--y": y,
                "--p": p or None,
                "--task": task,
                "--weight": weight,
                "--pos-label": pos_label,
                "--labels": labels,
                "--scale": None if scale is options.Holds.prob else scale,
                "--engine": None if engine == "auto" else engine,
                "--bad-rows": None if bad_rows == "raise" else bad_rows,
            }
        )
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
    rule: Any = bad_rows
    held: Any = scale.value
    needs_rows = {"--plot": plot, "--explain": explain, "--fail-on": fail_on}
    _refuse_cells(table, rule, [name for name, given in needs_rows.items() if given])
    with progress_bar("evaluating") as progress:
        found = evaluate_table(
            table,
            **wanted,
            methods=listed(methods) or DEFAULT_METHODS,
            alpha=alpha,
            debias="auto" if debias else False,
            scale=held,
            bad_rows=rule,
            confidence=confidence,
            random_state=seed,
            progress=progress,
        )
    findings = _findings(
        table,
        wanted | {"scale": held, "mute": listed(mute)},
        wanted_at_all=explain or fail_on is not None,
    )
    print_results(found, output, per_class=per_class, findings=findings)
    if explain and findings is not None and output is Format.table:
        print_findings(findings)
    if plot is not None:
        _plot(table, wanted | {"input_scale": held}, found, plot)
    fail_above_threshold(
        [(a.key, e) for a in found.assessments for e in a.estimates], fail_above
    )
    if findings is not None:
        fail_on_findings([asdict(f) for f in findings.findings], failing)


def _findings(
    table: MemoryTable, wanted: dict[str, Any], *, wanted_at_all: bool
) -> Diagnosis | None:
    from calibrant.checks.tables import diagnose_table

    if not wanted_at_all:
        return None
    return diagnose_table(table, **wanted)


def _refuse_classwise(task: str | None, *, plot: bool, per_class: bool) -> None:
    if plot and task == "classwise":
        raise OptionError("--plot shows one event; use --task confidence or a class.")
    if per_class and task != "classwise":
        raise OptionError("--per-class goes with --task classwise.")


def _refuse_cells(table: Any, bad_rows: str, options: list[str]) -> None:
    from calibrant.engines.memory import MemoryTable

    if options and not (isinstance(table, MemoryTable) and bad_rows == "raise"):
        raise OptionError(
            f"{options[0]} looks at all rows, not at cells; use --engine memory, "
            f"--bad-rows raise and a file of rows."
        )


def _plot(
    table: MemoryTable,
    wanted: dict[str, Any],
    found: Evaluation,
    path: Path,
) -> None:
    from calibrant.displays.tables import reliability_of_table

    method = found.assessments[0].estimates[0].method
    write_grid(reliability_of_table(table, **wanted, method=method), path)
