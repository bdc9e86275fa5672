"""What an engine's query reads: columns with names of our own, labels as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.engines.sql import code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from calibrant.engines.aggregation_spec import AggregationSpec, WatchedModel


def comparable(labels: Iterable[Any], like: NDArray[Any]) -> list[tuple[int, Any]]:
    """Return number and value of the labels that a column of that type can hold.

    Text is not a number, whatever it looks like.

    Examples
    --------
    >>> comparable(["1", 1], np.empty(0, dtype=int))
    [(1, 1)]
    """
    text = like.dtype.kind == "U"
    anything = like.dtype.kind in "OM"
    plain = (v.item() if isinstance(v, np.generic) else v for v in labels)
    return [
        (place, value)
        for place, value in enumerate(plain)
        if anything or isinstance(value, str) == text
    ]


@dataclass(frozen=True)
class LabelCases:
    """The number of a label's class, as the cases that a query tells apart.

    Attributes
    ----------
    known : tuple of (value, float)
        Labels and their numbers.
    otherwise : float
        The number of any other label that is there; one that is missing has none.
    """

    known: tuple[tuple[Any, float], ...]
    otherwise: float


def label_cases(
    wanted: AggregationSpec, model: WatchedModel, like: NDArray[Any]
) -> LabelCases | None:
    """Return the cases for a model; None where labels are numbers themselves.

    The event is 1 and all else 0; or classes have their places, and all else -1.
    """
    if model.labels:
        places = comparable(model.labels, like)
        return LabelCases(tuple((v, float(place)) for place, v in places), -1.0)
    if wanted.pos_label is None:
        return None
    event = comparable([wanted.pos_label], like)
    return LabelCases(tuple((v, 1.0) for _, v in event), 0.0)


def prepared_columns(
    wanted: AggregationSpec,
    *,
    column: Callable[[str], Any],
    key: Callable[[str], Any],
    number: Callable[[str], Any],
    label_code: Callable[[WatchedModel], Any],
) -> list[Any]:
    """Return the columns that the query of `sql` reads, with names of our own.

    Parameters
    ----------
    wanted : AggregationSpec
        What is to be gathered.
    column, key, number : callable
        From a name to the engine's expression of a column, as it is, as values of
        groups or as a number.
    label_code : callable
        From a model to the expression of its `label_cases`.

    Returns
    -------
    list
        Expressions of the engine.
    """
    chosen = [key(name).alias(f"by_{i}") for i, name in enumerate(wanted.by)]
    chosen += [number(name).alias(f"x_{i}") for i, name in enumerate(wanted.columns)]
    chosen += [label_code(m).alias(code(i)) for i, m in enumerate(wanted.models)]
    chosen.append(column(wanted.y).alias("label"))
    if wanted.weight is not None:
        chosen.append(number(wanted.weight).alias("w"))
    return chosen
