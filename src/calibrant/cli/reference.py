"""``calibrant methods`` and ``calibrant rule``: what names and codes mean."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from calibrant.cli import options
from calibrant.cli.output import print_frame


def methods(
    output: options.Output = "table",
) -> None:
    """List the methods; the number in es15 and ew15 is the number of bins.

    Multi-class methods calibrate all classes at once; evaluate takes them with --task
    canonical. To calibrate several classes by a binary method, put "ovr-" (each class
    against the rest) or "top-" (the top label) before its name.
    """
    from calibrant.calibrators.registry import EVALUATORS, METHODS

    every = [*METHODS.values(), *EVALUATORS.values()]
    print_frame(
        {
            "method": np.array([method.name for method in every]),
            "kind": np.array([" or ".join(method.kinds) for method in every]),
            "what": np.array([method.summary for method in every]),
            "fitted by": np.array([method.loss for method in every]),
        },
        output,
    )


def rule(
    code: Annotated[
        str | None,
        typer.Argument(
            help="Code of the check, such as CAL004; without it, all checks."
        ),
    ] = None,
) -> None:
    """Explain a check: what it finds, why it matters, and what to do."""
    from calibrant.checks.rule_texts import RULES, find_rule

    if code is not None:
        typer.echo(str(find_rule(code)))
        return
    for one in RULES:
        typer.echo(f"{one.code}  {one.title}")
