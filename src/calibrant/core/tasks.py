"""What the input holds, and which binary tasks it is reduced to.

Whether a prediction of one event is calibrated is always the same question (section
3.3 of the paper); a task only says which event is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from calibrant.core.array_types import Scale
from calibrant.core.arrays import as_array, check_same_length
from calibrant.core.labels import check_class_labels, check_label_order
from calibrant.core.parameters import check_choice
from calibrant.core.probabilities import check_class_scores, softmax
from calibrant.core.sample import BinarySample, ClassSample, event_of_arrays
from calibrant.core.weights import check_weights
from calibrant.core.wording import MEASURE_WORDING, Wording
from calibrant.exceptions import (
    Argument,
    OptionError,
    Setting,
    ShapeError,
    UnknownNameError,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import (
        ArrayLike,
        FloatMatrix,
        FloatVector,
        IntVector,
        Task,
    )


@dataclass(frozen=True, eq=False)
class BinaryTasks:
    """The binary tasks that a task comes down to: one, or one per class or label."""

    task: str
    names: tuple[str, ...]  # name of the event of each
    samples: tuple[BinarySample, ...]  # predictions, labels and weights of each
    whole: ClassSample | None = None  # where the error is that of the whole vector

    @cached_property
    def measured(self) -> tuple[BinarySample | ClassSample, ...]:
        """Return what has an error: each event, or the whole vector."""
        return self.samples if self.whole is None else (self.whole,)

    def weighted(
        self,
        weight: FloatVector | None,
        rows: IntVector | slice = slice(None),
        clusters: IntVector | None = None,
    ) -> BinaryTasks:
        """Return some of the rows, with weights and clusters; none of weight 0."""
        if weight is None and clusters is None and isinstance(rows, slice):  # all rows
            return self
        given = weight, rows, clusters
        return replace(
            self,
            samples=tuple(sample.weighted(*given) for sample in self.samples),
            whole=None if self.whole is None else self.whole.weighted(*given),
        )

    def without_fits(self) -> BinaryTasks:
        """Return the same rows, without what was fitted to them."""
        return replace(self, samples=tuple(replace(s) for s in self.samples))


SEVERAL_EVENTS = ("classwise", "multilabel")
"""Tasks whose error is the mean over several events."""

CANONICAL = "canonical"
"""The task whose error is that of the whole vector of class probabilities."""

NAMED_TASKS = ("confidence", *SEVERAL_EVENTS, CANONICAL)
"""Tasks that are not one class."""


def kind_of(task: str) -> Literal["binary", "multi-class"]:
    """Return whether each event has an error, or all classes together."""
    return "multi-class" if task == CANONICAL else "binary"


@dataclass(frozen=True, kw_only=True)
class InputSpec:
    """How labels and probabilities are to be understood.

    Parameters of `Predictions.from_arrays`; `wording` is what messages call things.
    """

    task: Task = None
    pos_label: Any = None
    labels: Sequence[Any] | None = None
    scale: Scale | Mapping[str, Scale] = "prob"
    wording: Wording = MEASURE_WORDING

    def __post_init__(self) -> None:
        if isinstance(self.task, str) and self.task == "top-label":  # the same thing
            object.__setattr__(self, "task", "confidence")

    @property
    def task_name(self) -> str:
        """Return what results call the task."""
        return "binary" if self.task is None else str(self.task)

    @property
    def event(self) -> str | None:
        """Return the label that is predicted; None where it is not one with a name."""
        label = self.pos_label if self.task is None else self.task
        unnamed = label is None or self.task in NAMED_TASKS
        return None if unnamed else str(label)

    def check_scales(self, models: Sequence[str]) -> None:
        """Raise unless every model has a known scale, and every scale a model."""
        if isinstance(self.scale, Mapping):
            for name in self.scale:
                check_choice(name, models, name="model in scale,")
        for name in models:
            check_choice(self.scale_of(name), get_args(Scale), name="scale")

    def check_one_scale(self, models: Collection[str]) -> None:
        """Raise unless scales are those of columns: rows of models share a column."""
        if isinstance(self.scale, Mapping) and set(self.scale) != set(models):
            raise OptionError(
                "models that are named by a column share a column of predictions, and "
                "have one scale: ",
                Argument("scale"),
                f" names {', '.join(map(repr, self.scale))}. Convert the predictions "
                "of these models in the file, for example divide percentages by 100.",
            )

    def scale_of(self, model: str) -> Scale:
        """Return what the predictions of a model hold."""
        if not isinstance(self.scale, Mapping):
            return self.scale
        if model not in self.scale:
            raise OptionError(
                Argument("scale"),
                f" must be given for every model; {model!r} is missing. "
                f"Possible scales are {', '.join(map(repr, get_args(Scale)))}.",
            )
        return self.scale[model]

    def tasks(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> BinaryTasks:
        """Validate the data and reduce them to binary tasks."""
        words = self.wording
        scores = as_array(y_prob, name=words.prob)
        tasks = self.tasks_of_arrays(as_array(y_true, name=words.label), scores)
        if sample_weight is None:
            return tasks
        weight = check_weights(sample_weight, name=words.weight)
        first = tasks.samples[0]
        check_same_length(
            **{words.label: first.y, words.prob: first.p, words.weight: weight}
        )
        return tasks.weighted(weight)

    def tasks_of_arrays(self, label: NDArray[Any], score: NDArray[Any]) -> BinaryTasks:
        """Validate labels and predictions, and reduce them to binary tasks."""
        self.check_options()
        scale: Any = self.scale  # of one model
        words = self.wording
        if self.task is None:
            p, y = event_of_arrays(
                label, score, pos_label=self.pos_label, scale=scale, wording=words
            )
            return BinaryTasks("binary", ("binary",), (BinarySample(p, y),))
        if self.task == "multilabel":
            return self._one_event_per_column(label, score, scale)
        scores = check_class_scores(score, scale=scale, wording=words)
        prob = softmax(scores) if scale == "logit" else scores
        column = check_class_labels(
            label, n_classes=prob.shape[1], labels=self.labels, wording=words
        )
        check_same_length(**{words.label: column, words.prob: prob})
        columns, names = self.events(prob.shape[1])
        samples = (BinarySample(*event_of_class(prob, column, k)) for k in columns)
        whole = (
            ClassSample(scores, column, None, scale) if self.task == CANONICAL else None
        )
        return BinaryTasks(str(self.task), names, tuple(samples), whole)

    def _one_event_per_column(
        self, label: NDArray[Any], score: NDArray[Any], scale: Scale
    ) -> BinaryTasks:
        """Return a task for each label, of which a row can have any number."""
        words = self.wording
        for name, array in ((words.prob, score), (words.label, label)):
            if array.ndim != 2:  # noqa: PLR2004
                raise ShapeError.of(
                    name,
                    "must have one column per label",
                    f"it has shape {array.shape}",
                    ("Pass labels and predictions as matrices of shape (n, k).",),
                )
        if label.shape != score.shape:
            raise ShapeError.of(
                words.label,
                f"must have the shape of {words.prob}, {score.shape}",
                f"it has shape {label.shape}",
            )
        names = check_label_order(self.labels, score.shape[1])
        samples = []
        for column, name in enumerate(names):
            in_column = replace(
                words,
                label=f"{words.label}, label {name!r},",
                prob=f"{words.prob}, label {name!r},",
                two_labels=("Turn them into 0 and 1.",),
                several_labels=("Turn them into 0 and 1.",),
            )
            p, y = event_of_arrays(
                label[:, column],
                score[:, column],
                pos_label=None,
                scale=scale,
                wording=in_column,
            )
            samples.append(BinarySample(p, y))
        return BinaryTasks("multilabel", tuple(map(str, names)), tuple(samples))

    def check_options(self) -> None:
        """Raise where an option belongs to a different task."""
        if self.task is None:
            if self.labels is not None:
                raise OptionError(
                    Argument("labels"),
                    " names the classes of a multi-class task; choose a task: ",
                    Setting("task", "confidence"),
                    ", ",
                    Setting("task", "classwise"),
                    " or a class. For binary labels pass ",
                    Setting("pos_label"),
                )
        elif self.pos_label is not None:
            raise OptionError(
                Argument("pos_label"),
                " is for binary labels (",
                Setting("task", None),
                "); with ",
                Setting("task", self.task),
                " name the classes: ",
                Setting("labels"),
            )

    def events(self, n_classes: int) -> tuple[list[int | None], tuple[str, ...]]:
        """Return the column and the name of each event; None is the top class."""
        if self.task == "confidence":
            return [None], ("confidence",)
        if self.task == "multilabel":
            raise OptionError(
                Setting("task", "multilabel"),
                " takes matrices of labels and predictions, as arrays or an npz file "
                "without invalid rows.",
            )
        classes = list(range(n_classes) if self.labels is None else self.labels)
        if self.task in ("classwise", CANONICAL):
            return list(range(n_classes)), tuple(map(str, classes))
        is_number = isinstance(self.task, int | np.integer)
        if self.task in classes:
            place = classes.index(self.task)
        elif is_number and 0 <= self.task < n_classes:
            place = int(self.task)
        elif is_number and self.labels is None:
            raise UnknownNameError(
                f"unknown task {self.task}; the classes are numbered 0 to "
                f"{n_classes - 1}."
            )
        else:
            raise UnknownNameError.among("task", self.task, [*NAMED_TASKS, *classes])
        return [place], (str(classes[place]),)


def event_of_class(
    prob: FloatMatrix, column: IntVector, which: int | None
) -> tuple[FloatVector, FloatVector]:
    """Return the predictions of a class and its labels; None: those of the top class.

    Of classes with the same probability the first is on top.

    >>> prob, column = np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([1, 1])
    >>> event_of_class(prob, column, None)
    (array([0.5, 0.8]), array([0., 1.]))
    """
    if which is not None:
        return np.ascontiguousarray(prob[:, which]), (column == which).astype(float)
    top = prob.argmax(axis=1)
    confidence = prob[np.arange(top.size), top]
    return confidence, (top == column).astype(np.float64)


def check_events(task: Task, what: str) -> None:
    """Raise where a task is the whole vector, but only events can be looked at."""
    if isinstance(task, str) and task == CANONICAL:
        raise OptionError(
            Setting("task", CANONICAL),
            f" is not available for {what}; pass ",
            Setting("task", "classwise"),
            ", ",
            Setting("task", "confidence"),
            " or one class.",
        )


def check_one_event(task: Task, what: str, *, aggregated: bool = False) -> None:
    """Raise where a task has several events, but only one can be looked at.

    `aggregated` predictions have a task already, which cannot be replaced.
    """
    if not isinstance(task, str) or task not in (*SEVERAL_EVENTS, CANONICAL):
        return
    if task == "multilabel":
        raise OptionError(
            Setting("task", task),
            f" is not available for {what}; pass one column of labels and one of "
            "predictions, without a task.",
        )
    again = " Aggregate the rows again with one of these." if aggregated else ""
    raise OptionError(
        Setting("task", task),
        f" is not available for {what}; pass ",
        Setting("task", "confidence"),
        f" or one class.{again}",
    )
