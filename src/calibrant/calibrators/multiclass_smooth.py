"""The multi-class `smooth`: softmax regression whose flexibility is learned from data.

Predictions are tempered first; then scores of classes get terms, each with a normal
prior around the identity whose spread has the largest marginal likelihood. With few
rows the map stays near temperature scaling, and temperature near 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.calibrators.fits import MulticlassFit
from calibrant.core.parameters import generator
from calibrant.maps.softmax import SmoothSoftmaxMap, bends
from calibrant.numerics.class_probabilities import (
    centred,
    class_probabilities,
    fit_tempering,
    half_resolution,
    log_probabilities,
    min_uniform,
    tempered_inputs,
    weight_shares,
)
from calibrant.numerics.links import CLIP
from calibrant.numerics.softmax_evidence import fit_terms
from calibrant.numerics.softmax_regression import ClassTerms

if TYPE_CHECKING:
    from calibrant.core.array_types import (
        FloatMatrix,
        FloatVector,
        IntVector,
        Scale,
        Seed,
    )
    from calibrant.core.sample import ClassSample
    from calibrant.numerics.softmax_evidence import SoftmaxPosterior

MAX_MATRIX = 128
"""Most classes for which scores may depend on the predictions of other classes."""
SLOPE, INTERCEPT, COMMON, BY_LOGIT, BY_PROBABILITY = range(5)
"""Groups of parameters, in the order of the spreads that are typical of them."""
CURVE_UNITS = np.array([8.0, 8.0, 0.5])
"""Prior spreads of the curve, in units of that of the common slope."""
TEMPERING_PARAMETERS = 2.0
"""A temperature and a share; each gains about 1 by chance alone."""
DISTINCT = 1.5
"""Ratio from which two shares of the uniform distribution are both tried."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MulticlassSmoothFit(MulticlassFit):
    """A fitted multi-class map and its uncertainty.

    Attributes
    ----------
    map : SmoothSoftmaxMap
        The map, with parameters averaged over spreads.
    posterior : SoftmaxPosterior
        The distribution of the parameters.
    evidence : float
        Logarithm of how many times more probable labels are by the map than by the
        predictions themselves, whatever its parameters: a Bayes factor.
    """

    map: SmoothSoftmaxMap
    posterior: SoftmaxPosterior
    evidence: float

    def drawn_maps(
        self, count: int, random_state: Seed = 0
    ) -> tuple[SmoothSoftmaxMap, ...]:
        """Return maps drawn from the posterior, given the tempering.

        Parameters
        ----------
        count : int
            Number of maps.
        random_state : int, generator or None
            Seed of the draws.
        """
        drawn = self.posterior.draws(count, generator(random_state))
        frame = self.map
        inputs = _Inputs(frame.scale, frame.floor, frame.inverse, frame.uniform)
        return tuple(inputs.map(one, frame.n_classes) for one in drawn)


@dataclass(frozen=True)
class _Inputs:
    """How predictions become tempered logits."""

    scale: Scale
    floor: float
    inverse: float
    uniform: float

    def terms(self, scores: FloatMatrix) -> tuple[ClassTerms, IntVector]:
        """Return the terms of scores, and the group of each parameter."""
        logits = log_probabilities(scores, self.scale, self.floor)
        log_prob = tempered_inputs(logits, self.inverse, self.uniform)
        n, classes = log_prob.shape
        curve = CURVE_UNITS[:, np.newaxis, np.newaxis] * bends(log_prob)
        common = np.concatenate([log_prob[np.newaxis], curve])
        features, groups = [np.ones(n)], [SLOPE, INTERCEPT]
        if classes <= MAX_MATRIX:
            features = [centred(log_prob), np.exp(log_prob), *features]
            weights = np.repeat([BY_LOGIT, BY_PROBABILITY], classes)
            groups = [SLOPE, *weights, INTERCEPT]
        terms = ClassTerms(log_prob[np.newaxis], np.column_stack(features), common)
        return terms, np.array(groups * classes + [COMMON] * len(common))

    def map(self, parameters: FloatVector, classes: int) -> SmoothSoftmaxMap:
        """Return the map of fitted parameters."""
        own, common = np.split(parameters, [-1 - CURVE_UNITS.size])
        terms, curve = own.reshape(classes, -1), CURVE_UNITS * common[1:]
        weights, by_probability = terms[:, 0] + common[0], None
        if classes <= MAX_MATRIX:
            by_logit, by_probability = np.split(terms[:, 1:-1], 2, axis=1)
            weights = centred(by_logit) + np.diag(weights)
        return SmoothSoftmaxMap(
            weights,
            terms[:, -1],
            scale=self.scale,
            inverse=self.inverse,
            uniform=self.uniform,
            probability_weights=by_probability,
            curve=curve,
            floor=self.floor,
        )


def fit_classes(sample: ClassSample) -> MulticlassSmoothFit:
    """Fit the tempering, then the terms.

    Logits are divided by a temperature, mixed with a share of the uniform
    distribution and centred: z. The score of class j is
    ``(common + slope_j) z_j + weights_j . z + probability_weights_j . softmax(z) +
    intercept_j``, plus a curve: one function of the own probability for all classes, by
    which the slope depends on how certain the row is. Slopes, intercepts, both kinds of
    weights and the common terms have normal priors, whose five standard deviations
    maximise the marginal likelihood of the labels in Laplace's approximation;
    coefficients are averaged over them. The prior of the common slope is around 1, that
    of the log temperature and of all others around 0. With more than 128 classes there
    are slopes, intercepts and common terms only.

    References
    ----------
    D. J. C. MacKay (1992). Bayesian interpolation. doi:10.1162/neco.1992.4.3.415

    E. Berta, D. Holzmüller, M. I. Jordan, F. Bach (2025). Structured matrix scaling
    for multi-class calibration. doi:10.48550/arXiv.2511.03685 (fixed penalties).
    """
    share = weight_shares(sample.weight, sample.n)
    fits = []
    for inputs in _tempered(sample, share * sample.total):
        terms, group = inputs.terms(sample.scores)
        posterior = fit_terms(terms, group, sample.column, share, sample.total)
        fits.append((posterior, inputs))
    posterior, inputs = max(fits, key=lambda fit: fit[0].value)
    map_ = inputs.map(posterior.mean, sample.n_classes)
    log_prob = log_probabilities(sample.scores, sample.scale)
    own = log_prob[np.arange(sample.n), sample.column]
    gained = posterior.value - sample.total * float(share @ own)
    evidence = gained - TEMPERING_PARAMETERS
    return MulticlassSmoothFit(map=map_, posterior=posterior, evidence=evidence)


def _tempered(sample: ClassSample, weight: FloatVector) -> list[_Inputs]:
    """Return the most probable tempering, and the same with the least uniform share.

    Where terms explain what temperature cannot, the smaller share may be better.
    """
    tried = []
    for floor in _floors(sample):
        logits = log_probabilities(sample.scores, sample.scale, floor)
        fitted = fit_tempering(logits, sample.column, weight)
        tried.append((fitted, floor))
    (inverse, uniform, _), floor = min(tried, key=lambda one: one[0][-1])
    shares = sorted({uniform, min_uniform(sample.total)})
    distinct = shares if shares[-1] > DISTINCT * shares[0] else shares[-1:]
    return [_Inputs(sample.scale, floor, inverse, one) for one in distinct]


def _floors(sample: ClassSample) -> list[float]:
    """Return what predictions of exactly 0 may count as.

    They are either impossible, or rounded down from less than the smallest.
    """
    if sample.scale == "logit" or sample.scores.all():
        return [CLIP]
    prob = class_probabilities(sample.scores, sample.scale)
    return [CLIP, half_resolution(prob)]
