"""One cell: fit a contender on a data set and compare it with the truth."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.sample import BinarySample
from calibrant.calibrators.fitting import fit_family
from calibrant.experiments.assessment import error_after_calibration, map_error

if TYPE_CHECKING:
    from calibrant._typing import FloatVector
    from calibrant.experiments.design import Cell, Contender
    from calibrant.experiments.truths import KnownSample, Truth

TIE_RESOLUTION = 1e-4
"""Values of a map nearer than this count as equal in the error after calibration."""

TIE_ROWS = 50_000
"""About how many of the unseen rows the error after calibration is taken over."""

MEASURES = (
    "pieces",
    "true_error",
    "true_error_sq",
    "estimate",
    "estimate_sq",
    "raw_estimate",
    "raw_estimate_sq",
    "map_error",
    "map_error_sq",
    "error_after",
    "error_after_sq",
    *(
        f"{measure}_{truth}"
        for truth in ("flat", "slope", "exact")
        for measure in ("true_error", "map_error")
    ),
)
"""What is measured in each cell; NaN where a method has no such thing.

``true_error`` is the mean of abs(p - c) over the rows that were fitted on, ``estimate``
what the method makes of them, less its bias where it knows it; ``map_error`` is CMEE
and ``error_after`` CEAC on unseen rows. ``_sq`` is the same with squares; ``_flat``,
``_slope`` and ``_exact`` with other estimates of a true map that is not known.
"""


def assess(cell: Cell, data: KnownSample, unseen: KnownSample) -> dict[str, Any]:
    """Return the row of a cell; what went wrong is told in ``failure``."""
    started = time.thread_time()
    found: dict[str, float] = {}
    failure = ""
    try:
        found = cell.contender.measured(data, unseen, cell.truth)
    except Exception as error:  # noqa: BLE001 (one method must not stop the others)
        failure = f"{type(error).__name__}: {error}"
    return {
        "key": cell.key,
        "method": cell.contender.name,
        "shape": cell.truth.shape,
        "error": float(cell.truth.error),
        "n": cell.n,
        "seed": cell.seed,
        **{name: float(found.get(name, np.nan)) for name in MEASURES},
        "failure": failure,
        "seconds": time.thread_time() - started,
    }


def measured(
    contender: Contender, data: KnownSample, unseen: KnownSample, truth: Truth
) -> dict[str, float]:
    """Fit a contender on a data set and return what can be measured of it."""
    sample = BinarySample(data.p, data.y)
    fit = fit_family(contender.family_for(truth), sample)
    found = {"pieces": float(fit.pieces), **_true_errors(data)}
    for alpha, end in ((1.0, ""), (2.0, "_sq")):
        if alpha == 1.0 and contender.squared:
            continue
        raw = fit.error(sample, alpha=alpha, debias=False)
        found["raw_estimate" + end] = found["estimate" + end] = raw
        if fit.debiases(alpha):
            found["estimate" + end] = fit.error(sample, alpha=alpha, debias=True)
    map_ = getattr(fit, "map", None)
    if map_ is None or not unseen.p.size:
        return found
    rows = thinned_rows(unseen, contender.every)
    return found | compared(map_(unseen.p[rows]), unseen, rows)


def _true_errors(data: KnownSample) -> dict[str, float]:
    gap = np.abs(data.p - data.c)
    others = {
        f"true_error_{name}": float(np.abs(data.p - c).mean())
        for name, c in data.others.items()
    }
    return {
        "true_error": float(gap.mean()),
        "true_error_sq": float((gap**2).mean()),
        **others,
    }


def thinned_rows(unseen: KnownSample, every: int) -> slice:
    """Return every so manieth of the unseen rows, in order of p."""
    every = min(every, unseen.p.size)
    return slice(every // 2, None, every)


def compared(c_hat: FloatVector, unseen: KnownSample, rows: slice) -> dict[str, float]:
    """Compare calibrated probabilities with the truth at some unseen rows."""
    c = unseen.c[rows]
    few = slice(None, None, max(c.size // TIE_ROWS, 1))
    found = {
        f"map_error_{name}": map_error(c_hat, other[rows])
        for name, other in unseen.others.items()
    }
    for divergence, end in (("absolute", ""), ("squared", "_sq")):
        found["map_error" + end] = map_error(c_hat, c, divergence)
        found["error_after" + end] = error_after_calibration(
            c_hat[few], c[few], divergence, resolution=TIE_RESOLUTION
        )
    return found
