"""Maps that are the softmax of transformed logits.

A temperature, a vector, a matrix; or intra-order-preserving functions (Rahimi et al.
2020), which keep the order of the classes within each row and need no torch here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np

from calibrant.core.probabilities import softmax
from calibrant.exceptions import MapFormatError
from calibrant.maps.base import stored_choice, stored_numbers
from calibrant.maps.multiclass import MulticlassMap, stored_classes, stored_scale
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
    from calibrant.core.array_types import FloatMatrix, FloatVector, JsonObject, Scale

Inputs: TypeAlias = Literal["centred", "log-prob"]
"""Logits with mean 0 in each row, or log-probabilities."""


def stored_positive(stored: JsonObject, field: str) -> float:
    """Return a field of a stored map that is one number above 0."""
    number = float(stored_numbers({field: [stored.get(field)]}, field)[0])
    if number <= 0.0:
        raise MapFormatError(f"field {field!r} of a map must be above 0.")
    return number


def linear_inputs(scores: FloatMatrix, scale: Scale, inputs: Inputs) -> FloatMatrix:
    """Return what linear scores are taken of."""
    log_prob = log_probabilities(scores, scale)
    return centred(log_prob) if inputs == "centred" else log_prob


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
        """Return the body of a function of the row p, up to the calibrated row."""
        logits = logits_text(self.scale)
        return f"return softmax([{self.inverse!r} * v for v in {logits}])"

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        inverse = stored_positive(stored, "inverse")
        return cls(inverse, stored_classes(stored), stored_scale(stored))


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
    inputs: Inputs = "centred"
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
        """Return the body of a function of the row p, up to the calibrated row."""
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

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        intercepts = stored_numbers(stored, "intercepts")
        if intercepts.size < 2:  # noqa: PLR2004
            raise MapFormatError(
                "field 'intercepts' of a map must contain at least two numbers."
            )
        inputs = stored_choice(stored, "inputs", get_args(Inputs))
        weights = _stored_weights(stored, intercepts.size)
        return cls(weights, intercepts, inputs, stored_scale(stored))


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
    inputs: Inputs = "log-prob"
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

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        plain = SoftmaxMap.from_dict(stored)
        inverse, uniform = (stored_positive(stored, f) for f in ("inverse", "uniform"))
        if uniform >= 1.0:
            raise MapFormatError("field 'uniform' of a map must be below 1.")
        fields = plain.weights, plain.intercepts, plain.inputs, plain.scale
        return cls(*fields, inverse, uniform)


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
    curve : tuple of float
        Three numbers, common to all classes.
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
    probability_weights: FloatMatrix | None = None
    curve: tuple[float, ...] = (0.0, 0.0, 0.0)
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
        root, own, rest = self.curve
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

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        plain = TemperedSoftmaxMap.from_dict(stored)
        by_probability = None
        if stored.get("probability_weights") is not None:
            by_probability = _stored_weights(
                stored, plain.n_classes, "probability_weights"
            )
        return cls(
            plain.weights,
            plain.intercepts,
            plain.inputs,
            plain.scale,
            plain.inverse,
            plain.uniform,
            by_probability,
            tuple(stored_numbers(stored, "curve", size=3).tolist()),
            stored_positive(stored, "floor"),
        )


def _stored_weights(
    stored: JsonObject, classes: int, field: str = "weights"
) -> FloatMatrix:
    weights = stored.get(field)
    if not (isinstance(weights, list) and weights and isinstance(weights[0], list)):
        return stored_numbers(stored, field, size=classes)
    if len(weights) != classes:
        raise MapFormatError(
            f"field {field!r} of a map must contain {classes} rows; got {len(weights)}."
        )
    return _stored_matrix(weights, columns=classes)


def _stored_matrix(rows: list[Any], columns: int | None = None) -> FloatMatrix:
    numbers = [stored_numbers({"weights": r}, "weights", size=columns) for r in rows]
    if len({row.size for row in numbers}) != 1:
        raise MapFormatError("rows of weights of a map must have the same length.")
    return np.stack(numbers)


MIN_FACTOR = 1e-4
"""Added to what a network gives, so that rounding makes no two classes equal."""


@dataclass(frozen=True, eq=False)
class Layer:
    """Weights of shape (outputs, inputs) and biases of shape (outputs,)."""

    weights: FloatMatrix
    biases: FloatVector


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
    layers: tuple[Layer, ...]
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

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        layers = [
            {"weights": layer.weights.tolist(), "biases": layer.biases.tolist()}
            for layer in self.layers
        ]
        return {**super().to_dict(), "layers": layers}

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        invariant, layers = stored.get("invariant"), stored.get("layers")
        if not isinstance(invariant, bool):
            raise MapFormatError("field 'invariant' of a map must be true or false.")
        if not isinstance(layers, list) or not layers:
            raise MapFormatError("field 'layers' of a map must be a list of layers.")
        network = tuple(map(_stored_layer, layers))
        sizes = [network[-1].biases.size + 1, *(one.biases.size for one in network)]
        if [layer.weights.shape[1] for layer in network] != sizes[:-1]:
            raise MapFormatError("layers of a map must fit each other.")
        size, inverse = (stored_positive(stored, name) for name in ("size", "inverse"))
        return cls(network, invariant, size, inverse, stored_scale(stored))


def _stored_layer(stored: Any) -> Layer:
    if not isinstance(stored, dict) or not isinstance(stored.get("weights"), list):
        raise MapFormatError("field 'layers' of a map must be a list of layers.")
    biases = stored_numbers(stored, "biases")
    if not biases.size or len(stored["weights"]) != biases.size:
        raise MapFormatError("weights of a layer must have one row per bias.")
    return Layer(_stored_matrix(stored["weights"]), biases)


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

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        knots = stored_numbers(stored, "knots")
        heights = stored_numbers(stored, "heights", size=knots.size)
        rise = knots.size > 1 and (np.diff(knots) > 0.0).all()
        if not rise or (np.diff(heights) < 0.0).any():
            raise MapFormatError("knots and heights of a diagonal map must increase.")
        return cls(knots, heights, stored_classes(stored), stored_scale(stored))
