"""Options that several commands share, each stated once."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import typer

Format: TypeAlias = Literal["table", "json", "csv", "markdown", "latex"]
"""How results are printed."""
MethodName = Annotated[
    str, typer.Option(metavar="METHOD", help="See 'calibrant methods'.")
]
MethodNames = Annotated[
    str | None,
    typer.Option(metavar="METHODS", help="Methods, a,b,c; see 'calibrant methods'."),
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
Output = Annotated[
    Format,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Output format: table, json, csv, markdown or latex.",
    ),
]


FailAbove = Annotated[
    float | None,
    typer.Option(
        metavar="ERROR",
        help="Exit with code 1 if the error of any model or group, by the first "
        "method, exceeds this, such as 0.05.",
    ),
]


FailBy: TypeAlias = Literal["estimate", "low", "high"]
FailByWhich = Annotated[
    FailBy,
    typer.Option(
        metavar="BOUND",
        help="What --fail-above compares: estimate, or low or high, the lower or upper "
        "end of its interval. low fails only if the error is significantly larger; "
        "high passes only if it is significantly smaller.",
    ),
]
Mute = Annotated[
    str | None,
    typer.Option(metavar="CODES", help="Checks to skip, such as CAL008,CAL009."),
]
FailOn = Annotated[
    str | None,
    typer.Option(
        metavar="SEVERITY",
        help="Exit with code 1 if a finding has at least this severity (note, minor, "
        "moderate or severe) or one of these codes (CAL001,CAL010).",
    ),
]
