"""Tasks: multi-class predictions reduced to binary events.

Whether a prediction of one event is calibrated is always the same question (section
3.3 of the paper); a task only says which event is meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.arrays import refuse_different_lengths
from calibrant._validation.labels import check_class_labels
from calibrant._validation.probabilities import check_probability_matrix
from calibrant._validation.sample import (
    BinarySample,
    check_binary_sample,
    weighted_sample,
)
from calibrant._validation.weights import check_weights
from calibrant._validation.wording import MEASURES, Wording
from calibrant.exceptions import OptionError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant._typing import ArrayLike, FloatMatrix, IntVector, Scale, Task


@dataclass(frozen=True, eq=False)
class Events:
    """The binary events that a task looks at.

    Attributes
    ----------
    task : str
        Name of the task.
    names : tuple of str
        Name of each event.
    samples : tuple of BinarySample
        Predictions and outcomes of each event: one, or one per class.
    """

    task: str
    names: tuple[str, ...]
    samples: tuple[BinarySample, ...]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How labels and probabilities are to be read.

    Attributes
    ----------
    task : None, "confidence", "classwise", or a class
        None: `y_prob` is a vector, the probability of one event. "confidence": the
        probability of the top class, and whether it is right. A class, by its label
        or column number: that class against the rest. "classwise": each class
        against the rest, averaged.
    pos_label : object, optional
        Binary: the label that means that the event happened.
    labels : sequence, optional
        Multi-class: the label of each probability column, in order.
    scale : {"prob", "logit"}
        What `y_prob` holds.
    wording : Wording
        What error messages call things.
    """

    task: Task = None
    pos_label: Any = None
    labels: Sequence[Any] | None = None
    scale: Scale = "prob"
    wording: Wording = MEASURES

    def events(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Events:
        """Validate the data and reduce them to binary events."""
        if self.task is None:
            return self._binary(y_true, y_prob, sample_weight)
        if self.pos_label is not None:
            raise OptionError(
                f"pos_label is for binary labels (task=None); with task={self.task!r} "
                f"name the classes by labels=[...]."
            )
        prob = check_probability_matrix(y_prob, scale=self.scale, wording=self.wording)
        column = check_class_labels(y_true, n_classes=prob.shape[1], labels=self.labels)
        weight = check_weights(sample_weight)
        refuse_different_lengths(y_true=column, y_prob=prob, sample_weight=weight)

        chosen = self._columns(prob.shape[1])
        pairs = [_event(prob, column, which) for which in chosen]
        samples = tuple(weighted_sample(p, y, weight) for p, y in pairs)
        return Events(str(self.task), self._names(chosen), samples)

    def _binary(
        self, y_true: ArrayLike, y_prob: ArrayLike, sample_weight: ArrayLike | None
    ) -> Events:
        if self.labels is not None:
            raise OptionError(
                "labels names the classes of a multi-class task; say which: "
                'task="confidence", task="classwise" or a class. For binary labels '
                "pass pos_label."
            )
        sample = check_binary_sample(
            y_true,
            y_prob,
            sample_weight=sample_weight,
            pos_label=self.pos_label,
            scale=self.scale,
            wording=self.wording,
        )
        return Events("binary", ("binary",), (sample,))

    def _columns(self, n_classes: int) -> list[int | None]:
        """Return the columns to look at; None stands for the top class."""
        if self.task == "confidence":
            return [None]
        if self.task == "classwise":
            return list(range(n_classes))
        classes = self._classes(n_classes)
        if self.task in classes:
            return [classes.index(self.task)]
        is_number = isinstance(self.task, int | np.integer)
        if is_number and 0 <= self.task < n_classes:
            return [int(self.task)]
        raise UnknownNameError.among(
            "task", self.task, ["confidence", "classwise", *classes]
        )

    def _classes(self, n_classes: int) -> list[Any]:
        return list(range(n_classes) if self.labels is None else self.labels)

    def _names(self, chosen: list[int | None]) -> tuple[str, ...]:
        n_classes = 1 + max((c for c in chosen if c is not None), default=0)
        classes = self._classes(n_classes)
        return tuple("confidence" if c is None else str(classes[c]) for c in chosen)


def _event(prob: FloatMatrix, column: IntVector, which: int | None) -> tuple[Any, Any]:
    if which is not None:
        return np.ascontiguousarray(prob[:, which]), (column == which).astype(float)
    top = prob.argmax(axis=1)
    confidence = prob[np.arange(top.size), top]
    return confidence, (top == column).astype(np.float64)
