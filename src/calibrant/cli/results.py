"""Results and findings on standard output, and the exit code they give."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer

from calibrant.cli.options import FailBy, Format, named_list
from calibrant.cli.process import ConditionNotMet
from calibrant.core.defaults import DEFAULT_REPAIR
from calibrant.core.scales import PERCENT
from calibrant.core.tasks import CANONICAL
from calibrant.core.text_tables import frame_table, shown_rows
from calibrant.core.wording import visible
from calibrant.exceptions import OptionError, UnknownNameError
from calibrant.report.json_numbers import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from calibrant.checks.diagnosis import Diagnosis
    from calibrant.core.array_types import Frame
    from calibrant.measures.comparison import Comparison
    from calibrant.measures.estimate import Estimate
    from calibrant.measures.evaluation import Evaluation
    from calibrant.predictions.predictions import Predictions


SHORT_SCORES = {
    "base_rate": "base rate",
    "mean_prob": "mean p",
    "brier": "Brier",
    "brier_calibration": "Brier gain",
    "log_loss": "log-loss",
    "log_loss_calibration": "log-loss gain",
}
"""What a table on a terminal shows of the scores, under shorter names."""
TOP_LABEL_SCORES = {"base_rate": "accuracy", "mean_prob": "confidence"}
"""How they are called for the top label."""
MAX_PAIRS = 50
"""How many pairs of models a table on a terminal shows."""


MAX_FAULTS = 20
"""How many conditions that are not met are named."""
SEVERAL_PAIRS = (
    "Significance is corrected for the number of pairs (Holm): a difference may not be "
    "significant although its interval excludes 0.\n"
)


WIDEST = 400


def print_frame(
    frame: Frame, output: Format, extra: Mapping[str, Any] | None = None
) -> None:
    """Print a frame; JSON also carries what `extra` holds."""
    if output == "json":
        content = {"rows": rows_of(frame)} | dict(extra or {})
        typer.echo(json.dumps(content, indent=2, allow_nan=False, default=str))
    elif output != "table":
        typer.echo(frame_table(frame, output))
    else:
        _print_table(frame)


def _print_table(frame: Frame) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, values in frame.items():
        number = values.dtype.kind in "if"
        table.add_column(
            escape(visible(name)),
            justify="right" if number else "left",
            no_wrap=number,
            overflow="fold",
        )
    for cells in shown_rows(frame):
        table.add_row(*(escape(visible(cell)) for cell in cells))
    console = Console(highlight=False)
    if not console.is_terminal:  # a file or a pipe has no width to keep to
        console.width = max(console.width, WIDEST)
    console.print(table)


def print_results(
    evaluation: Evaluation,
    output: Format,
    *,
    per_class: bool = False,
    findings: Diagnosis | None = None,
    classes: Mapping[str, int] | None = None,
) -> None:
    """Print errors; a table for people leaves out what is the same in all rows."""
    frame = evaluation.per_class() if per_class else evaluation.frame()
    if output == "json":
        extra = {
            "scores": rows_of(evaluation.scores()),
            "classes": rows_of(evaluation.per_class()),
            "alpha": evaluation.alpha,
            "confidence": evaluation.confidence,
            "n_classes": dict(classes or {}),
        }
        if findings is not None:
            extra["findings"] = [asdict(finding) for finding in findings.findings]
        print_frame(frame, output, extra)
    elif output == "table":
        _print_tables(evaluation, frame)
        _print_classes(classes)
    else:
        print_frame(frame, output)


def _print_tables(evaluation: Evaluation, frame: Frame) -> None:
    whole = bool(np.all(frame["task"] == CANONICAL))
    level = (
        ""
        if evaluation.confidence is None or whole
        else f" and {100 * evaluation.confidence:g} % intervals"
    )
    bias = ", bias-corrected" if frame["debiased"].all() else ""
    typer.echo(f"Calibration error{level}{bias} (alpha = {evaluation.alpha:g})")
    binary = bool(np.all(frame["task"] == "binary"))
    hidden = {"debiased", "task"} if binary else {"debiased"}
    print_frame({k: v for k, v in frame.items() if k not in hidden}, "table")
    if whole:
        typer.echo("There are no intervals for the error of the whole vector.\n")
    elif evaluation.confidence is not None:
        typer.echo(
            "Intervals are for the true calibration error; they come from the "
            "posterior of smooth.\n"
        )

    gain = "the in-sample gain of isotonic recalibration (optimistic)"
    top_label = bool(np.all(frame["task"] == "confidence"))
    names = SHORT_SCORES | (TOP_LABEL_SCORES if top_label else {})
    of = " of the event that the top label is right" if top_label else ""
    typer.echo(f"Scores{of}, and {gain}")
    dropped = {"brier_refinement", "log_loss_refinement"}
    kept = {k: v for k, v in evaluation.scores().items() if k not in dropped}
    print_frame({names.get(k, k): v for k, v in kept.items()}, "table")


def _print_classes(classes: Mapping[str, int] | None) -> None:
    """Print the number of class columns, since sums of logits would not reveal it."""
    if classes:
        alike = len(set(classes.values())) == 1
        each = (f"{visible(model)} {count}" for model, count in classes.items())
        counts = next(iter(classes.values())) if alike else ", ".join(each)
        typer.echo(f"Number of classes: {counts}\n")


def print_comparison(
    comparison: Comparison,
    output: Format,
    *,
    pairs: bool = False,
    classes: Mapping[str, int] | None = None,
) -> None:
    """Print models by rank, and pairs of them; one comparison a group."""
    models, paired = comparison.frame(), comparison.pairs()
    if output == "json":
        extra = {
            "pairs": rows_of(paired),
            "alpha": comparison.alpha,
            "confidence": comparison.confidence,
            "n_classes": dict(classes or {}),
        }
        print_frame(models, output, extra)
    elif output == "table":
        _print_ranks(comparison, models, paired)
        _print_classes(classes)
    elif pairs:
        print_frame(paired, output)
    else:
        typer.echo(comparison.table(output))


def _print_ranks(first: Comparison, models: Frame, paired: Frame) -> None:
    from calibrant.measures.comparison import name_pairs

    level = f"{100 * first.confidence:g} % intervals"
    bias = ", bias-corrected" if models["debiased"].all() else ""
    method, task = str(models["method"][0]), str(models["task"][0])
    event = "" if task == "binary" else f", {task}"
    typer.echo(f"Calibration error (method {method}){event}")
    typer.echo(f"with {level}{bias} (alpha = {first.alpha:g})")
    hidden = {"debiased", "task", "method", "bins"}
    print_frame({k: v for k, v in models.items() if k not in hidden}, "table")
    typer.echo("Rank: 1 + the number of significantly better calibrated models.\n")
    typer.echo(f"Differences in error between pairs on the same rows, with {level}")
    shown = name_pairs(paired)
    print_frame({k: v[:MAX_PAIRS] for k, v in shown.items()}, "table")
    if paired["distinct"].size > 1:
        typer.echo(SEVERAL_PAIRS)
    more = paired["distinct"].size - MAX_PAIRS
    if more > 0:
        typer.echo(f"and {more:,} more pairs: --format csv --pairs shows all.\n")


def check_gate(threshold: float | None, by: FailBy, task: str | None) -> None:
    """Raise, before any work, where no error could fail or pass the gate."""
    if threshold is None:
        if by != "estimate":
            raise OptionError("--fail-by needs --fail-above, which sets the limit.")
        return
    largest = 2 if task == CANONICAL else 1
    if not 0.0 <= threshold < largest:  # NaN would never be exceeded
        percent = f" For {threshold:g} %, pass {threshold / PERCENT:g}."
        raise OptionError(
            f"--fail-above must be at least 0 and below {largest}, since no error "
            f"exceeds {largest}; got {threshold:g}."
            + (percent if largest <= threshold <= PERCENT else "")
        )


def errors_above(
    estimates: Iterable[tuple[dict[str, Any], Estimate]],
    threshold: float | None,
    by: FailBy,
) -> bool:
    """Name each error that exceeds the threshold; return whether any does."""
    if threshold is None:
        return False
    errors = [
        (
            estimate.value if by == "estimate" else getattr(estimate, by),
            visible(" ".join([estimate.method, *map(str, key.values())])),
        )
        for key, estimate in estimates
    ]
    errors.sort(key=lambda error: (np.isnan(error[0]), error[0]), reverse=True)
    what = "" if by == "estimate" else f" ({by} end of the interval)"
    # An interval that is not there passes no gate.
    failed = [error for error in errors if not error[0] <= threshold]
    if failed:
        _name_faults(
            f"{whose}: there is no interval"
            if np.isnan(value)
            else f"{whose}: {value:.4f}{what} exceeds {threshold:g}"
            for value, whose in failed
        )
        return True
    value, whose = errors[0]
    largest = f", the largest of {len(errors):,}" if len(errors) > 1 else ""
    typer.echo(
        f"passed: {whose}: {value:.4f}{what}{largest}, does not exceed {threshold:g}",
        err=True,
    )
    return False


def end_if_failed(*failed: bool) -> None:
    """Exit with 1 if any condition is not met."""
    if any(failed):
        raise ConditionNotMet


def _name_faults(faults: Iterable[str]) -> None:
    """Name the conditions that are not met, each in a line."""
    listed = list(faults)
    for fault in listed[:MAX_FAULTS]:
        typer.echo(f"failed: {fault}", err=True)
    if len(listed) > MAX_FAULTS:
        typer.echo(f"failed: and {len(listed) - MAX_FAULTS:,} more", err=True)


OTHER_ROWS = (
    "Do not evaluate the map on the rows it was fitted on: it looks better there "
    "than it is."
)


def print_findings(diagnosis: Diagnosis, *, aside: bool = False) -> None:
    """Print findings for people, worst first; `aside` of what programs read."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True, stderr=aside)
    console.print("\nWhat the checks found", style="bold")
    if not diagnosis.findings:
        console.print("nothing")
    for finding in diagnosis.findings:
        place = visible(", ".join(f"{k} {name}" for k, name in finding.where.items()))
        where = f" ({place})" if place else ""
        head = f"{finding.code} {finding.title}, {finding.severity}{where}"
        console.print(f"[bold]{escape(head)}[/bold]")
        console.print(f"  {escape(visible(finding.message))}")
        console.print(f"  {escape(finding.remedy)}")


def print_repairs(
    diagnosis: Diagnosis, preds: Predictions, *, aside: bool = False
) -> None:
    """Print the command that repairs each model with findings."""
    from rich.console import Console
    from rich.markup import escape

    from calibrant.report.commands import Origin, command, python

    console = Console(highlight=False, soft_wrap=True, stderr=aside)
    for name in preds.store.models:
        origin = Origin.of(preds, name)
        repairable = any(
            finding.calibrator
            and "group" not in finding.where
            and finding.where.get("model", name) == name
            for finding in diagnosis.findings
        )
        if origin is None or not repairable:
            continue
        whom = f" {escape(visible(name))}" if len(preds.models) > 1 else ""
        fit = command(origin, DEFAULT_REPAIR)
        shared = bool(fit) and origin.by is not None  # one command for all models
        console.print(f"\n[bold]To repair{' all models' if shared else whom}[/bold]")
        for line in (fit or python(origin, DEFAULT_REPAIR)).splitlines():
            console.print(f"  {escape(line)}")
        console.print("  'calibrant report' measures which repair helps most")
        console.print(f"  {OTHER_ROWS}")
        if shared:
            break


class Failing(NamedTuple):
    """What makes a command fail: findings so bad, or of these codes."""

    severities: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()


def read_checks(fail_on: str | None, mute: str | None) -> tuple[Failing, list[str]]:
    """Return what ``--fail-on`` and ``--mute`` ask for, or raise before any work."""
    from calibrant.checks.diagnosis import check_muted

    failing, muted = _read_fail_on(fail_on), check_muted(named_list(mute, "--mute"))
    both = sorted(failing.codes.intersection(muted))
    if both:
        raise OptionError(
            f"--mute skips {', '.join(both)}, which --fail-on needs; remove it from "
            "one of them."
        )
    return failing, list(muted)


def _read_fail_on(fail_on: str | None) -> Failing:
    if fail_on is None:
        return Failing()
    from calibrant.checks.check import SEVERITIES
    from calibrant.checks.diagnosis import check_codes

    wanted = named_list(fail_on, "--fail-on")
    if len(wanted) == 1 and wanted[0] in SEVERITIES:
        return Failing(severities=frozenset(SEVERITIES[SEVERITIES.index(wanted[0]) :]))
    if len(wanted) == 1 and not wanted[0].startswith("CAL"):
        raise UnknownNameError.among("severity or check", wanted[0], SEVERITIES)
    return Failing(codes=frozenset(check_codes(wanted)))


def findings_failing(findings: Sequence[Mapping[str, Any]], failing: Failing) -> bool:
    """Name findings that are as bad as asked; return whether there are any."""
    if failing == Failing():
        return False
    failed: list[str] = []
    for finding in findings:
        codes = [code for code in finding["also"] if code in failing.codes]
        severe = finding["severity"] in failing.severities
        if severe or finding["code"] in failing.codes:
            codes.insert(0, finding["code"])
        if codes:
            place = ", ".join(f"{k} {name}" for k, name in finding["where"].items())
            head = f"{', '.join(codes)}{f' ({place})' if place else ''}"
            failed.append(visible(f"found {head}: {finding['message']}"))
    if failed:
        _name_faults(failed)
        return True
    what = " or ".join(sorted(failing.codes) or sorted(failing.severities))
    typer.echo(f"passed: no finding is {what}", err=True)
    return False
