"""Findings of checks on standard output, and as an exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from calibrant.cli.columns import split_list
from calibrant.cli.process import ConditionNotMet
from calibrant.core.wording import visible
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calibrant.checks.diagnosis import Diagnosis
    from calibrant.predictions.predictions import Predictions


OTHER_ROWS = (
    "Fit the map on other rows than those on which you will evaluate it; on the rows "
    "of its fit it looks better than it is."
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


def read_mute(mute: str | None) -> list[str]:
    """Return the codes of ``--mute``, or raise before any work is done."""
    if mute is None:
        return []
    from calibrant.checks.diagnosis import check_muted

    return list(check_muted(split_list(mute)))


def print_repairs(
    diagnosis: Diagnosis, preds: Predictions, *, aside: bool = False
) -> None:
    """Print the command that repairs each model, by a method of its findings."""
    from rich.console import Console
    from rich.markup import escape

    from calibrant.report.commands import Origin, command, python

    console = Console(highlight=False, soft_wrap=True, stderr=aside)
    for name in preds.store.models:
        origin = Origin.of(preds, name)
        methods = [
            finding.calibrator
            for finding in diagnosis.findings
            if finding.calibrator
            and "group" not in finding.where
            and finding.where.get("model", name) == name
        ]
        if origin is None or not methods:
            continue
        whom = f" {escape(visible(name))}" if len(preds.models) > 1 else ""
        console.print(f"\n[bold]To repair{whom}[/bold]")
        # Where findings name several methods, smooth repairs them all.
        method = next((m for m in methods if m.endswith("smooth")), methods[0])
        lines = command(origin, method) or python(origin, method)
        for line in lines.splitlines():
            console.print(f"  {escape(line)}")
        console.print("  calibrant report measures which repair helps most")
        console.print(f"  {OTHER_ROWS}")


class Failing(NamedTuple):
    """What makes a command fail: findings so bad, or of these codes."""

    severities: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()


def read_fail_on(fail_on: str | None) -> Failing:
    """Return what ``--fail-on`` asks for, or raise before any work is done."""
    if fail_on is None:
        return Failing()
    from calibrant.checks.check import SEVERITIES
    from calibrant.checks.diagnosis import check_codes

    wanted = split_list(fail_on)
    if not wanted:
        raise OptionError(
            "--fail-on must name a severity or codes of checks, such as severe or "
            "CAL001,CAL010; it names none."
        )
    if len(wanted) == 1 and wanted[0] in SEVERITIES:
        return Failing(severities=frozenset(SEVERITIES[SEVERITIES.index(wanted[0]) :]))
    return Failing(codes=frozenset(check_codes(wanted)))


def fail_on_findings(findings: Sequence[Mapping[str, Any]], failing: Failing) -> None:
    """End with 1 where a finding is as bad as asked, or has one of the codes."""
    failed = [
        f["code"]
        for f in findings
        if f["severity"] in failing.severities or f["code"] in failing.codes
    ]
    if failed:
        typer.echo(f"failed: found {', '.join(dict.fromkeys(failed))}", err=True)
        raise ConditionNotMet
