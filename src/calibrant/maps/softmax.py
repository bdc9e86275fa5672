"""Maps that are the softmax of transformed logits.

A temperature, a vector, a matrix; or intra-order-preserving functions (Rahimi et al.
2020), which keep the order of the classes within each row and need no torch here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from calibrant.core.probabilities import softmax
from calibrant.maps.base import require, stored_choice, stored_matrix, stored_numbers
from calibrant.maps.multiclass import MulticlassMap
from calibrant.maps.sql_and_python import log_probabilities_text, logits_text
from calibrant.numerics.class_probabilities import (
    centred,
    log_probabilities,
    logits_of,
    tempered_inputs,
)
from calibrant.numerics.line_problems import values_at
from calibrant.numerics.links import CLIP

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, Scale

Inputs: TypeAlias = Literal["centred", "log-prob"]
"""Logits with mean 0 in each row, or log-probabilities."""
READ_INPUTS = {"read": partial(stored_choice, choices=get_args(Inputs))}


def linear_inputs(scores: FloatMatrix, scale: Scale, inputs: Inputs) -> FloatMatrix:
    """Return what linear scores are taken of."""
    log_prob = log_probabilities(scores, scale)
    return centred(log_prob) if inputs == "centred" else log_prob


BENDS = 3
"""Number of functions that bend the score of a class."""


def bends(log_prob: FloatMatrix) -> FloatMatrix:
    """Return functions of each class's probability that bend its score, (3, n, k).

    They are the fourth root of the probability, the probability itself, and the
    logarithm of what is left for the other classes. Between the top class of a nearly
    certain row and others, the last one acts as a slope of its own.
    """
    prob = np.exp(log_prob)
    rest = np.log(np.maximum(1.0 - prob, CLIP))
    return np.stack([np.sqrt(np.sqrt(prob)), prob, rest])


@dataclass(frozen=True, eq=False)
class TemperatureMap(MulticlassMap):
    """The map softmax(logits / temperature), which keeps the order of the classes.

    Parameters
    ----------
    inverse : float
        One over the temperature, above 0.
    classes : int
        Number of classes.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are.

    Examples
    --------
    >>> TemperatureMap(0.5, 2, "logit")([[np.log(16.0), 0.0]])
    array([[0.8, 0.2]])
    """

    kind: ClassVar[str] = "temperature"
    inverse: float
    classes: int
    scale: Scale = "prob"

    @property
    def temperature(self) -> float:
        """Return the temperature: above 1 for over-confident predictions."""
        return 1.0 / self.inverse

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities."""
        return softmax(self.inverse * logits_of(scores, self.scale))

    def _python_body(self, accuracy: float) -> str:  # noqa: ARG002
        logits = logits_text(self.scale)
        return f"return softmax([{self.inverse!r} * v for v in {logits}])"

    def _check_fields(self) -> None:
        self._check_positive("inverse")


@dataclass(frozen=True, eq=False)
class SoftmaxMap(MulticlassMap):
    """The softmax of linear scores.

    Parameters
    ----------
    weights : ndarray of shape (k,) or (k, k)
        One slope per class, or one row of weights per class.
    intercepts : ndarray of shape (k,)
        What is added to the score of each class.
    inputs : {"centred", "log-prob"}
        What weights multiply: logits with mean 0 in each row, or log-probabilities.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are.

    Examples
    --------
    >>> likelier = SoftmaxMap(np.ones(2), np.array([np.log(3.0), 0.0]))
    >>> likelier([[0.5, 0.5]])
    array([[0.75, 0.25]])
    """

    kind: ClassVar[str] = "softmax"
    weights: FloatMatrix
    intercepts: FloatVector
    inputs: Inputs = field(default="centred", metadata=READ_INPUTS)
    scale: Scale = "prob"

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return self.intercepts.size

    def _inputs(self, scores: FloatMatrix) -> FloatMatrix:
        """Return what the scores are linear in."""
        return linear_inputs(scores, self.scale, self.inputs)

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities."""
        return softmax(self._linear(self._inputs(scores)) + self.intercepts)

    def _linear(self, x: FloatMatrix) -> FloatMatrix:
        return x * self.weights if self.weights.ndim == 1 else x @ self.weights.T

    def _inputs_text(self) -> str:
        """Return the same in Python."""
        logs = log_probabilities_text(self.scale)
        return f"centred({logs})" if self.inputs == "centred" else logs

    def _python_body(self, accuracy: float) -> str:  # noqa: ARG002
        return f"""\
weights = {self.weights.tolist()}
intercepts = {self.intercepts.tolist()}
x = {self._inputs_text()}
{self._scores_text()}
return softmax([s + b for s, b in zip(scores, intercepts)])"""

    def _scores_text(self) -> str:
        """Return statements that set scores, but for intercepts."""
        matrix = self.weights.ndim > 1
        product = "sum(w * v for w, v in zip(row, x))" if matrix else "row * v"
        return f"scores = [{product} for row, v in zip(weights, x)]"

    def _check_fields(self) -> None:
        k, shape = self.n_classes, self.weights.shape
        require(k > 1, "field 'intercepts' of a map must contain at least two numbers.")
        require(
            shape in ((k,), (k, k)),
            f"field 'weights' of a map must contain {k} numbers, or {k} rows of {k}.",
        )


@dataclass(frozen=True, eq=False)
class TemperedSoftmaxMap(SoftmaxMap):
    """A softmax map of log-probabilities after a temperature.

    Probabilities are mixed with a share of the uniform distribution in between, so
    that none of them is 0.

    Parameters
    ----------
    inverse : float
        One over the temperature, above 0.
    uniform : float
        The share of the uniform distribution.

    Examples
    --------
    >>> weights, intercepts = np.eye(2), np.zeros(2)
    >>> tempered = TemperedSoftmaxMap(weights, intercepts, inverse=0.5, uniform=0.2)
    >>> tempered([[16 / 17, 1 / 17]])  # 0.8 * 4/5 + 0.1
    array([[0.74, 0.26]])
    """

    kind: ClassVar[str] = "tempered-softmax"
    inputs: Inputs = field(default="log-prob", metadata=READ_INPUTS)
    inverse: float = 1.0
    uniform: float = 0.0

    def _inputs(self, scores: FloatMatrix) -> FloatMatrix:
        return tempered_inputs(self._logits(scores), self.inverse, self.uniform)

    def _inputs_text(self) -> str:
        mixed = f"{1.0 - self.uniform!r} * v + {self.uniform / self.n_classes!r}"
        tempered = f"softmax([{self.inverse!r} * v for v in {self._logits_text()}])"
        return f"[logarithm({mixed}) for v in {tempered}]"

    def _logits(self, scores: FloatMatrix) -> FloatMatrix:
        return logits_of(scores, self.scale)

    def _logits_text(self) -> str:
        return logits_text(self.scale)

    def _check_fields(self) -> None:
        super()._check_fields()
        self._check_positive("inverse", "uniform")
        require(self.uniform < 1.0, "field 'uniform' of a map must be below 1.")


def _stored_matrix_if_any(rows: Any, field: str) -> FloatMatrix | None:
    return None if rows is None else stored_matrix(rows, field)


@dataclass(frozen=True, eq=False)
class SmoothSoftmaxMap(TemperedSoftmaxMap):
    """A tempered softmax map of log-probabilities and of probabilities.

    Scores are the sum of ``weights`` times tempered log-probabilities,
    ``probability_weights`` times the probabilities themselves, ``intercepts``, and
    ``curve`` times the fourth root of the class's own probability p, p, and log(1 - p).

    Parameters
    ----------
    probability_weights : ndarray of shape (k, k) or None
        One row of weights per class.
    curve : ndarray of shape (3,)
        Common to all classes.
    floor : float
        Smaller predicted probabilities are raised to this value.

    Examples
    --------
    >>> raised = np.array([[1.0, 0.0], [0.0, 0.0]])
    >>> moved = SmoothSoftmaxMap(
    ...     np.ones(2), np.zeros(2), probability_weights=raised
    ... )
    >>> moved([[0.5, 0.5]])  # odds times exp(0.5)
    array([[0.62245933, 0.37754067]])
    """

    kind: ClassVar[str] = "smooth-softmax"
    probability_weights: FloatMatrix | None = field(
        default=None, metadata={"read": _stored_matrix_if_any}
    )
    curve: FloatVector = field(default_factory=lambda: np.zeros(BENDS))
    floor: float = CLIP

    def _logits(self, scores: FloatMatrix) -> FloatMatrix:
        return log_probabilities(scores, self.scale, self.floor)

    def _logits_text(self) -> str:
        return log_probabilities_text(self.scale, self.floor)

    def _linear(self, x: FloatMatrix) -> FloatMatrix:
        moved = super()._linear(x) + np.tensordot(self.curve, bends(x), 1)
        if self.probability_weights is None:
            return np.asarray(moved)
        return np.asarray(moved + np.exp(x) @ self.probability_weights.T)

    def _scores_text(self) -> str:
        root, own, rest = self.curve.tolist()
        curved = f"""\
{super()._scores_text()}
prob = softmax(x)
scores = [s + {root!r} * v ** 0.25 + {own!r} * v for s, v in zip(scores, prob)]
rests = [logarithm(max(1.0 - v, {CLIP!r})) for v in prob]
scores = [s + {rest!r} * v for s, v in zip(scores, rests)]"""
        if self.probability_weights is None:
            return curved
        return f"""\
{curved}
rows = {self.probability_weights.tolist()}
sums = [sum(w * v for w, v in zip(row, prob)) for row in rows]
scores = [s + more for s, more in zip(scores, sums)]"""

    def _check_fields(self) -> None:
        super()._check_fields()
        self._check_positive("floor")
        require(
            self.curve.shape == (BENDS,),
            f"field 'curve' of a map must contain {BENDS} numbers.",
        )
        more, square = self.probability_weights, (self.n_classes, self.n_classes)
        fits = more is None or more.shape == square
        require(
            fits, "field 'probability_weights' of a map must have one row per class."
        )


MIN_FACTOR = 1e-4
"""Added to what a network gives, so that rounding makes no two classes equal."""


@dataclass(frozen=True, eq=False)
class Layer:
    """Weights of shape (outputs, inputs) and biases of shape (outputs,)."""

    weights: FloatMatrix
    biases: FloatVector


def _stored_layers(layers: Any, field: str) -> tuple[Layer, ...]:
    listed = isinstance(layers, list) and layers
    require(listed, f"field {field!r} of a map must be a list of layers.")
    return tuple(map(_stored_layer, layers))


def _stored_layer(stored: Any) -> Layer:
    require(isinstance(stored, dict), "a map must have a list of layers.")
    weights = stored_matrix(stored.get("weights"), "weights")
    biases = stored_numbers(stored.get("biases"), "biases")
    rows = weights.ndim > 1 and len(weights) == biases.size
    require(rows, "weights of a layer must have one row per bias.")
    return Layer(weights, biases)


@dataclass(frozen=True, eq=False)
class OrderPreservingMap(MulticlassMap):
    """Gaps between sorted logits, each times a positive number from a network.

    Parameters
    ----------
    layers : tuple of Layer
        Of the network; rectified between layers, k - 1 outputs.
    invariant : bool
        Whether the network sees the logits sorted, so that classes are alike.
    size : float
        What logits are divided by before they enter the network.
    inverse : float
        What gaps are multiplied by besides: one over a temperature.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are.
    """

    kind: ClassVar[str] = "order-preserving"
    layers: tuple[Layer, ...] = field(metadata={"read": _stored_layers})
    invariant: bool
    size: float
    inverse: float = 1.0
    scale: Scale = "prob"

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return self.layers[-1].biases.size + 1

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities."""
        logits = linear_inputs(scores, self.scale, "centred")
        order = np.argsort(-logits, axis=1, kind="stable")
        falling = np.take_along_axis(logits, order, axis=1)
        gaps = self.inverse * (falling[:, :-1] - falling[:, 1:])
        seen = (falling if self.invariant else logits) / self.size
        steps = gaps * (np.logaddexp(0.0, self._outputs(seen)) + MIN_FACTOR)
        climbed = np.zeros_like(logits)
        climbed[:, :-1] = steps[:, ::-1].cumsum(axis=1)[:, ::-1]
        moved = np.empty_like(logits)
        np.put_along_axis(moved, order, climbed, axis=1)
        return softmax(moved)

    def _outputs(self, x: FloatMatrix) -> FloatMatrix:
        for layer in self.layers[:-1]:
            x = np.maximum(x @ layer.weights.T + layer.biases, 0.0)
        return np.asarray(x @ self.layers[-1].weights.T + self.layers[-1].biases)

    def _check_fields(self) -> None:
        self._check_positive("size", "inverse")
        sizes = [self.n_classes, *(layer.biases.size for layer in self.layers)]
        fit = [layer.weights.shape[1] for layer in self.layers] == sizes[:-1]
        require(fit, "layers of a map must fit each other.")


@dataclass(frozen=True, eq=False)
class DiagonalMap(MulticlassMap):
    """The same rising function of each logit, straight from knot to knot.

    Parameters
    ----------
    knots, heights : ndarray of shape (m,)
        Of logits with mean 0 in each row; both rise.
    classes : int
        Number of classes.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are.
    """

    kind: ClassVar[str] = "diagonal"
    knots: FloatVector
    heights: FloatVector
    classes: int
    scale: Scale = "prob"

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities."""
        logits = linear_inputs(scores, self.scale, "centred")
        raised = values_at(logits.reshape(-1), self.knots, self.heights)
        return softmax(raised.reshape(logits.shape))

    def _check_fields(self) -> None:
        self._check_sizes(self.knots.size, "heights")
        rise = self.knots.size > 1 and (np.diff(self.knots) > 0.0).all()
        rise = rise and (np.diff(self.heights) >= 0.0).all()
        require(rise, "knots and heights of a diagonal map must increase.")
