"""Options that several commands share, each stated once, and how text is read."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        help="Exit with code 1 if the error of any model or group exceeds this, such "
        "as 0.05; of several methods, the first one counts.",
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


NAMED = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^",=]*))\s*=(?!=)(.*)', re.DOTALL)
"""A name, in quotes or not, before the first = sign."""


def split_list(text: str | None) -> list[str]:
    """Return the parts of a list with commas; a part in quotes may hold any sign.

    >>> split_list("a, b,,c")
    ['a', 'b', 'c']
    >>> split_list('"a, b",c')
    ['a, b', 'c']
    """
    lines = (text or "").split("\n")
    rows = csv.reader([f"{line}\n" for line in lines], skipinitialspace=True)
    return [part.strip() for row in rows for part in row if part.strip()]


def named_list(text: str | None, option: str) -> list[str]:
    """Return the parts of an option that was given, or raise where there are none."""
    parts = split_list(text)
    if text is not None and not parts:
        raise OptionError(f"{option} must name at least one; got {text!r}.")
    return parts


def models(p: list[str], task: str | None) -> list[str] | dict[str, list[str]] | str:
    """Return what tables take for the given --p options.

    >>> models(["a,b"], None), models(["rf=a,b", "c,d"], "confidence")
    (['a', 'b'], {'rf': ['a', 'b'], 'c,d': ['c', 'd']})
    >>> models(['"x=1"'], None)
    'x=1'
    """
    named = [NAMED.fullmatch(entry) for entry in p]
    if not any(named) and (len(p) == 1 or task is None):
        columns = [column for entry in p for column in split_list(entry)]
        return columns[0] if len(columns) == 1 else columns
    named_models: dict[str, list[str]] = {}
    for entry, match in zip(p, named, strict=True):
        name = entry if match is None else _name(match)
        if name in named_models:
            raise OptionError(f"--p names the model {name!r} twice.")
        named_models[name] = split_list(entry if match is None else match.group(3))
    return named_models


def _name(match: re.Match[str]) -> str:
    quoted, plain = match.group(1), match.group(2)
    name = plain.strip() if quoted is None else quoted.replace('""', '"')
    if not name:
        raise OptionError(
            f"{match.string!r} must have the name of a model before =; put the name "
            "of a column that contains = in quotes."
        )
    return name


def scales(given: Sequence[str] | None) -> Any:
    """Return the scale of all models, or a dict of that of each.

    >>> scales(None), scales(["percent"]), scales(["a=logit", "b=prob"])
    ('prob', 'percent', {'a': 'logit', 'b': 'prob'})
    """
    return _one_or_each(given or ["prob"], "--scale", "logit")


def label_columns(names: Sequence[str], y: Sequence[str]) -> str | dict[str, str]:
    """Return the column of labels, or a dict of that of each model.

    >>> label_columns(["right", "a=b"], ["a=b"])
    'a=b'
    >>> label_columns(["right_a", "right_b"], ["a=right_a", "b=right_b"])
    {'a': 'right_a', 'b': 'right_b'}
    """
    if len(y) == 1 and y[0] in names:
        return y[0]
    columns: str | dict[str, str] = _one_or_each(y, "--y", "column")
    return columns


def _one_or_each(given: Sequence[str], option: str, example: str) -> Any:
    matches = [NAMED.fullmatch(entry) for entry in given]
    named = {_name(match): match.group(3).strip() for match in matches if match}
    if len(given) == 1 and not named:
        return given[0]
    if len(named) < len(given):
        raise OptionError(
            f"{option} must be given once, or once for each model, as {option} "
            f"name={example}; got {', '.join(given)}."
        )
    return named
