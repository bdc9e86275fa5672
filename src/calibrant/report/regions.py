"""Regions of predictions that are significantly too high or too low."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.formatting import format_probability
from calibrant.numerics.weighted_points import compress_on_log_grid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calibrant.core.array_types import BoolVector, FloatVector
    from calibrant.core.sample import BinarySample

NEGLIGIBLE = 1e-5
MIN_SHARE = 0.01
"""Regions with a smaller share of the rows are not mentioned."""
MIN_ERROR_SHARE = 0.1
"""Nor are those with a smaller share of the error."""
NEAR_END = 0.005
"""Regions that begin or end so near to 0 or 1 are said to reach it."""
MIN_GAP, MIN_RELATIVE_GAP = 0.005, 0.2


@dataclass(frozen=True)
class Region:
    """A range of predictions that are significantly too high or too low.

    It is open on a side where hardly any prediction lies beyond, or 0 or 1 is near.
    `predicted`, `observed` and its limits `low` and `high` are those where most of the
    error is; `error` is what the region adds to the calibration error.
    """

    left: float
    right: float
    open_left: bool
    open_right: bool
    predicted: float
    observed: float
    low: float
    high: float
    error: float

    @property
    def too_high(self) -> bool:
        """Tell whether predictions are too high there."""
        return self.predicted > self.observed

    @property
    def matters(self) -> bool:
        """Tell whether the gap is relevant: 0.005, or a fifth of a small rate."""
        gap = abs(self.predicted - self.observed)
        near = min(self.predicted, 1.0 - self.predicted)
        relevant = near > NEGLIGIBLE and gap >= MIN_RELATIVE_GAP * near
        return gap >= MIN_GAP or relevant

    def __str__(self) -> str:
        left, right = _format_end(self.left), _format_end(self.right)
        if self.open_left and self.open_right:
            return "everywhere"
        if left == right:
            return f"at {left}"
        if self.open_left:
            return f"below {right}"
        if self.open_right:
            return f"above {left}"
        return f"between {left} and {right}"


def _format_end(p: float) -> str:
    """Return an end of a region; only 0 and 1 themselves read as 0 and 1.

    >>> _format_end(0.0), _format_end(0.068), _format_end(0.9991), _format_end(1.0)
    ('0', '0.068', '0.999', '1')
    """
    text = f"{p:.2g}"
    return format_probability(p) if text == "1" and p < 1.0 else text


def regions_of(curve: Mapping[str, Any], sample: BinarySample) -> list[Region]:
    """Return where the band of a map excludes the diagonal, largest error first.

    The band is the simultaneous one, since all regions are looked at.
    """
    names = ("p", "calibrated", "low", "high", "whole_low", "whole_high")
    p, mid, low, high, whole_low, whole_high = (
        np.asarray(curve[name], dtype=np.float64) for name in names
    )
    cells = compress_on_log_grid(sample)  # their share around each point of the curve
    index = np.searchsorted(0.5 * (p[1:] + p[:-1]), cells.p)
    rows = np.bincount(index, weights=cells.weight, minlength=p.size)
    share: FloatVector = np.asarray(rows / rows.sum())
    error = share * np.abs(mid - p)
    regions = [
        _region(part, p, (low, mid, high), share)
        for off in (whole_high < p, whole_low > p)
        for part in _runs(off)
        if share[part].sum() >= MIN_SHARE
        and error[part].sum() >= MIN_ERROR_SHARE * error.sum()
    ]
    relevant = [region for region in regions if region.matters]
    return sorted(relevant, key=lambda region: -region.error)


def _runs(which: BoolVector) -> list[slice]:
    """Return the ranges of neighbouring points that are true."""
    ends = np.flatnonzero(np.diff(np.concatenate([[0], which.astype(int), [0]])))
    return [slice(a, b) for a, b in ends.reshape(-1, 2).tolist()]


def _region(
    part: slice,
    p: FloatVector,
    band: tuple[FloatVector, FloatVector, FloatVector],
    share: FloatVector,
) -> Region:
    low, mid, high = band
    error = (share * np.abs(mid - p))[part]
    # Where rows and gap together are largest, not where few rows are far off.
    worst = part.start + int(np.argmax(error))
    left, right = float(p[part.start]), float(p[part.stop - 1])
    return Region(
        left=left,
        right=right,
        open_left=bool(share[: part.start].sum() < MIN_SHARE or left < NEAR_END),
        open_right=bool(share[part.stop :].sum() < MIN_SHARE or right > 1.0 - NEAR_END),
        predicted=float(p[worst]),
        observed=float(mid[worst]),
        low=float(low[worst]),
        high=float(high[worst]),
        error=float(error.sum()),
    )


def remark_of(
    panel: Mapping[str, Any], regions: list[Region], *, significant: bool
) -> str:
    """Return why verdict and band seem to disagree, empty where they do not."""
    curve = next((one for one in panel["curves"] if "low" in one), None)
    if curve is None or regions:
        return ""
    p, low, high = (np.asarray(curve[name]) for name in ("p", "low", "high"))
    outside = bool(((low > p) | (high < p)).any())
    if outside and not significant:
        return (
            "The band excludes the diagonal in places, because it holds at each "
            "prediction by itself; at all predictions at once, no gap is significant."
        )
    if significant and not outside:
        return (
            "The band includes the diagonal everywhere, although predictions are "
            "significantly off: the test looks at all rows together, the band at each "
            "prediction by itself, so it needs more rows to show the same error."
        )
    return ""
