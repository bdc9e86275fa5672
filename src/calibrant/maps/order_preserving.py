"""Intra-order-preserving maps (Rahimi et al. 2020), evaluated without torch.

Both keep the order of the classes within each row, so that the top label stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from calibrant.core.class_rows import softmax
from calibrant.exceptions import MapFormatError
from calibrant.maps.multiclass import (
    MulticlassMap,
    stored_classes,
    stored_positive,
    stored_scale,
)
from calibrant.maps.softmax import linear_inputs
from calibrant.maps.stored import stored_numbers
from calibrant.numerics.piecewise_problems import values_at

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, JsonObject, Scale


LEAST_FACTOR = 1e-4
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
        What predictions hold.
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
        steps = gaps * (np.logaddexp(0.0, self._outputs(seen)) + LEAST_FACTOR)
        climbed = np.zeros_like(logits)
        climbed[:, :-1] = steps[:, ::-1].cumsum(axis=1)[:, ::-1]
        found = np.empty_like(logits)
        np.put_along_axis(found, order, climbed, axis=1)
        return softmax(found)

    def _outputs(self, x: FloatMatrix) -> FloatMatrix:
        for layer in self.layers[:-1]:
            x = np.maximum(x @ layer.weights.T + layer.biases, 0.0)
        return np.asarray(x @ self.layers[-1].weights.T + self.layers[-1].biases)

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        return {
            "kind": self.kind,
            "scale": self.scale,
            "invariant": self.invariant,
            "size": self.size,
            "inverse": self.inverse,
            "layers": [
                {"weights": layer.weights.tolist(), "biases": layer.biases.tolist()}
                for layer in self.layers
            ],
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        invariant, layers = stored.get("invariant"), stored.get("layers")
        if not isinstance(invariant, bool):
            raise MapFormatError("field 'invariant' of a map must be true or false.")
        if not isinstance(layers, list) or not layers:
            raise MapFormatError("field 'layers' of a map must be a list of layers.")
        found = tuple(map(_stored_layer, layers))
        sizes = [found[-1].biases.size + 1, *(layer.biases.size for layer in found)]
        if [layer.weights.shape[1] for layer in found] != sizes[:-1]:
            raise MapFormatError("layers of a map must fit each other.")
        size, inverse = (stored_positive(stored, name) for name in ("size", "inverse"))
        return cls(found, invariant, size, inverse, stored_scale(stored))


def _stored_layer(stored: Any) -> Layer:
    if not isinstance(stored, dict) or not isinstance(stored.get("weights"), list):
        raise MapFormatError("field 'layers' of a map must be a list of layers.")
    biases = stored_numbers(stored, "biases")
    rows = [stored_numbers({"weights": row}, "weights") for row in stored["weights"]]
    if not rows or len(rows) != biases.size or len({row.size for row in rows}) != 1:
        raise MapFormatError("weights of a layer must have one row per bias.")
    return Layer(np.stack(rows), biases)


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
        What predictions hold.
    """

    kind: ClassVar[str] = "diagonal"
    knots: FloatVector
    heights: FloatVector
    classes: int
    scale: Scale = "prob"

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return self.classes

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities."""
        logits = linear_inputs(scores, self.scale, "centred")
        raised = values_at(logits.reshape(-1), self.knots, self.heights)
        return softmax(raised.reshape(logits.shape))

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        return {
            "kind": self.kind,
            "scale": self.scale,
            "classes": self.classes,
            "knots": self.knots.tolist(),
            "heights": self.heights.tolist(),
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        knots = stored_numbers(stored, "knots")
        heights = stored_numbers(stored, "heights", size=knots.size)
        rise = knots.size > 1 and (np.diff(knots) > 0.0).all()
        if not rise or (np.diff(heights) < 0.0).any():
            raise MapFormatError("knots and heights of a diagonal map must rise.")
        return cls(knots, heights, stored_classes(stored), stored_scale(stored))
