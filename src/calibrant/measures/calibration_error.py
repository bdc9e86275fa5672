"""The calibration error as one number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.calibrators.registry import find_evaluator
from calibrant.core.defaults import DEFAULT_METHOD
from calibrant.core.sample import warn_if_small
from calibrant.core.tasks import InputSpec, kind_of
from calibrant.measures.estimate import ErrorSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import ArrayLike, Debias, Scale, Seed, Task


def calibration_error(  # noqa: PLR0913
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    method: str = DEFAULT_METHOD,
    alpha: float = 1,
    debias: Debias = "auto",
    task: Task = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale = "prob",
    random_state: Seed = 0,
) -> float:
    r"""Estimate the calibration error, the mean of abs(c(p) - p) ** alpha.

    The true calibration map c is not known; the method estimates it on the same data
    (fit-on-test). For binned methods this is the classical ECE.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels: 0 and 1, booleans, or with `pos_label` any two values. Classes for
        multi-class tasks.
    y_prob : array-like of shape (n,) or (n, k)
        Predicted probability of the event, or of each class. With `task` None two
        columns are those of `predict_proba`, and the second is that of the event.
    method : str
        Which estimate; see `calibrator_names`. Or "kce", the squared kernel
        calibration error, whatever `alpha`; see `kernel_calibration_error`.
    alpha : float
        Exponent: 1 for the absolute, 2 for the squared error. No root is taken.
    debias : {"auto", True, False}
        "auto" subtracts the estimated bias if it is known for the method (binned
        methods with alpha 1 or 2), which may give values a little below 0 (`evaluate`
        gives 0 then); False gives the raw, classical value.
    task : None, "confidence", "classwise", "canonical", "multilabel", or a class
        None: `y_prob` is a vector. "confidence" or "top-label": the top class and
        whether it is right. A class, by label or column number: that class against the
        rest. "classwise": the mean over classes. "canonical": the whole vector of
        class probabilities, see Notes. "multilabel": the mean over labels of
        which a row can have several, with a matrix of 0 and 1 as `y_true`.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of 2 counts the row twice (except in cross-validation, which
        keeps a row in a single fold). Weights below one on
        average are scaled to sum to the effective number of rows.
    pos_label : object, optional
        The label that counts as the event.
    labels : sequence, optional
        The label of each column of `y_prob`, in order; by default 0 .. k-1.
    scale : {"prob", "logit", "percent", "logprob"}
        What `y_prob` holds: probabilities, logits, percentages from 0 to 100, or
        natural logarithms of probabilities. It is never guessed from the values.
    random_state : int, generator or None
        Seeds cross-validation.

    Returns
    -------
    float
        The estimate.

    See Also
    --------
    evaluate : several methods at once, with intervals.
    kernel_calibration_error : the error by kernels, with all their choices.

    Notes
    -----
    For the task "canonical" a map of several classes is fitted, and the error is the
    mean over rows of the sum over classes of abs(c_j(p) - p_j) ** alpha: from 0 to 2 if
    alpha is at least 1. This is the p-th power of the canonical calibration error of
    Popordanoska et al. (2022) with p = alpha. With two classes it is twice the error of
    one of them. If alpha is at least 1, it is not below the error of "classwise" times
    the number of classes. Methods are the multi-class ones, "ovr-" or "top-" before the
    name of a binary one, "kce", and objects whose ``fit(p, y)`` takes a matrix and
    column numbers.

    References
    ----------
    M. Kängsepp, K. Valk, M. Kull (2025). On the usefulness of the fit-on-test view on
    evaluating calibration of classifiers. Machine Learning 114.
    doi:10.1007/s10994-024-06652-6

    T. Popordanoska, R. Sayer, M. B. Blaschko (2022). A consistent and differentiable Lp
    canonical calibration error estimator. NeurIPS. arXiv:2210.07810

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> round(cb.calibration_error(y, p), 4)
    0.096
    >>> round(cb.calibration_error(y, p, method="es15"), 4)
    0.0819

    The ECE of Guo et al. (2017), of the top label:

    >>> prob, digit = cb.datasets.load_multiclass("forest")
    >>> settings = {"method": "ew15", "debias": False, "task": "confidence"}
    >>> round(cb.calibration_error(digit, prob, **settings), 4)
    0.1933

    The error of all class probabilities together:

    >>> round(cb.calibration_error(digit, prob, task="canonical"), 4)
    0.3943
    """
    settings = ErrorSettings(alpha=alpha, debias=debias)
    spec = InputSpec(task=task, pos_label=pos_label, labels=labels, scale=scale)
    kind = kind_of(spec.task_name)
    evaluator = find_evaluator(method, kind).measuring(random_state)
    tasks = spec.tasks(y_true, y_prob, sample_weight)
    warn_if_small(tasks.samples[0])
    fits = [evaluator.fit_sample(sample) for sample in tasks.measured]
    return float(settings.measured(fits, tasks.measured, method).errors.mean())
