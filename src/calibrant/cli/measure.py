"""Commands that measure: ``evaluate``, ``compare``, ``summary``, ``aggregate``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import options
from calibrant.cli.data_options import DataOptions, check_not_source, takes_predictions
from calibrant.cli.draw import check_figure_path, write_figure
from calibrant.cli.options import Format, named_list
from calibrant.cli.process import progress_bar
from calibrant.cli.results import (
    check_gate,
    end_if_failed,
    errors_above,
    findings_failing,
    print_comparison,
    print_findings,
    print_frame,
    print_repairs,
    print_results,
    read_checks,
)
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHOD, DEFAULT_METHODS
from calibrant.core.tasks import SEVERAL_EVENTS
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from calibrant.core.array_types import Frame


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
            help="With --format csv, markdown or latex: only one row per pair of "
            "models; otherwise csv has one row per model, all other formats both.",
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
    estimates = [
        (one.key | {"model": standing.model}, standing.estimate)
        for one in comparison.groups or (comparison,)
        for standing in one.standings
    ]
    end_if_failed(errors_above(estimates, fail_above, fail_by))


@takes_predictions("id_")
def summary(
    data: DataOptions,
    smoother: Annotated[
        str,
        typer.Option(
            help="Curve for ICI, E50, E90 and Emax: smooth, or R's loess or lowess.",
        ),
    ] = "smooth",
    confidence: options.Confidence = DEFAULT_CONFIDENCE,
    pooled: Annotated[
        bool,
        typer.Option(
            "--pooled", help="With --by: the mean over groups, by random effects."
        ),
    ] = False,
    sentence: Annotated[
        bool, typer.Option("--sentence", help="Print a sentence for a manuscript.")
    ] = False,
    seed: options.RandomSeed = 0,
    output: options.Output = "table",
) -> None:
    """Report slope, intercepts, O:E, ICI, scores and AUROC, with intervals."""
    from calibrant.measures.summary import summary as summarise

    if sentence and (pooled or output != "table"):
        raise OptionError("--sentence cannot be combined with --pooled or --format.")
    if pooled and data.by is None:
        raise OptionError("--pooled requires --by.")
    with progress_bar("summarising") as progress:
        preds = data.predictions()
        result = summarise(
            preds,
            smoother=smoother,  # type: ignore[arg-type]
            confidence=confidence,
            random_state=seed,
            progress=progress,
        )
    data.say_if_pooled(preds)
    if sentence:
        typer.echo(result.sentence())
    elif pooled:
        _print_pooled(result.pooled(), output, confidence)
    elif output == "table":
        typer.echo(str(result))
    elif output in ("markdown", "latex"):
        typer.echo(result.table(output))
    else:
        print_frame(result.frame(), output, {"confidence": confidence})


def _print_pooled(frame: Frame, output: Format, confidence: float) -> None:
    from calibrant.measures.pooled_summary import pooled_table

    if output in ("json", "csv"):
        print_frame(frame, output)
        return
    level = f"{100 * confidence:g} % interval"
    if output == "table":
        typer.echo(
            f"Mean over {frame['groups'].max()} groups by random effects. The "
            "prediction interval is for a new group;\ntau is the standard deviation "
            "between groups (of the logarithm of O:E, and of the logit of AUROC)"
        )
    style: Any = "text" if output == "table" else output
    typer.echo(pooled_table(frame, level, style))


@takes_predictions("id_")
def aggregate(
    data: DataOptions,
    out: Annotated[Path, typer.Option(help="File to write, .parquet.")],
) -> None:
    """Aggregate predictions into a small mergeable file that 'evaluate' accepts."""
    from calibrant.engines.cell_files import check_cell_path

    check_cell_path(out)
    check_not_source(data.files, out)
    with progress_bar("aggregating"):
        preds = data.predictions().aggregate()
    preds.save(out)
    n_cells = len(preds.store.aggregate())
    typer.echo(f"wrote {out}: {preds.n:,} rows in {n_cells:,} cells")
