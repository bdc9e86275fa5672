"""The SQL that aggregates rows into cells: one pass, the same text for every engine.

It never contains a name or a value of the user's: engines pass rows whose columns have
names of our own (`TypedRows`), and numbers are ours. It uses what DuckDB and Spark
share.

Rows come with columns ``by_0``, ``by_1``, ... of groups; ``x_0``, ... of predictions
on any scale, as doubles; ``code_0``, ... with the number of the label's class for each
model, 0.0 or 1.0 where the model has one column; ``label`` as it is; and ``w`` of
weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.scales import PERCENT
from calibrant.numerics.cell_grid import NEVER_LOW, ROOTS, WIDTHS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import Scale
    from calibrant.engines.aggregation_spec import AggregationSpec, ModelColumns

MAX_EXPONENT = 709.0
"""EXP of more overflows."""
MAX_ROOT = int(np.ceil(ROOTS * 0.5**0.25))
"""The root of 1/2."""
UNUSABLE, WEIGHTLESS = -2, -1
"""The number of the cell of rows that are invalid, or have no weight."""


def number(value: float) -> str:
    """Return a double as SQL reads it, to the last digit.

    >>> number(0.05)
    '5.0000000000000003e-02'
    """
    return f"{value:.16e}"


def balanced_sum(terms: Sequence[str]) -> str:
    """Return the sum of some terms, by halves: engines limit how deep a sum may be.

    >>> balanced_sum(["a", "b", "c"])
    '(a + (b + c))'
    """
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({balanced_sum(terms[:half])} + {balanced_sum(terms[half:])})"


@dataclass(frozen=True)
class Event:
    """An event as SQL: its number, prediction and outcome."""

    number: int
    p: str
    y: str


@dataclass(frozen=True)
class Dialect:
    """What differs between engines.

    `unnest` makes one row per event, with columns event, p and y; `literal` writes a
    label; `hash_function` makes one whole number of several columns.
    """

    unnest: Callable[[list[Event]], str]
    literal: Callable[[Any], str]
    hash_function: str

    def group(self, spec: AggregationSpec) -> str:
        """Return a number that stands for the group of a row."""
        return f"{self.hash_function}({', '.join(group_columns(spec))})"


def labels_of_type(labels: Iterable[Any], like: NDArray[Any]) -> list[tuple[int, Any]]:
    """Return number and value of the labels that a column of that type can contain.

    Text is not a number, whatever it looks like.

    >>> labels_of_type(["1", 1, np.nan, b"1"], np.empty(0, dtype=int))
    [(1, 1)]
    """
    plain = (v.item() if isinstance(v, np.generic) else v for v in labels)
    kind = like.dtype.kind
    return [(place, v) for place, v in enumerate(plain) if _can_be_in(v, kind)]


def _can_be_in(value: Any, kind: str) -> bool:
    """Tell whether a column of a kind of NumPy's can contain a label."""
    if kind in "OM":  # types of which engines know more
        return True
    if kind == "U":
        return isinstance(value, str)
    if not isinstance(value, int | float | Decimal):
        return False
    if kind == "f":
        return value == value  # noqa: PLR0124  (not NaN)
    return math.isfinite(value) and value == int(value)


def aggregation_sql(
    spec: AggregationSpec,
    source: str,
    fault: str,
    dialect: Dialect,
    *,
    clip: bool = False,
) -> str:
    """Return the query that aggregates the rows of `source` into cells.

    Its cells are those of the grid, or parts of them. Invalid rows, and rows without
    weight, are counted in cells of their own. `fault` is a number that is 0 for valid
    rows, and huge, NaN or NULL for others. With `clip`, predictions that pass 0 or 1 by
    rounding are moved there, which takes time.
    """
    text = f"SELECT *, {fault} AS fault FROM {source}"
    text = _with_cells(_with_events(spec, text, dialect, clip=clip))
    keys = [*_unit_keys(spec), "place"]
    near = "near"
    sums = []
    if spec.weight is not None:
        near = "w * near"
        weightless = f"CAST({WEIGHTLESS} AS SMALLINT)"
        keys[-1] = f"CASE WHEN w = 0 AND fault = 0 THEN {weightless} ELSE place END"
        sums += [
            "SUM(w) AS weight",
            "SUM(w * y) AS event_weight",
            "SUM(w * w) AS weight_squared",
        ]
    if spec.compares_labels:
        other = "CASE WHEN y = 0 THEN label END"
        sums += [f"MIN({other}) AS other_low", f"MAX({other}) AS other_high"]
    if spec.by:
        sums.append(f"{dialect.group(spec)} AS hashed")
    shown = [
        *keys[:-1],
        f"COALESCE({keys[-1]}, {UNUSABLE}) AS cell",
        "COUNT(*) AS n_rows",
        "SUM(y) AS event_rows",
        f"SUM({near}) AS near_end",
        "MIN(p) AS low",
        "MAX(p) AS high",
        *sums,
    ]
    return f"SELECT {', '.join(shown)} FROM ({text}) GROUP BY {', '.join(keys)}"


def distinct_sql(
    spec: AggregationSpec,
    source: str,
    fault: str,
    dialect: Dialect,
    *,
    groups: Iterable[int] | None = None,
) -> str:
    """Return the query that counts the equal rows of `source`.

    Rows that are invalid or have no weight are left out. `groups` are the hashes of the
    groups to count; by default all.
    """
    text = f"SELECT *, {fault} AS fault FROM {source}"
    if groups is not None:
        text += f" WHERE {dialect.group(spec)} IN ({', '.join(map(str, groups))})"
    text = _with_events(spec, text, dialect, clip=True)
    weighted = spec.weight is not None
    keys = [*_unit_keys(spec), "p", *(["w"] if weighted else [])]
    shown = [*keys, "COUNT(*) AS n_rows", "SUM(y) AS event_rows"]
    used = "fault = 0 AND w > 0" if weighted else "fault = 0"
    return (
        f"SELECT {', '.join(shown)} FROM ({text}) WHERE {used} "
        f"GROUP BY {', '.join(keys)}"
    )


def _with_events(
    spec: AggregationSpec, text: str, dialect: Dialect, *, clip: bool
) -> str:
    """Return the rows with p and y, once per event where there are several."""
    text = _with_probabilities(spec, text)
    events = _events(spec)
    if clip:
        clipped = f"LEAST({number(1.0)}, GREATEST({number(0.0)}, {{}}))"
        events = [replace(event, p=clipped.format(event.p)) for event in events]
    kept = [*group_columns(spec), "fault"]
    kept += ["label"] if spec.compares_labels else []
    kept += ["w"] if spec.weight is not None else []
    one = f"{events[0].p} AS p, {events[0].y} AS y"
    new = one if len(events) == 1 else dialect.unnest(events)
    return f"SELECT {', '.join(kept)}, {new} FROM ({text})"


def _with_cells(text: str) -> str:
    """Return the rows with the number of their cell as ``place``, NULL if invalid.

    Cells are those of the grid, split by the root everywhere: to find out where it does
    not count would take longer. The number rises with p, as that of the grid; it is as
    short as can be, as engines look up short numbers faster.
    """
    text = _selected(text, "CAST(p >= 0.5 AS INTEGER) AS upper")
    up = f"FLOOR(p * {number(NEVER_LOW)})"
    text = _selected(text, "ABS(upper - p) AS near", f"{up} AS up")
    root = f"CEIL({ROOTS} * SQRT(SQRT(near)))"
    below = f"CAST(p < up / {WIDTHS} AS INTEGER)"
    text = _selected(text, f"{root} AS root", f"{below} AS below")
    cell = f"up - below + root + upper * (2 * {MAX_ROOT} - 2 * root) + fault"
    return _selected(text, f"TRY_CAST({cell} AS SMALLINT) AS place")


def group_columns(spec: AggregationSpec) -> list[str]:
    """Return the columns of groups, by names of our own."""
    return [f"by_{place}" for place in range(len(spec.by))]


def _unit_keys(spec: AggregationSpec) -> list[str]:
    """Return what identifies group and event; a single event needs no number."""
    return [*group_columns(spec), *(["event"] if len(spec.events) > 1 else [])]


def code(model: int) -> str:
    """Return the column with the number of the label's class for a model."""
    return f"code_{model}"


def read_columns(spec: AggregationSpec, model: ModelColumns) -> list[str]:
    """Return the columns of a model as they are read."""
    return [f"x_{spec.place[name]}" for name in model.columns]


def _with_probabilities(spec: AggregationSpec, text: str) -> str:
    """Turn other scales into probabilities, and find the top class if asked for.

    Models on another scale get columns ``p_0_0``, ... Softmax takes several steps, each
    of which needs the columns of the one before.
    """
    steps: list[list[str]] = [[], [], [], [], []]
    for place, model in enumerate(spec.models):
        names = probability_columns(spec, place)
        if None in model.watched:
            steps[4].append(f"GREATEST({', '.join(names)}) AS top_{place}")
        if model.scale == "prob":
            continue
        columns = read_columns(spec, model)
        values = [probability(x, model.scale) for x in columns]
        if model.scale == "logit" and model.labels:
            parts = [f"exp_{place}_{k}" for k in range(len(columns))]
            powers = [f"EXP({x} - largest_{place})" for x in columns]
            steps[0].append(f"GREATEST({', '.join(columns)}) AS largest_{place}")
            steps[1] += _named(powers, parts)
            steps[2].append(f"{balanced_sum(parts)} AS sum_{place}")
            values = [f"{part} / sum_{place}" for part in parts]
        steps[3] += _named(values, names)
    for step in steps:
        text = _selected(text, *step) if step else text
    return text


def _named(expressions: Iterable[str], names: Iterable[str]) -> list[str]:
    return [f"{e} AS {name}" for e, name in zip(expressions, names, strict=True)]


def probability(column: str, scale: Scale) -> str:
    """Return the probability of a column on some scale; a logit is that of an event.

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


def probability_columns(spec: AggregationSpec, place: int) -> list[str]:
    """Return the columns with the probabilities of a model."""
    model = spec.models[place]
    if model.scale == "prob":
        return read_columns(spec, model)
    return [f"p_{place}_{k}" for k in range(len(model.columns))]


def _events(spec: AggregationSpec) -> list[Event]:
    events: list[Event] = []
    for place, model in enumerate(spec.models):
        names = probability_columns(spec, place)
        for column in model.watched:
            p, y = (f"top_{place}" if column is None else names[column]), code(place)
            if column is None:  # the first class with the largest probability
                cases = (f"WHEN {x} = {p} THEN {k}" for k, x in enumerate(names))
                y = _as_double(f"{y} = CASE {' '.join(cases)} END")
            elif model.labels:
                y = _as_double(f"{y} = {column}")
            events.append(Event(len(events), p, y))
    return events


def _as_double(condition: str) -> str:
    return f"CASE WHEN {condition} THEN {number(1.0)} ELSE {number(0.0)} END"


def _selected(text: str, *columns: str) -> str:
    return f"SELECT *, {', '.join(columns)} FROM ({text})"
