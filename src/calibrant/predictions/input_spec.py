"""What the input holds, and which binary tasks it is reduced to.

Whether a prediction of one event is calibrated is always the same question (section
3.3 of the paper); a task only says which event is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from calibrant.core.array_types import Scale
from calibrant.core.arrays import check_same_length
from calibrant.core.labels import check_class_labels
from calibrant.core.options import check_choice
from calibrant.core.probabilities import check_probability_matrix
from calibrant.core.sample import (
    BinarySample,
    check_event,
    weighted_sample,
)
from calibrant.core.weights import check_weights
from calibrant.core.wording import MEASURES, Wording
from calibrant.exceptions import OptionError, Setting, UnknownNameError
from calibrant.numerics.class_probabilities import event_of_class

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import ArrayLike, FloatVector, IntVector, Task


@dataclass(frozen=True, eq=False)
class BinaryTasks:
    """The binary tasks that a task comes down to: one, or one per class.

    Attributes
    ----------
    task : str
        Name of the task.
    names : tuple of str
        Name of the event of each.
    samples : tuple of BinarySample
        Predictions, labels and weights of each.
    same_rows : bool
        Whether samples hold the same rows in the same order. Aggregated predictions
        do not know which classes share rows.
    """

    task: str
    names: tuple[str, ...]
    samples: tuple[BinarySample, ...]
    same_rows: bool = True


@dataclass(frozen=True, eq=False)
class Events:
    """Validated predictions and labels of binary events, without weights.

    Attributes
    ----------
    task : str
        Name of the task.
    names : tuple of str
        Name of each event.
    pairs : tuple of (ndarray, ndarray)
        Predictions and labels of each event, all of the same rows.
    """

    task: str
    names: tuple[str, ...]
    pairs: tuple[tuple[FloatVector, FloatVector], ...]

    def tasks(
        self, weight: FloatVector | None, rows: IntVector | slice | None = None
    ) -> BinaryTasks:
        """Return the binary tasks of all rows, or of some with their weights."""
        pairs = self.pairs
        if rows is not None:
            pairs = tuple((p[rows], y[rows]) for p, y in pairs)
        samples = tuple(weighted_sample(p, y, weight) for p, y in pairs)
        return BinaryTasks(self.task, self.names, samples)


@dataclass(frozen=True, kw_only=True)
class InputSpec:
    """How labels and probabilities are to be understood.

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
    scale : {"prob", "logit", "percent", "logprob"} or dict
        What `y_prob` holds, of all models or of each by its name.
    wording : Wording
        What error messages call things.
    """

    task: Task = None
    pos_label: Any = None
    labels: Sequence[Any] | None = None
    scale: Scale | Mapping[str, Scale] = "prob"
    wording: Wording = MEASURES

    def check_scales(self, models: Sequence[str]) -> None:
        """Raise unless every scale is known, and is said of all models or of each."""
        if isinstance(self.scale, Mapping):
            for name in self.scale:
                check_choice(name, models, name="model in scale,")
        for name in models:
            check_choice(self.scale_of(name), get_args(Scale), name="scale")

    def scale_of(self, model: str) -> Scale:
        """Return what the predictions of a model hold."""
        if not isinstance(self.scale, Mapping):
            return self.scale
        if model not in self.scale:
            raise OptionError(
                f"scale must say what each model holds; it lacks {model!r}. Known are "
                f"{', '.join(map(repr, get_args(Scale)))}."
            )
        return self.scale[model]

    def of_model(self, model: str, wording: Wording = MEASURES) -> InputSpec:
        """Return how to read one model."""
        return replace(self, scale=self.scale_of(model), wording=wording)

    def tasks(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> BinaryTasks:
        """Validate the data and reduce them to binary tasks."""
        events = self.events(y_true, y_prob)
        words = self.wording
        weight = check_weights(sample_weight, name=words.weight)
        p, y = events.pairs[0]
        check_same_length(**{words.label: y, words.prob: p, words.weight: weight})
        return events.tasks(weight)

    def events(self, y_true: ArrayLike, y_prob: ArrayLike) -> Events:
        """Validate predictions and labels, and reduce them to binary events."""
        self.check_options()
        scale: Any = self.scale  # of one model
        words = self.wording
        if self.task is None:
            p, y = check_event(
                y_true, y_prob, pos_label=self.pos_label, scale=scale, wording=words
            )
            return Events("binary", ("binary",), ((p, y),))
        prob = check_probability_matrix(y_prob, scale=scale, wording=words)
        column = check_class_labels(
            y_true, n_classes=prob.shape[1], labels=self.labels, wording=words
        )
        check_same_length(**{words.label: column, words.prob: prob})
        chosen = self.watched(prob.shape[1])
        pairs = tuple(event_of_class(prob, column, which) for which in chosen)
        return Events(str(self.task), self.event_names(chosen), pairs)

    def check_options(self) -> None:
        """Raise where options are of a different task."""
        if self.task is None:
            if self.labels is not None:
                raise OptionError(
                    "labels names the classes of a multi-class task; say which: ",
                    Setting("task", "confidence"),
                    ", ",
                    Setting("task", "classwise"),
                    " or a class. For binary labels pass ",
                    Setting("pos_label"),
                )
        elif self.pos_label is not None:
            raise OptionError(
                "pos_label is for binary labels (",
                Setting("task", None),
                "); with ",
                Setting("task", self.task),
                " name the classes: ",
                Setting("labels"),
            )

    def watched(self, n_classes: int) -> list[int | None]:
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

    def event_names(self, chosen: list[int | None]) -> tuple[str, ...]:
        """Return the name of the event of each column that is looked at."""
        n_classes = 1 + max((c for c in chosen if c is not None), default=0)
        classes = self._classes(n_classes)
        return tuple("confidence" if c is None else str(classes[c]) for c in chosen)
