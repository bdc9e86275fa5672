"""The SQL that gathers cells: one pass over rows, the same text for every engine.

It never holds a name or a value of the user's: engines hand over rows whose columns
have names of our own, and numbers are ours. It uses what DuckDB and Spark share.

Rows come with columns ``by_0``, ``by_1``, ... of groups; ``x_0``, ... of predictions
on any scale, as doubles; ``code_0``, ... with the number of the label's class for each
model, 0.0 or 1.0 where the model has one column; ``label`` as it is; and ``w`` of
weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from calibrant.core.scales import PERCENT
from calibrant.numerics.cell_grid import NEVER_LOW, ROOTS, WIDTHS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from calibrant.core.array_types import Scale
    from calibrant.engines.aggregation_spec import AggregationSpec, WatchedModel

MAX_EXPONENT = 709.0
"""EXP of more overflows."""


def number(value: float) -> str:
    """Return a double as SQL reads it, to the last digit.

    Examples
    --------
    >>> number(0.05)
    '5.0000000000000003e-02'
    """
    return f"{value:.16e}"


def added(terms: Sequence[str]) -> str:
    """Return the sum of some terms, by halves: engines limit how deep a sum may be.

    Examples
    --------
    >>> added(["a", "b", "c"])
    '(a + (b + c))'
    """
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({added(terms[:half])} + {added(terms[half:])})"


UP = number(NEVER_LOW)
MAX_ROOT = int(np.ceil(ROOTS * 0.5**0.25))
"""The root of 1/2."""
UNUSABLE, WEIGHTLESS = -2, -1
"""What stands for the cell of rows that cannot be used, or have no weight."""


@dataclass(frozen=True)
class Event:
    """An event as SQL: its number, prediction and outcome."""

    number: int
    p: str
    y: str


@dataclass(frozen=True)
class Dialect:
    """What engines say differently.

    Attributes
    ----------
    exploded : callable
        Gives the columns event, p and y, a row for each event.
    hashed : str
        Name of the function that makes one whole number of several columns.
    """

    exploded: Callable[[list[Event]], str]
    hashed: str

    def group(self, wanted: AggregationSpec) -> str:
        """Return a number that stands for the group of a row."""
        return f"{self.hashed}({', '.join(group_columns(wanted))})"


def gather_sql(
    wanted: AggregationSpec,
    source: str,
    *,
    fault: str,
    dialect: Dialect,
    held: bool = False,
) -> str:
    """Return the query that gathers the rows of `source` into cells.

    Parameters
    ----------
    wanted : AggregationSpec
        What is to be gathered.
    source : str
        Name of the rows.
    fault : str
        A number that is 0 for rows that can be used, and huge, NaN or NULL for others.
    dialect : Dialect
        Of the engine.
    held : bool
        Whether predictions that pass 0 or 1 by rounding are held there: it takes time.

    Returns
    -------
    str
        The query. Its cells are those of the grid, or parts of them. Rows that cannot
        be used, and rows without weight, are counted in cells of their own.
    """
    text = f"SELECT *, {fault} AS fault FROM {source}"
    text = _placed(_with_events(wanted, text, dialect, held=held))
    keys = [*_set_keys(wanted), "place"]
    near = "near"
    sums = []
    if wanted.weight is not None:
        near = "w * near"
        weightless = f"CAST({WEIGHTLESS} AS SMALLINT)"
        keys[-1] = f"CASE WHEN w = 0 AND fault = 0 THEN {weightless} ELSE place END"
        sums += [
            "SUM(w) AS weight",
            "SUM(w * y) AS weight_happened",
            "SUM(w * w) AS weight_squared",
        ]
    if compares_labels(wanted):
        other = "CASE WHEN y = 0 THEN label END"
        sums += [f"MIN({other}) AS other_low", f"MAX({other}) AS other_high"]
    if wanted.by:
        sums.append(f"{dialect.group(wanted)} AS hashed")
    shown = [
        *keys[:-1],
        f"COALESCE({keys[-1]}, {UNUSABLE}) AS cell",
        "COUNT(*) AS n_rows",
        "SUM(y) AS happened",
        f"SUM({near}) AS near_end",
        "MIN(p) AS low",
        "MAX(p) AS high",
        *sums,
    ]
    return f"SELECT {', '.join(shown)} FROM ({text}) GROUP BY {', '.join(keys)}"


def distinct_sql(
    wanted: AggregationSpec,
    source: str,
    *,
    fault: str,
    dialect: Dialect,
    groups: Iterable[int] | None = None,
) -> str:
    """Return the query that counts the rows of `source` that are alike.

    Rows that cannot be used or have no weight are left out. `groups` are the hashes of
    the groups that are wanted; without them all are.
    """
    text = f"SELECT *, {fault} AS fault FROM {source}"
    if groups is not None:
        text += f" WHERE {dialect.group(wanted)} IN ({', '.join(map(str, groups))})"
    text = _with_events(wanted, text, dialect, held=True)
    weighted = wanted.weight is not None
    keys = [*_set_keys(wanted), "p", *(["w"] if weighted else [])]
    shown = [*keys, "COUNT(*) AS n_rows", "SUM(y) AS happened"]
    used = "fault = 0 AND w > 0" if weighted else "fault = 0"
    return (
        f"SELECT {', '.join(shown)} FROM ({text}) WHERE {used} "
        f"GROUP BY {', '.join(keys)}"
    )


def _with_events(
    wanted: AggregationSpec, text: str, dialect: Dialect, *, held: bool
) -> str:
    """Return the rows with p and y, once for each event where there are several."""
    text = _with_probabilities(wanted, text)
    events = _events(wanted)
    if held:
        zero, one = number(0.0), number(1.0)
        within = f"LEAST({one}, GREATEST({zero}, {{}}))"
        events = [replace(event, p=within.format(event.p)) for event in events]
    kept = [*group_columns(wanted), "fault"]
    kept += ["label"] if compares_labels(wanted) else []
    kept += ["w"] if wanted.weight is not None else []
    one = f"{events[0].p} AS p, {events[0].y} AS y"
    new = one if len(events) == 1 else dialect.exploded(events)
    return f"SELECT {', '.join(kept)}, {new} FROM ({text})"


def _placed(text: str) -> str:
    """Return the rows with a number for the cell of each.

    Where the row cannot be used it is NULL. Cells are those of the grid, parted by the
    root everywhere: to find out where it does not count would take longer. The number
    rises with p, as that of the grid; it is as short as can be, as engines look up
    short numbers faster.
    """
    text = _selected(text, "CAST(p >= 0.5 AS INTEGER) AS upper")
    text = _selected(text, "ABS(upper - p) AS near", f"FLOOR(p * {UP}) AS up")
    root = f"CEIL({ROOTS} * SQRT(SQRT(near)))"
    below = f"CAST(p < up / {WIDTHS} AS INTEGER)"
    text = _selected(text, f"{root} AS root", f"{below} AS below")
    cell = f"up - below + root + upper * (2 * {MAX_ROOT} - 2 * root) + fault"
    return _selected(text, f"TRY_CAST({cell} AS SMALLINT) AS place")


def group_columns(wanted: AggregationSpec) -> list[str]:
    """Return the columns of groups, by names of our own."""
    return [f"by_{place}" for place in range(len(wanted.by))]


def _set_keys(wanted: AggregationSpec) -> list[str]:
    """Return what tells sets of events apart; one event needs no number."""
    return [*group_columns(wanted), *(["event"] if len(wanted.events) > 1 else [])]


def code(model: int) -> str:
    """Return the column with the number of the label's class for a model."""
    return f"code_{model}"


def read_columns(wanted: AggregationSpec, model: WatchedModel) -> list[str]:
    """Return the columns of a model as they are read."""
    return [f"x_{wanted.place[name]}" for name in model.columns]


def compares_labels(wanted: AggregationSpec) -> bool:
    """Tell whether all labels other than the event's must be one and the same."""
    return wanted.pos_label is not None and not wanted.against_rest


def _with_probabilities(wanted: AggregationSpec, text: str) -> str:
    """Turn other scales into probabilities, and find the top class if asked for."""
    text = _from_other_scales(wanted, text)
    tops = [
        f"GREATEST({', '.join(probability_columns(wanted, place))}) AS top_{place}"
        for place, model in enumerate(wanted.models)
        if None in model.watched
    ]
    return _selected(text, *tops) if tops else text


def _from_other_scales(wanted: AggregationSpec, text: str) -> str:
    """Return the rows with ``p_0_0``, ... for models that hold no probabilities."""
    steps: list[list[str]] = [[], [], [], []]
    for place, model in enumerate(wanted.models):
        if model.scale == "prob":
            continue
        columns = read_columns(wanted, model)
        if model.scale == "logit" and model.labels:
            *before, found = _softmax(columns, place)
        else:
            before, found = [], [probability(x, model.scale) for x in columns]
        for step, own in zip(steps, before, strict=False):
            step.extend(own)
        steps[-1] += _named(found, probability_columns(wanted, place))
    for step in steps:
        text = _selected(text, *step) if step else text
    return text


def _softmax(logits: list[str], place: int) -> list[list[str]]:
    """Return columns that each need those before, and the probabilities at last."""
    parts = [f"exp_{place}_{k}" for k in range(len(logits))]
    return [
        [f"GREATEST({', '.join(logits)}) AS largest_{place}"],
        _named([f"EXP({logit} - largest_{place})" for logit in logits], parts),
        [f"{added(parts)} AS sum_{place}"],
        [f"{part} / sum_{place}" for part in parts],
    ]


def _named(expressions: Iterable[str], names: Iterable[str]) -> list[str]:
    return [f"{e} AS {name}" for e, name in zip(expressions, names, strict=True)]


def probability(column: str, scale: Scale) -> str:
    """Return the probability of a column on some scale; a logit is that of an event.

    Examples
    --------
    >>> probability("x", "percent")
    'x / 100'
    """
    if scale == "percent":
        return f"{column} / {PERCENT:g}"
    if scale == "logprob":
        return f"EXP(LEAST({number(MAX_EXPONENT)}, {column}))"
    if scale == "logit":
        return f"1 / (1 + EXP(LEAST({number(MAX_EXPONENT)}, -{column})))"
    return column


def probability_columns(wanted: AggregationSpec, place: int) -> list[str]:
    """Return the columns that hold the probabilities of a model."""
    model = wanted.models[place]
    if model.scale == "prob":
        return read_columns(wanted, model)
    return [f"p_{place}_{k}" for k in range(len(model.columns))]


def _events(wanted: AggregationSpec) -> list[Event]:
    events: list[Event] = []
    for place, model in enumerate(wanted.models):
        names = probability_columns(wanted, place)
        for column in model.watched:
            if column is None:
                p, y = f"top_{place}", _top_is_right(place, names)
            elif model.labels:
                p, y = names[column], _as_double(f"{code(place)} = {column}")
            else:
                p, y = names[column], code(place)
            events.append(Event(len(events), p, y))
    return events


def _top_is_right(place: int, names: Iterable[str]) -> str:
    """Return whether the first class with the largest probability happened."""
    cases = (f"WHEN {name} = top_{place} THEN {k}" for k, name in enumerate(names))
    return _as_double(f"{code(place)} = CASE {' '.join(cases)} END")


def _as_double(condition: str) -> str:
    return f"CASE WHEN {condition} THEN {number(1.0)} ELSE {number(0.0)} END"


def _selected(text: str, *columns: str) -> str:
    return f"SELECT *, {', '.join(columns)} FROM ({text})"
