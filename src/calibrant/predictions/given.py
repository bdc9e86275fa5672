"""What a verb was given: predictions, or arrays that become predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.exceptions import OptionError
from calibrant.predictions.predictions import Predictions

if TYPE_CHECKING:
    from collections.abc import Mapping


def as_predictions(
    y_true: Any, y_prob: Any, *, scale: Any = "prob", **options: Any
) -> Predictions:
    """Return the predictions that were given, or those in arrays.

    Options of arrays, such as `task`, are part of predictions already.

    Examples
    --------
    >>> as_predictions([0, 1], [0.2, 0.7], task=None)
    <Predictions: 2 rows, task binary>
    """
    if not isinstance(y_true, Predictions):
        if y_prob is None:
            raise OptionError(
                "y_prob is missing: pass labels and predicted probabilities, or "
                "Predictions alone."
            )
        return Predictions.from_arrays(y_true, y_prob, scale=scale, **options)
    given = {"y_prob": y_prob, **options}
    given["scale"] = None if scale == "prob" else scale
    _check_none_given(given)
    return y_true


def _check_none_given(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if value is not None:
            raise OptionError(
                f"Predictions already have their labels, groups and scale; remove "
                f"{name}, or pass it where they are made."
            )
