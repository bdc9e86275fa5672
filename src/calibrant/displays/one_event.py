"""The one event that a diagram shows, by its task or of a fitted classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.options import check_choice
from calibrant.exceptions import OptionError, Setting

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant.core.array_types import Task


def check_not_classwise(task: Task) -> None:
    """Raise where a task has several events."""
    if isinstance(task, str) and task == "classwise":
        raise OptionError(
            "a diagram shows one event; pass ",
            Setting("task", "confidence"),
            " or one class instead of ",
            Setting("task", "classwise"),
            ". Aggregate the rows anew with that task.",
        )


def classifier_event(
    estimator: Any, X: Any, options: dict[str, Any]
) -> tuple[NDArray[Any], dict[str, Any]]:
    """Return what a fitted classifier predicts, and options that say of which event.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba`` and ``classes_``.
    X
        Test data.
    options : dict
        Options of a diagram. Its name, and labels or the class that is the event, come
        from the classifier where they are not there.

    Returns
    -------
    ndarray, dict
        Probabilities, of the event or of all classes; and the options.
    """
    if not hasattr(estimator, "predict_proba"):
        raise OptionError(
            f"estimator must have predict_proba; {type(estimator).__name__} has "
            f"none. Pass its probabilities to from_predictions instead."
        )
    prob = np.asarray(estimator.predict_proba(X))
    classes = list(np.asarray(estimator.classes_).tolist())
    options = {"name": type(estimator).__name__} | options
    if options.get("task") is not None:
        return prob, {"labels": classes} | options
    if len(classes) != 2:  # noqa: PLR2004
        raise OptionError(
            f"the estimator has {len(classes)} classes; say what to look at: ",
            Setting("task", "confidence"),
            " or a class.",
        )
    options = {"pos_label": classes[1]} | options
    positive = check_choice(options["pos_label"], classes, name="pos_label")
    return prob[:, classes.index(positive)], options
