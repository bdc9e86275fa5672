"""The posterior of shift and tilt of small samples, many samples at once.

Few rows say nothing about curves; what they say about a shift of all logits and about
their slope is integrated over, instead of taken where it is most probable: labels of
three rows are often most probable under a map that goes to 0 or 1. Coefficients are
normal around 0 with one spread, which goes through a grid. For each spread the normal
distribution with the mode and the curvature of the posterior is drawn from, evenly
rather than at random, and draws are weighed by how probable they are. So a sample gives
the same whether it comes alone or with a hundred thousand others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, ndtri

from calibrant.numerics.links import logit, rounded_ends
from calibrant.numerics.penalty_mixture import MAX_SPREAD, PRIOR_POWER, UNSEEN
from calibrant.numerics.weighted_points import WeightedPoints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector

SPREADS = 6
"""Spreads that are tried, evenly on the log scale."""
DRAWS = 48
"""Draws for each spread."""
LIKELY_SPREAD = 1.0
"""Half of a normal distribution, as wide as this times the logits themselves, is the
prior of spreads for estimates. Few rows would not stop a wide one."""
WIDENED = 1.2
"""Draws come from normal distributions wider than the curvature says: what is never
drawn cannot be weighed."""
MAX_STEPS = 40
LONGEST_MOVE = 2.0
"""How far a Newton step may move a logit."""
SOLVED = 1e-6
"""The step that moves no logit by more than this is the last."""


@dataclass(frozen=True, eq=False)
class SmallSamples(WeightedPoints):
    """Samples of few rows side by side, and what their labels say of maps."""

    @cached_property
    def ends(self) -> FloatMatrix:
        """Return the least and the largest that predictions count as, a row each."""
        return np.stack(rounded_ends(self.p, self.weight))

    @cached_property
    def logits(self) -> FloatMatrix:
        """Return the logits of predictions."""
        low, high = self.ends[..., np.newaxis]
        return logit(np.clip(self.p, low, high))

    @cached_property
    def typical_logit(self) -> FloatVector:
        """Return the root of the mean square of logits."""
        return np.sqrt(np.average(self.logits**2, axis=1, weights=self.weight))

    @cached_property
    def tilt(self) -> FloatMatrix:
        """Return logits scaled to a mean square of 1."""
        typical = np.where(self.typical_logit > 0.0, self.typical_logit, 1.0)
        return np.asarray(self.logits / typical[:, np.newaxis])

    @cached_property
    def spreads(self) -> FloatMatrix:
        """Return the spreads that are tried, shape (samples, spreads)."""
        p = expit(self.logits)
        information = (self.weight * p * (1.0 - p)).sum(axis=1)
        least = UNSEEN / np.sqrt(1.0 / MAX_SPREAD**2 + information)
        return np.geomspace(least, MAX_SPREAD, SPREADS, axis=1)

    @cached_property
    def modes(self) -> tuple[FloatMatrix, FloatMatrix]:
        """Return the mode of each posterior and the Cholesky factor of its curvature.

        Shapes are (samples, spreads, 2) and (samples, spreads, 3): the factor's
        diagonal is first and last.
        """
        return _modes(self)

    @cached_property
    def draws(self) -> ShiftTiltDraws:
        """Return draws from the posteriors of shift and tilt."""
        modes, factor = self.modes
        normal = even_normals(DRAWS) * WIDENED
        tilt = normal[:, 1] / factor[..., 2, np.newaxis]
        shift = normal[:, 0] - factor[..., 1, np.newaxis] * tilt
        shift /= factor[..., 0, np.newaxis]
        found = modes[:, :, np.newaxis] + np.stack([shift, tilt], axis=-1)
        precision = self.spreads**-2.0
        logs = self.log_likelihoods(found.reshape(len(found), -1, 2))
        logs = logs.reshape(found.shape[:3])
        logs -= 0.5 * precision[..., np.newaxis] * np.square(found).sum(axis=-1)
        logs += 0.5 * np.square(normal / WIDENED).sum(axis=-1)
        prior = np.log(precision) + PRIOR_POWER * np.log(self.spreads)
        logs += (prior - np.log(factor[..., 0] * factor[..., 2]))[..., np.newaxis]
        return ShiftTiltDraws(self, found, logs)

    def probabilities(self, coefficients: FloatMatrix) -> FloatMatrix:
        """Return predictions as maps change them, shape (samples, maps, m)."""
        return np.asarray(expit(self._moved(coefficients)))

    def log_likelihoods(self, coefficients: FloatMatrix) -> FloatMatrix:
        """Return those of maps, shape (samples, maps)."""
        f = self._moved(coefficients)
        surprise = np.log1p(np.exp(-np.abs(f)))
        surprise += np.maximum(f, 0.0)
        fit = f @ self.label[..., np.newaxis] - surprise @ self.weight[..., np.newaxis]
        return np.asarray(fit[..., 0])

    def _moved(self, coefficients: FloatMatrix) -> FloatMatrix:
        """Return the logits of maps with given shifts and tilts."""
        moved = coefficients[..., 1:] * self.tilt[:, np.newaxis]
        moved += coefficients[..., :1] + self.logits[:, np.newaxis]
        return np.asarray(moved)


@dataclass(frozen=True, eq=False)
class ShiftTiltDraws:
    """Draws from the posteriors of shift and tilt of small samples.

    Attributes
    ----------
    samples : SmallSamples
        What was fitted.
    coefficients : ndarray of shape (samples, spreads, draws, 2)
        Shift, and tilt of logits scaled to a mean square of 1.
    logs : ndarray of shape (samples, spreads, draws)
        Logarithms of how probable draws are, up to a constant for each sample.
    """

    samples: SmallSamples
    coefficients: FloatMatrix
    logs: FloatMatrix
    _kept: dict[tuple[object, ...], FloatMatrix] = field(
        default_factory=dict, init=False, repr=False
    )

    @cached_property
    def share(self) -> FloatMatrix:
        """Return how probable draws are, shape (samples, draws)."""
        return _shares(self.logs)

    @cached_property
    def likely_share(self) -> FloatMatrix:
        """Return how probable draws are where large spreads are unusual.

        Intervals are to hold unusual maps, too; estimates need not.
        """
        typical = LIKELY_SPREAD * np.maximum(self.samples.typical_logit, 1.0)
        unusual = 0.5 * np.square(self.samples.spreads / typical[:, np.newaxis])
        return _shares(self.logs - unusual[..., np.newaxis])

    @cached_property
    def spread_share(self) -> FloatMatrix:
        """Return how probable spreads are where large ones are unusual."""
        return np.asarray(self.likely_share.reshape(self.logs.shape).sum(axis=2))

    @cached_property
    def probabilities(self) -> FloatMatrix:
        """Return predictions as drawn maps change them, shape (samples, draws, m)."""
        flat = self.coefficients.reshape(len(self.logs), -1, 2)
        return self.samples.probabilities(flat)

    @cached_property
    def mean_coefficients(self) -> FloatMatrix:
        """Return the mean shift and tilt of each sample, shape (samples, 2)."""
        flat = self.coefficients.reshape(len(self.logs), -1, 2)
        return np.asarray((self.likely_share[:, np.newaxis] @ flat)[:, 0])

    @cached_property
    def mean_probabilities(self) -> FloatMatrix:
        """Return predictions as the map changes them, shape (samples, m)."""
        mean = self.likely_share[:, np.newaxis] @ self.probabilities
        return np.asarray(mean[:, 0])

    def map_errors(self, alpha: float) -> FloatVector:
        """Return the error of the map of each sample."""
        key = ("map", alpha)
        if key not in self._kept:
            found = self._errors(self.mean_probabilities[:, np.newaxis], alpha)
            self._kept[key] = found[:, 0]
        return self._kept[key]

    def errors(self, alpha: float) -> FloatMatrix:
        """Return the error of drawn maps, shape (samples, draws)."""
        return self._errors(self.probabilities, alpha)

    def _errors(self, probabilities: FloatMatrix, alpha: float) -> FloatMatrix:
        gaps = np.abs(probabilities - self.samples.p[:, np.newaxis])
        if alpha != 1.0:
            gaps **= alpha
        weight = self.samples.weight[..., np.newaxis]
        return np.asarray((gaps @ weight)[..., 0] / weight.sum(axis=1))

    def error_quantiles(self, levels: tuple[float, ...], alpha: float) -> FloatMatrix:
        """Return quantiles of the errors of drawn maps, shape (samples, levels)."""
        key = levels, alpha
        if key not in self._kept:
            found = weighted_quantiles(self.errors(alpha), self.share, levels)
            self._kept[key] = found
        return self._kept[key]


def _shares(logs: FloatMatrix) -> FloatMatrix:
    logs = logs.reshape(len(logs), -1)
    share = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _modes(samples: SmallSamples) -> tuple[FloatMatrix, FloatMatrix]:
    precision = samples.spreads**-2.0
    features = np.stack([samples.tilt**power for power in range(3)], axis=-1)
    weight, label = samples.weight[:, np.newaxis], samples.label[:, np.newaxis]
    found = np.zeros((*precision.shape, 2))
    for _ in range(MAX_STEPS):
        share = samples.probabilities(found)
        slope = (label - weight * share) @ features[..., :2]
        slope -= precision[..., np.newaxis] * found
        bend = (weight * share * (1.0 - share)) @ features
        factor = _factor(bend, precision)
        step = _solved(factor, slope)
        moved = step[..., :1] + step[..., 1:] * samples.tilt[:, np.newaxis]
        longest = np.abs(moved).max(axis=-1, keepdims=True)
        found += step * (LONGEST_MOVE / np.maximum(longest, LONGEST_MOVE))
        if longest.max() < SOLVED:
            break
    return found, factor


def _factor(bend: FloatMatrix, precision: FloatMatrix) -> FloatMatrix:
    """Return Cholesky factors of two by two matrices, and of what is added to them."""
    first = np.sqrt(bend[..., 0] + precision)
    second = bend[..., 1] / first
    last = np.sqrt(np.maximum(bend[..., 2] - second**2, 0.0) + precision)
    return np.stack([first, second, last], axis=-1)


def _solved(factor: FloatMatrix, right: FloatMatrix) -> FloatMatrix:
    """Return the inverse of two by two matrices times vectors."""
    half = right[..., 0] / factor[..., 0]
    last = (right[..., 1] - factor[..., 1] * half) / factor[..., 2] ** 2
    return np.stack([(half - factor[..., 1] * last) / factor[..., 0], last], axis=-1)


@cache
def even_normals(count: int) -> FloatMatrix:
    """Return points of the plane that are spread evenly by the normal distribution.

    They come in pairs that mirror each other in the first coordinate: so the
    complements of labels and predictions get the complement of a map. Those of half the
    unit square are multiples of irrational steps, powers of one over the plastic number
    (Roberts 2018).
    """
    plastic = 1.324717957244746
    steps = np.array([1.0 / plastic, 1.0 / plastic**2])
    points = (0.5 + steps * np.arange(1, count // 2 + 1)[:, np.newaxis]) % 1.0
    half = ndtri(points * [0.5, 1.0])
    normal = np.concatenate([half, half * [-1.0, 1.0]])
    return np.asarray((normal - normal.mean(axis=0)) / normal.std(axis=0))


def weighted_quantiles(
    values: FloatMatrix, weight: FloatMatrix, levels: Sequence[float]
) -> FloatMatrix:
    """Return quantiles of each row of values, shape (rows, levels).

    Examples
    --------
    >>> values, weight = np.array([[3.0, 1.0, 2.0]]), np.array([[0.5, 0.25, 0.25]])
    >>> weighted_quantiles(values, weight, [0.25, 0.75])
    array([[1.5, 3. ]])
    """
    order = np.argsort(values, axis=1)
    values = np.take_along_axis(values, order, axis=1)
    weight = np.take_along_axis(weight, order, axis=1)
    below = np.cumsum(weight, axis=1) - 0.5 * weight
    found = [np.interp(levels, *row) for row in zip(below, values, strict=True)]
    return np.array(found)
