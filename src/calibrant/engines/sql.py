"""The SQL that gathers cells: one pass over rows, the same text for every engine.

It never holds a name or a value of the user's: engines hand over rows whose columns
have names of our own, and numbers are ours. It uses what DuckDB and Spark share.

Rows come with columns ``by_0``, ``by_1``, ... of groups; ``x_0``, ... of probabilities
or logits, as doubles; ``code_0``, ... with the number of the label's class for each
model, 0.0 or 1.0 where the model has one column; ``label`` as it is; and ``w`` of
weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrant.numerics.cell_grid import NEVER_LOW, ROOTS, TAIL, WIDTHS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from calibrant.engines.gathering import Gathering, WatchedModel

MOST_EXPONENT = 709.0
"""EXP of more overflows."""


def number(value: float) -> str:
    """Return a double as SQL reads it, to the last digit.

    Examples
    --------
    >>> number(0.05)
    '5.0000000000000003e-02'
    """
    return f"{value:.16e}"


UP = number(NEVER_LOW)
UNUSABLE, WEIGHTLESS = -2, -1
"""What stands for the cell of rows that cannot be used, or have no weight."""


@dataclass(frozen=True)
class Event:
    """An event as SQL: its number, prediction and outcome."""

    number: int
    p: str
    y: str


def gather_sql(
    wanted: Gathering,
    source: str,
    *,
    fault: str,
    exploded: Callable[[list[Event]], str],
) -> str:
    """Return the query that gathers the cells of the rows of `source`.

    Parameters
    ----------
    wanted : Gathering
        What is to be gathered.
    source : str
        Name of the rows.
    fault : str
        A number that is 0 for rows that can be used, and huge, NaN or NULL for others.
    exploded : callable
        Gives the columns event, p and y, a row for each event.

    Returns
    -------
    str
        The query. Rows that cannot be used, and rows without weight, are counted in
        cells of their own.
    """
    text = f"SELECT *, {fault} AS fault FROM {source}"
    text = _with_probabilities(wanted, text)
    events = _events(wanted)
    if len(events) == 1:
        made = f"0 AS event, {events[0].p} AS p, {events[0].y} AS y"
    else:
        made = exploded(events)
    return _summed(wanted, _placed(_selected(text, made)))


def _placed(text: str) -> str:
    """Return the rows with interval and root of the cell of each, as one number.

    Where the row cannot be used it is NULL.
    """
    text = _selected(text, "LEAST(p, 1 - p) AS near", f"FLOOR(p * {UP}) AS up")
    # Predictions may pass 0 or 1 by rounding, where there is no square root.
    root = f"CEIL({ROOTS} * SQRT(SQRT(ABS(LEAST(near, {number(TAIL)})))))"
    below = f"CAST(p < up / {WIDTHS} AS INTEGER)"
    text = _selected(text, f"{root} AS root", f"{below} AS below")
    cell = f"(up - below) * {ROOTS} + root + fault"
    return _selected(text, f"TRY_CAST({cell} AS INTEGER) AS place")


def _summed(wanted: Gathering, text: str) -> str:
    """Return the sums over the rows of each group, event and cell."""
    keys = [f"by_{place}" for place in range(len(wanted.by))] + ["event", "place"]
    near = "near"
    sums = []
    if wanted.weight is not None:
        near = "w * near"
        keys[-1] = f"CASE WHEN w = 0 AND fault = 0 THEN {WEIGHTLESS} ELSE place END"
        sums += [
            "SUM(w) AS weight",
            "SUM(w * y) AS weight_happened",
            "SUM(w * w) AS weight_squared",
        ]
    if compares_labels(wanted):
        other = "CASE WHEN y = 0 THEN label END"
        sums += [f"MIN({other}) AS other_low", f"MAX({other}) AS other_high"]
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


def code(model: int) -> str:
    """Return the column with the number of the label's class for a model."""
    return f"code_{model}"


def read_columns(wanted: Gathering, model: WatchedModel) -> list[str]:
    """Return the columns of a model as they are read."""
    return [f"x_{wanted.columns.index(name)}" for name in model.columns]


def compares_labels(wanted: Gathering) -> bool:
    """Tell whether all labels other than the event's must be one and the same."""
    return wanted.pos_label is not None and not wanted.against_rest


def _with_probabilities(wanted: Gathering, text: str) -> str:
    """Turn logits into probabilities, and find the top class where it is asked for."""
    if wanted.scale == "logit":
        text = _from_logits(wanted, text)
    tops = [
        f"GREATEST({', '.join(probability_columns(wanted, place))}) AS top_{place}"
        for place, model in enumerate(wanted.models)
        if None in model.watched
    ]
    return _selected(text, *tops) if tops else text


def _from_logits(wanted: Gathering, text: str) -> str:
    """Return the rows with ``p_0_0``, ... for the classes of each model."""
    exps, probs = [], []
    for place, model in enumerate(wanted.models):
        columns = read_columns(wanted, model)
        names = probability_columns(wanted, place)
        if not model.labels:
            power = f"EXP(LEAST({number(MOST_EXPONENT)}, -{columns[0]}))"
            probs.append(f"1 / (1 + {power}) AS {names[0]}")
            continue
        largest = f"GREATEST({', '.join(columns)})"
        parts = [f"exp_{place}_{k}" for k in range(len(columns))]
        exps += [
            f"EXP({column} - {largest}) AS {part}"
            for column, part in zip(columns, parts, strict=True)
        ]
        probs += [
            f"{part} / ({' + '.join(parts)}) AS {name}"
            for part, name in zip(parts, names, strict=True)
        ]
    text = _selected(text, *exps) if exps else text
    return _selected(text, *probs)


def probability_columns(wanted: Gathering, place: int) -> list[str]:
    """Return the columns that hold the probabilities of a model."""
    model = wanted.models[place]
    if wanted.scale == "prob":
        return read_columns(wanted, model)
    return [f"p_{place}_{k}" for k in range(len(model.columns))]


def _events(wanted: Gathering) -> list[Event]:
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
