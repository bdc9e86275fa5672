"""Warnings about maps and predictions that are upside down or out of range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from calibrant.core.warn import warn
from calibrant.exceptions import (
    FallingMapWarning,
    OutsideRangeWarning,
    UpsideDownWarning,
)
from calibrant.maps.binned import BinnedMap
from calibrant.maps.grouped import GroupedMap
from calibrant.numerics.classical_tests import REVERSAL_LEVEL, find_reversal
from calibrant.numerics.links import NEAREST, logit
from calibrant.numerics.weighted_points import compress_on_log_grid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calibrant.core.array_types import FloatVector
    from calibrant.core.sample import BinarySample
    from calibrant.maps.base import CalibrationMap
    from calibrant.numerics.classical_tests import Reversal

MAX_FALL = 0.02
"""A smaller fall is not worth a word."""
GRID = 200
MAX_OUTSIDE = 0.05
"""Predictions outside the range by no more than this are usual in new rows."""
MAX_SHARE = 0.01
"""So are a few that are farther outside."""
MAX_NAMED = 5
"""How many models and groups a warning names."""


def warn_if_upside_down(
    map_: CalibrationMap | GroupedMap, sample: BinarySample
) -> None:
    """Warn where predictions and labels contradict each other, or else the map falls.

    Many repairs of predictions that are upside down forecast the base rate for all.
    """
    reversal = reversal_of(sample)
    if reversal is None or not warn_of_reversals({"": reversal}, 1):
        _warn_if_falling(map_, sample.p)


def reversal_of(sample: BinarySample) -> Reversal | None:
    """Return whether higher predictions come true less often, and how strongly.

    Rows in clusters give no warning: they are less evidence than independent rows.
    """
    if sample.clusters is not None:
        return None
    events = sample.y if sample.weight is None else sample.weight * sample.y
    if float(sample.p @ events) >= sample.mean(sample.p) * float(events.sum()):
        return None  # as usual: no test is needed where the correlation is not negative
    cells = compress_on_log_grid(sample)
    return find_reversal(cells.p, cells.label_sum / cells.weight, cells.weight)


def warn_of_reversals(reversals: Mapping[str, Reversal], tested: int) -> bool:
    """Warn once about models and groups that are upside down; return whether any is.

    The level is divided by the number `tested`, so a hundred groups give no more false
    alarms than one.
    """
    level = REVERSAL_LEVEL / max(tested, 1)
    found = {name: one for name, one in reversals.items() if one.pvalue < level}
    if not found:
        return False
    names, first = list(found), next(iter(found.values()))
    more = f" and {len(names) - MAX_NAMED} more" * (len(names) > MAX_NAMED)
    which = f" for {'; '.join(names[:MAX_NAMED])}{more}" if names[0] else ""
    of_first = " for the first" * (len(names) > 1)
    warn(
        f"predictions are upside down{which}: the higher the prediction, the less "
        f"often the event happens (correlation {first.correlation:.2f}{of_first}). Are "
        "the labels swapped, or is this the probability of the other class?",
        UpsideDownWarning,
    )
    return True


def _warn_if_falling(map_: CalibrationMap | GroupedMap, p: FloatVector) -> None:
    """Warn where a map falls within the range of the predictions it was fitted to.

    Bins jump at their edges, as everybody knows who asks for them; maps of groups fall
    only where that was asked for.
    """
    if isinstance(map_, BinnedMap | GroupedMap):
        return
    low, high = float(p.min()), float(p.max())
    # Even both as probabilities and as logits.
    first, last = logit(np.array([low, high]), NEAREST).tolist()
    logits = np.linspace(first, last, GRID)
    at = np.unique(np.append(np.linspace(low, high, GRID), expit(logits)))
    values = np.clip(map_.values(at), 0.0, 1.0)
    falls = np.maximum.accumulate(values) - values
    end = int(falls.argmax())
    if falls[end] <= MAX_FALL:
        return
    start = int(values[:end].argmax())
    warn(
        f"the fitted map decreases, from {values[start]:.3g} at {at[start]:.3g} to "
        f"{values[end]:.3g} at {at[end]:.3g}. If higher predictions should keep higher "
        "probabilities, use a monotone method, such as 'smooth' or 'beta'.",
        FallingMapWarning,
    )


def warn_if_outside(p: FloatVector, fitted: tuple[float, float]) -> None:
    """Warn where more than a few predictions are far outside of what was fitted."""
    low, high = usual_range(fitted)
    warn_if_many_outside(int(((p < low) | (p > high)).sum()), p.size, fitted)


def usual_range(fitted: tuple[float, float]) -> tuple[float, float]:
    """Return where new predictions may lie without being extrapolated far."""
    return fitted[0] - MAX_OUTSIDE, fitted[1] + MAX_OUTSIDE


def warn_if_many_outside(count: int, size: int, fitted: tuple[float, float]) -> None:
    """Warn where so many of all predictions are outside of the usual range."""
    low, high = fitted
    if count > MAX_SHARE * size:
        warn(
            f"{count} of {size} predictions are outside the range that the map was "
            f"fitted to, {low:.3g} to {high:.3g}, by more than {MAX_OUTSIDE:g}; "
            "their calibrated values are extrapolated.",
            OutsideRangeWarning,
        )
