"""Maps that are the softmax of linear scores: a temperature, a vector or a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np

from calibrant.core.class_rows import softmax
from calibrant.exceptions import MapFormatError
from calibrant.maps.multiclass import (
    MulticlassMap,
    stored_classes,
    stored_positive,
    stored_scale,
)
from calibrant.maps.stored import stored_numbers
from calibrant.numerics.class_probabilities import centred, log_probabilities, logits_of

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, JsonObject, Scale

Inputs: TypeAlias = Literal["centred", "log-prob"]
"""Logits with mean 0 in each row, or log-probabilities."""


def linear_inputs(scores: FloatMatrix, scale: Scale, inputs: Inputs) -> FloatMatrix:
    """Return what linear scores are taken of."""
    log_prob = log_probabilities(scores, scale)
    return centred(log_prob) if inputs == "centred" else log_prob


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
        What predictions hold.

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
        """Return the temperature: above 1 for predictions that were too sure."""
        return 1.0 / self.inverse

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return self.classes

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities."""
        return softmax(self.inverse * logits_of(scores, self.scale))

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        return {
            "kind": self.kind,
            "scale": self.scale,
            "inverse": self.inverse,
            "classes": self.classes,
        }

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
        One slope a class, or a row of weights a class.
    intercepts : ndarray of shape (k,)
        What is added to the score of each class.
    inputs : {"centred", "log-prob"}
        What weights multiply: logits with mean 0 in each row, or log-probabilities.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions hold.

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

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities."""
        x = linear_inputs(scores, self.scale, self.inputs)
        weighted = x * self.weights if self.weights.ndim == 1 else x @ self.weights.T
        return softmax(weighted + self.intercepts)

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        return {
            "kind": self.kind,
            "scale": self.scale,
            "inputs": self.inputs,
            "weights": self.weights.tolist(),
            "intercepts": self.intercepts.tolist(),
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        intercepts = stored_numbers(stored, "intercepts")
        if intercepts.size < 2:  # noqa: PLR2004
            raise MapFormatError("field 'intercepts' of a map must hold two or more.")
        inputs = stored.get("inputs")
        if inputs not in get_args(Inputs):
            raise MapFormatError(f"unknown inputs {inputs!r} of a softmax map.")
        weights = _stored_weights(stored, intercepts.size)
        return cls(weights, intercepts, inputs, stored_scale(stored))  # type: ignore[arg-type]


def _stored_weights(stored: JsonObject, classes: int) -> FloatMatrix:
    weights = stored.get("weights")
    if not (isinstance(weights, list) and weights and isinstance(weights[0], list)):
        return stored_numbers(stored, "weights", size=classes)
    rows = [
        stored_numbers({"weights": row}, "weights", size=classes) for row in weights
    ]
    if len(rows) != classes:
        raise MapFormatError(
            f"field 'weights' of a map must hold {classes} rows; got {len(rows)}."
        )
    return np.stack(rows)
