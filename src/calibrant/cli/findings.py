"""Findings of checks on standard output, and as an exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from calibrant.cli.columns import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calibrant.checks.diagnosis import Diagnosis


def print_findings(diagnosis: Diagnosis) -> None:
    """Print findings for people, worst first."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    console.print("\nWhat the checks found", style="bold")
    if not diagnosis.findings:
        console.print("nothing")
    for finding in diagnosis.findings:
        place = ", ".join(str(value) for value in finding.where.values())
        told = f" ({place})" if place else ""
        head = f"{finding.code} {finding.title}, {finding.severity}{told}"
        console.print(f"[bold]{escape(head)}[/bold]")
        console.print(f"  {escape(finding.message)}")
        console.print(f"  {escape(finding.remedy)}")


def fail_on_findings(
    findings: Sequence[Mapping[str, Any]], fail_on: str | None
) -> None:
    """End with 1 where a finding is as bad as asked, or has one of the codes."""
    from calibrant.checks.diagnosis import check_codes
    from calibrant.checks.finding import SEVERITIES

    if fail_on is None:
        return
    wanted = listed(fail_on)
    if len(wanted) == 1 and wanted[0] in SEVERITIES:
        bad = set(SEVERITIES[SEVERITIES.index(wanted[0]) :])
        failed = [f["code"] for f in findings if f["severity"] in bad]
    else:
        codes = check_codes(wanted)
        failed = [f["code"] for f in findings if f["code"] in codes]
    if failed:
        typer.echo(f"failed: found {', '.join(dict.fromkeys(failed))}", err=True)
        raise typer.Exit(1)
