"""Structured vector and matrix scaling: softmax regression with penalties by size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from calibrant.calibrators.base import MulticlassFit
from calibrant.calibrators.softmax_regression import TOLERANCE
from calibrant.core.parameters import check_choice
from calibrant.maps.softmax import TemperedSoftmaxMap
from calibrant.numerics.class_probabilities import (
    inverse_temperature,
    logits_of,
    weight_shares,
)
from calibrant.numerics.softmax_regression import (
    MatrixScores,
    SoftmaxProblem,
    VectorScores,
    minimise,
)
from calibrant.numerics.tempering import tempered_inputs

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix
    from calibrant.core.sample import ClassSample

Structure: TypeAlias = Literal["vector", "matrix"]


@dataclass(frozen=True, kw_only=True)
class StructuredScaling:
    """A vector or a matrix on log-probabilities after temperature scaling.

    Temperature scaling is fitted first, without a penalty, and its probabilities are
    mixed with 1 / (n + 1) of the uniform distribution. Then the mean log-loss of
    softmax(W x + b) is minimised, with x the logarithms of these probabilities, plus
    k / n times the squares of intercepts and of the diagonal of W - I, and
    k (k - 1) / n times the squares of the other weights, for n rows and k classes.

    Parameters
    ----------
    structure : {"vector", "matrix"}
        Whether W is diagonal.

    References
    ----------
    E. Berta, D. Holzmüller, M. I. Jordan, F. Bach (2025). Structured matrix scaling
    for multi-class calibration. doi:10.48550/arXiv.2511.03685
    """

    structure: Structure = "matrix"

    def __post_init__(self) -> None:
        check_choice(self.structure, get_args(Structure), name="structure")

    def fit(self, sample: ClassSample) -> MulticlassFit:
        """Fit the temperature, then weights and intercepts."""
        logits = logits_of(sample.scores, sample.scale)
        share = weight_shares(sample.weight, sample.n)
        inverse = inverse_temperature(logits, sample.column, share)
        uniform = 1.0 / (sample.total + 1.0)
        x = tempered_inputs(logits, inverse, uniform)
        operator = VectorScores(x) if self.structure == "vector" else MatrixScores(x)
        start = operator.identity
        penalty = self._penalty(sample.n_classes) / sample.total
        problem = SoftmaxProblem(operator, sample.column, share, penalty, start)
        tolerance = TOLERANCE / max(1.0, float(np.sqrt(np.mean(x**2))))
        solution = minimise(problem, start, tolerance=tolerance).parameters
        vector = self.structure == "vector"
        *columns, intercepts = solution if vector else solution.T
        weights = columns[0] if vector else np.column_stack(columns)
        map_ = TemperedSoftmaxMap(
            weights, intercepts, "log-prob", sample.scale, inverse, uniform
        )
        return MulticlassFit(map_)

    def _penalty(self, k: int) -> FloatMatrix:
        """Return the penalties for a single row, shaped as the parameters."""
        if self.structure == "vector":
            return np.full((2, k), float(k))
        weights = np.full((k, k), k * (k - 1.0))
        np.fill_diagonal(weights, k)
        return np.column_stack([weights, np.full(k, k)])
