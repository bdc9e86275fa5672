"""Options that several commands share, each stated once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from calibrant.cli.output import Format

MethodName = Annotated[str, typer.Option("--method", help="See 'calibrant methods'.")]
MethodNames = Annotated[
    str | None, typer.Option("--methods", help="a,b,c; see 'calibrant methods'.")
]
Alpha = Annotated[float, typer.Option("--alpha", help="1: absolute, 2: squared error.")]
Debiased = Annotated[
    bool, typer.Option("--debias/--raw", help="Subtract the known bias, or not.")
]
Confidence = Annotated[
    float, typer.Option("--confidence", help="Level of the intervals.")
]
RandomSeed = Annotated[int, typer.Option("--seed", help="For folds and resamples.")]
Output = Annotated[Format, typer.Option("--format", help="How to print.")]
FailAbove = Annotated[
    float | None,
    typer.Option(
        "--fail-above",
        min=0.0,
        help="Exit with 1 if the error by the first method is larger.",
    ),
]


class FailBy(StrEnum):
    """What is held against a threshold."""

    estimate = "estimate"
    low = "low"
    high = "high"


FailByWhich = Annotated[
    FailBy,
    typer.Option(
        "--fail-by",
        help="What --fail-above looks at: the estimate, or an end of its interval. low "
        "fails only if the error is significantly larger, high passes only if it is "
        "significantly smaller.",
    ),
]
Mute = Annotated[
    str | None, typer.Option("--mute", help="Checks to skip, CAL008,CAL009.")
]
FailOn = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        help="Exit with 1 at findings: minor, moderate or severe ones and worse, or by "
        "code, CAL001,CAL010.",
    ),
]
