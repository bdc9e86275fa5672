"""Options that several commands share, each stated once."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import typer

from calibrant.cli.output import Format

MethodName = Annotated[str, typer.Option(help="See 'calibrant methods'.")]
MethodNames = Annotated[
    str | None,
    typer.Option(help="Methods, a,b,c; see 'calibrant methods'."),
]
Alpha = Annotated[
    float,
    typer.Option(help="Exponent of the error: 1 is absolute, 2 is squared."),
]
Debiased = Annotated[
    bool,
    typer.Option(
        "--debias/--raw", help="Whether to subtract the known bias of the estimate."
    ),
]
Confidence = Annotated[float, typer.Option(help="Confidence level of the intervals.")]
RandomSeed = Annotated[int, typer.Option(help="Random seed for folds and resampling.")]
Output = Annotated[Format, typer.Option("--format", help="Output format.")]
FailAbove = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        help="Exit with code 1 if the error of any model or group, by the first "
        "method, exceeds this.",
    ),
]


FailBy: TypeAlias = Literal["estimate", "low", "high"]
FailByWhich = Annotated[
    FailBy,
    typer.Option(
        help="What --fail-above compares: the estimate, or one end of its interval. "
        "low fails only if the error is significantly larger; high passes only "
        "if it is significantly smaller.",
    ),
]
Mute = Annotated[
    str | None, typer.Option(help="Checks to skip, such as CAL008,CAL009.")
]
FailOn = Annotated[
    str | None,
    typer.Option(
        help="Exit with code 1 if a finding has at least this severity (note, minor, "
        "moderate or severe) or one of these codes (CAL001,CAL010).",
    ),
]
