"""Columns, models and labels as users type them."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.engines.aggregation_spec import Table

NAMED = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^",=]*))\s*=(.*)', re.DOTALL)
"""A name, in quotes or not, before the first = sign."""


def split_list(text: str | None) -> list[str]:
    """Return the parts of a list with commas; a part in quotes may hold any sign.

    Examples
    --------
    >>> split_list("a, b,,c")
    ['a', 'b', 'c']
    >>> split_list('"a, b",c')
    ['a, b', 'c']
    """
    lines = (text or "").split("\n")
    rows = csv.reader([f"{line}\n" for line in lines], skipinitialspace=True)
    return [part.strip() for row in rows for part in row if part.strip()]


def models(p: list[str], task: str | None) -> list[str] | dict[str, list[str]] | str:
    """Return what tables take for the given --p options.

    Examples
    --------
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
    return plain.strip() if quoted is None else quoted.replace('""', '"')


def scales(given: Sequence[str] | None) -> Any:
    """Return the scale of all models, or a dict of that of each.

    Examples
    --------
    >>> scales(None), scales(["percent"]), scales(["a=logit", "b=prob"])
    ('prob', 'percent', {'a': 'logit', 'b': 'prob'})
    """
    return _one_or_each(given or ["prob"], "--scale", "logit")


def label_columns(names: Sequence[str], y: Sequence[str]) -> str | dict[str, str]:
    """Return the column of labels, or a dict of that of each model.

    Examples
    --------
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


def typed_label(table: Table, y: str, text: str) -> Any:
    """Return a label that was typed as text in the type of the label column."""
    from calibrant.predictions.columns import typed_like

    return typed_like(table.dtype_example(y), text)


def typed_options(
    table: Table,
    y: str,
    task: str | None,
    pos_label: str | None,
    labels: str | None,
) -> dict[str, Any]:
    """Return task and labels, typed as text, in the type of the label column.

    It may take a look at the whole column to tell its type.
    """
    return {
        "task": _task(table, y, task),
        "pos_label": None if pos_label is None else typed_label(table, y, pos_label),
        "labels": [typed_label(table, y, part) for part in split_list(labels)] or None,
    }


def _task(table: Table, y: str, task: str | None) -> Any:
    """Return a class as its label if the column has it, else as a column number."""
    from calibrant.predictions.columns import NOT_A_CLASS

    if task in NOT_A_CLASS:
        return task
    label = typed_label(table, y, str(task))
    is_number = str(task).isdecimal() and not table.contains(y, label)
    return int(str(task)) if is_number else label
