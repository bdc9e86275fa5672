"""A validated multi-class sample: what every multi-class fit works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.arrays import check_same_length
from calibrant.core.labels import check_class_labels
from calibrant.core.probabilities import check_class_scores
from calibrant.core.weights import check_weights
from calibrant.core.wording import CLASS_CALIBRATORS, Wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import (
        ArrayLike,
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
        Scale,
    )


@dataclass(frozen=True, eq=False)
class ClassSample:
    """Predictions of k classes, which class happened, and weights.

    Attributes
    ----------
    scores : ndarray of shape (n, k)
        Logits as they were given, or else probabilities.
    column : ndarray of shape (n,)
        The class that happened, as a column number.
    weight : ndarray of shape (n,) or None
        How many rows each row stands for; None where each stands for itself.
    scale : {"prob", "logit", "percent", "logprob"}
        What was given; all but "logit" have become probabilities.
    """

    scores: FloatMatrix
    column: IntVector
    weight: FloatVector | None = None
    scale: Scale = "prob"

    @property
    def n(self) -> int:
        """Return the number of rows."""
        return self.column.size

    @property
    def total(self) -> float:
        """Return the sum of weights: the rows that the sample stands for."""
        return float(self.n if self.weight is None else self.weight.sum())

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return int(self.scores.shape[1])

    def rows(self, which: BoolVector | IntVector) -> ClassSample:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[which]
        return ClassSample(self.scores[which], self.column[which], weight, self.scale)


def check_class_sample(
    scores: ArrayLike,
    y: ArrayLike,
    *,
    scale: Scale = "prob",
    labels: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    wording: Wording = CLASS_CALIBRATORS,
) -> ClassSample:
    """Validate predictions, labels and weights together; drop rows of weight 0."""
    matrix = check_class_scores(scores, scale=scale, wording=wording)
    column = check_class_labels(
        y, n_classes=matrix.shape[1], labels=labels, wording=wording
    )
    weight = check_weights(sample_weight, name=wording.weight)
    check_same_length(
        **{wording.label: column, wording.prob: matrix, wording.weight: weight}
    )
    sample = ClassSample(matrix, column, weight, scale)
    if weight is None or weight.all():
        return sample
    return sample.rows(np.flatnonzero(weight))
