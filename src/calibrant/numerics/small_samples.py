"""The posterior of shift and tilt of small samples, many samples at once.

Few rows contain no information about curves, and shift and slope of their logits are
integrated over instead of maximised: labels of three rows are often most probable under
a map that goes to 0 or 1. Coefficients are normal around 0 with one spread, which goes
through a grid. For each spread, draws come from the normal distribution with the mode
and the curvature of the posterior, evenly rather than at random, weighted by how
probable they are. So a sample gives the same result whether it comes alone or with a
hundred thousand others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, ndtri, softmax

from calibrant.numerics.links import logit, rounded_ends
from calibrant.numerics.posterior_mixture import PRIOR_POWER, spread_range
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
prior of spreads for estimates. Few rows would not rule out a wide one."""
WIDENED = 1.2
"""Draws come from normal distributions wider than the curvature suggests: only drawn
coefficients can get weight."""
MAX_STEPS = 40
MAX_MOVE = 2.0
"""How far a Newton step may move a logit."""
SOLVED = 1e-6
"""The step that moves no logit by more than this is the last."""


@dataclass(frozen=True, eq=False)
class SmallSamples(WeightedPoints):
    """Samples of few rows side by side, and the posterior of their maps."""

    @cached_property
    def ends(self) -> FloatMatrix:
        """Return the range that predictions are clipped to, shape (2, samples)."""
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
        return spread_range(information, SPREADS)

    @cached_property
    def modes(self) -> tuple[FloatMatrix, FloatMatrix]:
        """Return the mode of each posterior and the Cholesky factor of its curvature.

        Shapes are (samples, spreads, 2) and (samples, spreads, 3): the factor's
        diagonal is first and last.
        """
        precision = self.spreads**-2.0
        features = np.stack([self.tilt**power for power in range(3)], axis=-1)
        weight, label = self.weight[:, np.newaxis], self.label_sum[:, np.newaxis]
        modes = np.zeros((*precision.shape, 2))
        for _ in range(MAX_STEPS):
            p = self.probabilities(modes)
            slope = (label - weight * p) @ features[..., :2]
            slope -= precision[..., np.newaxis] * modes
            curvature = (weight * p * (1.0 - p)) @ features
            first = np.sqrt(curvature[..., 0] + precision)
            second = curvature[..., 1] / first
            rest = np.maximum(curvature[..., 2] - second**2, 0.0)
            third = np.sqrt(rest + precision)
            half = slope[..., 0] / first
            tilt = (slope[..., 1] - second * half) / third**2
            step = np.stack([(half - second * tilt) / first, tilt], axis=-1)
            moved = step[..., :1] + step[..., 1:] * self.tilt[:, np.newaxis]
            longest = np.abs(moved).max(axis=-1, keepdims=True)
            modes += step * (MAX_MOVE / np.maximum(longest, MAX_MOVE))
            if longest.max() < SOLVED:
                break
        return modes, np.stack([first, second, third], axis=-1)

    @cached_property
    def draws(self) -> ShiftTiltDraws:
        """Return draws from the posteriors of shift and tilt."""
        modes, factor = self.modes
        normal = even_normals(DRAWS) * WIDENED
        tilt = normal[:, 1] / factor[..., 2, np.newaxis]
        shift = normal[:, 0] - factor[..., 1, np.newaxis] * tilt
        shift /= factor[..., 0, np.newaxis]
        drawn = modes[:, :, np.newaxis] + np.stack([shift, tilt], axis=-1)
        precision = self.spreads**-2.0
        logs = self._log_likelihoods(drawn.reshape(len(drawn), -1, 2))
        logs = logs.reshape(drawn.shape[:3])
        logs -= 0.5 * precision[..., np.newaxis] * np.square(drawn).sum(axis=-1)
        logs += 0.5 * np.square(normal / WIDENED).sum(axis=-1)
        prior = np.log(precision) + PRIOR_POWER * np.log(self.spreads)
        logs += (prior - np.log(factor[..., 0] * factor[..., 2]))[..., np.newaxis]
        return ShiftTiltDraws(self, drawn, logs)

    def probabilities(self, coefficients: FloatMatrix) -> FloatMatrix:
        """Return calibrated predictions of maps, shape (samples, maps, m)."""
        return np.asarray(expit(self._map_logits(coefficients)))

    def _log_likelihoods(self, coefficients: FloatMatrix) -> FloatMatrix:
        """Return those of maps, shape (samples, maps)."""
        f = self._map_logits(coefficients)
        surprise = np.log1p(np.exp(-np.abs(f)))
        surprise += np.maximum(f, 0.0)
        fit = (
            f @ self.label_sum[..., np.newaxis]
            - surprise @ self.weight[..., np.newaxis]
        )
        return np.asarray(fit[..., 0])

    def _map_logits(self, coefficients: FloatMatrix) -> FloatMatrix:
        """Return the logits of maps with given shifts and tilts."""
        f = coefficients[..., 1:] * self.tilt[:, np.newaxis]
        f += coefficients[..., :1] + self.logits[:, np.newaxis]
        return np.asarray(f)


@dataclass(frozen=True, eq=False)
class ShiftTiltDraws:
    """Draws from the posteriors of shift and tilt of small samples.

    `coefficients` (samples, spreads, draws, 2) are shift, and tilt of logits scaled to
    a mean square of 1; `logs` (samples, spreads, draws) are logarithms of how probable
    draws are, up to a constant for each sample.
    """

    samples: SmallSamples
    coefficients: FloatMatrix
    logs: FloatMatrix
    _cache: dict[tuple[object, ...], FloatMatrix] = field(
        default_factory=dict, init=False, repr=False
    )

    @cached_property
    def share(self) -> FloatMatrix:
        """Return how probable draws are, shape (samples, draws)."""
        return np.asarray(softmax(self.logs.reshape(len(self.logs), -1), axis=-1))

    @cached_property
    def likely_share(self) -> FloatMatrix:
        """Return how probable draws are where large spreads are unusual.

        Intervals should include unusual maps, too; estimates need not.
        """
        typical = LIKELY_SPREAD * np.maximum(self.samples.typical_logit, 1.0)
        unusual = 0.5 * np.square(self.samples.spreads / typical[:, np.newaxis])
        logs = self.logs - unusual[..., np.newaxis]
        return np.asarray(softmax(logs.reshape(len(logs), -1), axis=-1))

    @cached_property
    def spread_share(self) -> FloatMatrix:
        """Return how probable spreads are where large ones are unusual."""
        return np.asarray(self.likely_share.reshape(self.logs.shape).sum(axis=2))

    @cached_property
    def _maps(self) -> FloatMatrix:
        """Return shift and tilt of all drawn maps, shape (samples, draws, 2)."""
        return self.coefficients.reshape(len(self.logs), -1, 2)

    @cached_property
    def probabilities(self) -> FloatMatrix:
        """Return calibrated predictions of drawn maps, shape (samples, draws, m)."""
        return self.samples.probabilities(self._maps)

    @cached_property
    def mean_coefficients(self) -> FloatMatrix:
        """Return the mean shift and tilt of each sample, shape (samples, 2)."""
        return np.asarray((self.likely_share[:, np.newaxis] @ self._maps)[:, 0])

    @cached_property
    def mean_probabilities(self) -> FloatMatrix:
        """Return calibrated predictions of the mean map, shape (samples, m)."""
        mean = self.likely_share[:, np.newaxis] @ self.probabilities
        return np.asarray(mean[:, 0])

    def map_errors(self, alpha: float) -> FloatVector:
        """Return the error of the mean map of each sample."""
        key = ("map", alpha)
        if key not in self._cache:
            errors = self._errors(self.mean_probabilities[:, np.newaxis], alpha)
            self._cache[key] = errors[:, 0]
        return self._cache[key]

    def error_quantiles(self, levels: tuple[float, ...], alpha: float) -> FloatMatrix:
        """Return quantiles of the errors of drawn maps, shape (samples, levels)."""
        key = levels, alpha
        if key not in self._cache:
            errors = self._errors(self.probabilities, alpha)
            self._cache[key] = weighted_quantiles(errors, self.share, levels)
        return self._cache[key]

    def _errors(self, probabilities: FloatMatrix, alpha: float) -> FloatMatrix:
        gaps = np.abs(probabilities - self.samples.p[:, np.newaxis])
        if alpha != 1.0:
            gaps **= alpha
        weight = self.samples.weight[..., np.newaxis]
        return np.asarray((gaps @ weight)[..., 0] / weight.sum(axis=1))


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
    rows = zip(below, values, strict=True)
    return np.array([np.interp(levels, *row) for row in rows])
