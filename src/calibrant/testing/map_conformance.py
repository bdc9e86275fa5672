"""A conformance suite for calibration maps where there are no data, ours and anybody's.

Between two neighbouring predictions of the data nothing speaks for a value that is
higher or lower than both of theirs (by more than 0.01 where they are less than 0.01
apart). Beyond the last prediction of the data nothing
speaks for another correction than the one there, or for less of one. Each case is a
sample with gaps, tied predictions, or predictions of exactly 0 and 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import expit, logit

from calibrant.testing.conformance import Finding, run_case

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import FloatVector

Fitter: TypeAlias = "Callable[[FloatVector, FloatVector], Map]"
"""Called as ``fitter(p, y)``; gives the fitted map."""
Map: TypeAlias = "Callable[[FloatVector], FloatVector]"

SEEDS = range(6)
BETWEEN = np.linspace(0.0, 1.0, 22)[1:-1]
MARGIN = 1e-9
SMALL_GAP, SMALL_MARGIN = 0.01, 0.01
"""Between neighbours nearer than the first, values may leave theirs by the second."""
SHIFT_MARGIN = 1e-6
"""How much a correction may grow beyond the data, in logits."""
BEYOND = np.array([0.5, 0.1, 0.01])
"""Distances to 0 and 1 beyond the data, as parts of the last distance."""


def _labels(
    p: FloatVector, rng: np.random.Generator, shift: float, slope: float
) -> FloatVector:
    rounded = np.clip(p, 0.01, 0.99)
    share = expit(shift + slope * logit(rounded))
    return np.asarray(rng.random(p.size) < share, dtype=np.float64)


def _samples(
    draw: Callable[[np.random.Generator], FloatVector],
) -> list[tuple[FloatVector, FloatVector]]:
    """Draw samples that are too high, too sure and not sure enough."""
    samples = []
    for seed in SEEDS:
        for shift, slope in ((-1.0, 1.0), (0.3, 0.3), (0.0, 2.5)):
            rng = np.random.default_rng(seed)
            p = draw(rng)
            samples.append((p, _labels(p, rng, shift, slope)))
    return samples


def _levels(rng: np.random.Generator) -> FloatVector:
    """Confidences as people and language models tell them, of exactly 0 and 1 too."""
    told = np.array([0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0])
    return rng.choice(told, 400, p=np.array([1, 1, 1, 2, 3, 4, 4, 3, 2, 3]) / 24)


def _two_heaps(rng: np.random.Generator) -> FloatVector:
    """Scores of a class that is nearly always clear: next to none in between."""
    logits = np.append(rng.normal(-9.0, 2.2, 450), rng.normal(8.0, 1.0, 50))
    return np.asarray(expit(logits))


def _gap(rng: np.random.Generator) -> FloatVector:
    """Uniform predictions, but none between 0.4 and 0.8."""
    return np.append(rng.uniform(0.0, 0.4, 200), rng.uniform(0.8, 1.0, 200))


def _middle(rng: np.random.Generator) -> FloatVector:
    """Predictions none of which is near to 0 or 1."""
    return rng.uniform(0.2, 0.8, 300)


def _leaves(p: FloatVector, map_: Map) -> str:
    """Tell how far values leave those at the neighbouring predictions."""
    known = np.unique(p)
    between = known[:-1, np.newaxis] + BETWEEN * np.diff(known)[:, np.newaxis]
    at, values = map_(known), map_(between.ravel()).reshape(between.shape)
    low, high = np.minimum(at[:-1], at[1:]), np.maximum(at[:-1], at[1:])
    over = np.maximum(values - high[:, np.newaxis], low[:, np.newaxis] - values)
    over -= np.where(np.diff(known) < SMALL_GAP, SMALL_MARGIN, MARGIN)[:, np.newaxis]
    if over.max() <= 0.0:
        return ""
    worst = between.ravel()[over.argmax()]
    return f"leaves the values next to {worst:.4g} by more than {over.max():.2g}"


def _correction(p: FloatVector, map_: Map) -> FloatVector:
    tiny = np.finfo(float).tiny
    value = map_(p)
    odds = np.log(np.maximum(value, tiny)) - np.log(np.maximum(1.0 - value, tiny))
    return np.asarray(odds - logit(p))


def _grows(p: FloatVector, map_: Map) -> str:
    """Tell how far corrections grow beyond the last predictions."""
    low, high = p.min(), p.max()
    ends = ((low, low * BEYOND), (high, 1.0 - (1.0 - high) * BEYOND))
    for end, beyond in ends:
        last = abs(_correction(np.array([end]), map_)[0])
        grown = np.abs(_correction(beyond, map_)) - last
        if grown.max() > SHIFT_MARGIN:
            return (
                f"moves {beyond[grown.argmax()]:.4g} by {grown.max():.2g} logits more "
                f"than {end:.4g}, the last prediction"
            )
    return ""


def _worst(
    fit: Fitter,
    draw: Callable[[np.random.Generator], FloatVector],
    look: Callable[[FloatVector, Map], str],
) -> str:
    found = (look(p, fit(p, y)) for p, y in _samples(draw))
    return next((detail for detail in found if detail), "")


def between_levels(fit: Fitter) -> str:
    """Ten tied levels with 0 and 1: values between two levels lie between theirs."""
    return _worst(fit, _levels, _leaves)


def between_two_heaps(fit: Fitter) -> str:
    """Predictions near 0 and near 1 only: values between neighbours lie between."""
    return _worst(fit, _two_heaps, _leaves)


def across_a_gap(fit: Fitter) -> str:
    """No predictions from 0.4 to 0.8: values between neighbours lie between theirs."""
    return _worst(fit, _gap, _leaves)


def beyond_the_data(fit: Fitter) -> str:
    """Predictions from 0.2 to 0.8: beyond, logits are moved no farther than there."""
    return _worst(fit, _middle, _grows)


MAP_CASES: tuple[Callable[[Fitter], str], ...] = (
    between_levels,
    between_two_heaps,
    across_a_gap,
    beyond_the_data,
)


def map_conformance(fitter: Fitter, *, skip: tuple[str, ...] = ()) -> list[Finding]:
    """Run a calibrator through every case about places without data.

    Parameters
    ----------
    fitter : callable
        ``fitter(p, y)`` gives the fitted map, a function of predictions.
    skip : tuple of str
        Names of cases that do not apply.

    Returns
    -------
    list of Finding
        One per case.

    Examples
    --------
    >>> import calibrant as cb
    >>> def isotonic(p, y):
    ...     return cb.make_calibrator("isotonic").fit(p, y).map_
    >>> findings = cb.testing.map_conformance(isotonic)
    >>> [finding.case for finding in findings if not finding.passed]
    ['beyond_the_data']
    """
    cases = [case for case in MAP_CASES if case.__name__ not in skip]
    return [run_case(case, fitter) for case in cases]
