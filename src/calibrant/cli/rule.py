"""``calibrant rule``: what a check means."""

from __future__ import annotations

from typing import Annotated

import typer


def rule(
    code: Annotated[
        str | None,
        typer.Argument(
            help="Code of the check, such as CAL004; without it, all checks."
        ),
    ] = None,
) -> None:
    """Explain a check: what it finds, why it matters, and what to do."""
    from calibrant.checks.rules import RULES, find_rule

    if code is not None:
        typer.echo(str(find_rule(code)))
        return
    for one in RULES:
        typer.echo(f"{one.code}  {one.title}")
