"""The kernel calibration error as one number, with all its choices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from calibrant.calibrators.kernel_error import MIN_ROWS, KernelError
from calibrant.core.parameters import check_choice, check_count, generator
from calibrant.core.sample import ClassSample, warn_if_small
from calibrant.core.tasks import CANONICAL, InputSpec
from calibrant.exceptions import OptionError, Setting, TooFewRowsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import ArrayLike, FloatVector, Scale, Seed, Task
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.kernel_error import KernelName, OutcomeKernelName

KernelEstimator: TypeAlias = Literal["unbiased", "biased", "block"]


def kernel_calibration_error(  # noqa: PLR0913
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    kernel: KernelName = "rbf",
    bandwidth: float | Literal["median"] = 1.0,
    outcome_kernel: OutcomeKernelName = "rbf",
    estimator: KernelEstimator = "unbiased",
    block_size: int = 2,
    task: Task = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale = "prob",
    random_state: Seed = 0,
) -> float:
    r"""Estimate the squared kernel calibration error.

    The mean over pairs of rows of (y - p)(y' - p') k(p, p'), which is 0 in expectation
    if and only if the predictions are calibrated. No map is fitted. The defaults are
    those of the paper and of ``method="kce"``. No root is taken, since an unbiased
    estimate may be negative.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels: 0 and 1, booleans, or with `pos_label` any two values; classes for
        multi-class tasks.
    y_prob : array-like of shape (n,) or (n, k)
        Predicted probability of the event, or of each class.
    kernel : {"rbf", "laplace"}
        Kernel of predictions with distance d: exp(-d^2 / 2h^2), or exp(-d / h).
    bandwidth : float or "median"
        The h of the kernel. "median" is the median distance between rows; a narrower
        kernel detects errors that change faster with p.
    outcome_kernel : {"rbf", "white", "linear"}
        Kernel of labels, which only multiplies the error: by 2 - 2 exp(-1/2) (RBF
        with bandwidth 1, as in the paper), by 2 (both columns of a binary
        classifier), or by 1 (the formula above as it stands).
    estimator : {"unbiased", "biased", "block"}
        "unbiased": over pairs of different rows; may fall below 0. "biased": over
        all pairs; never negative. "block": unbiased, over the pairs within random
        blocks of `block_size` rows only.
    block_size : int
        Rows per block; 2 is the linear-time estimator.
    task : None, "confidence", "classwise", "canonical", "multilabel", or a class
        None: binary. "confidence" or "top-label": the top class and whether it is
        right. A class, by label or column number: that class against the rest.
        "classwise": the mean over classes. "canonical": the whole vector of class
        probabilities, see Notes. "multilabel": the mean over labels of which a row can
        have several, with a matrix of 0 and 1 as `y_true`.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of 2 counts the row twice.
    pos_label : object, optional
        The label that counts as the event.
    labels : sequence, optional
        The label of each column of `y_prob`, in order; by default 0 .. k-1.
    scale : {"prob", "logit", "percent", "logprob"}
        What `y_prob` holds: probabilities, logits, percentages from 0 to 100, or
        natural logarithms of probabilities.
    random_state : int, generator or None
        Seeds which rows share a block.

    Returns
    -------
    float
        The estimate; the mean over classes for the task "classwise".

    See Also
    --------
    calibration_error : the error of a fitted calibration map.
    calibration_test : with ``method="kce"`` the test by this error.

    Notes
    -----
    For the task "canonical" residuals are vectors, and the product of two of them is
    half their inner product: with two classes the error is that of one of them, and
    with ``outcome_kernel="white"`` it is the error by the kernel k(p, p') times the
    identity matrix. Distances of vectors are from 0 to 1: total variation for
    "laplace", and the Euclidean distance over the root of 2 for "rbf". The time grows
    with the square of the number of rows; `bandwidth` must be a number, and blocks are
    not available.

    References
    ----------
    D. Widmann, F. Lindsten, D. Zachariah (2019). Calibration tests in multi-class
    classification: a unifying framework. NeurIPS. arXiv:1910.11385

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> round(cb.kernel_calibration_error(y, p), 5)
    0.00059
    >>> round(cb.kernel_calibration_error(y, p, kernel="laplace", bandwidth=0.1), 5)
    0.0014
    """
    check_choice(estimator, get_args(KernelEstimator), name="estimator")
    check_count(block_size, name="block_size", least=2)
    family = KernelError(
        kernel=kernel, bandwidth=bandwidth, outcome_kernel=outcome_kernel
    )
    spec = InputSpec(task=task, pos_label=pos_label, labels=labels, scale=scale)
    tasks = spec.tasks(y_true, y_prob, sample_weight)
    warn_if_small(tasks.samples[0])

    def error(sample: BinarySample | ClassSample) -> float:
        fit = family.fit_sample(sample)
        if isinstance(sample, ClassSample) and estimator == "block":
            raise OptionError(
                'estimator="block" is for one event; with ',
                Setting("task", CANONICAL),
                ' use "unbiased" or "biased".',
            )
        if estimator != "block" or isinstance(sample, ClassSample):
            return fit.error(sample, alpha=2.0, debias=estimator == "unbiased")
        rng = generator(random_state)
        return float(block_errors(family, sample, block_size, rng).mean())

    return float(np.mean([error(sample) for sample in tasks.measured]))


def block_errors(
    family: KernelError, sample: BinarySample, size: int, rng: np.random.Generator
) -> FloatVector:
    """Return the unbiased error of each of many random blocks of rows.

    The order of rows is shuffled first, since it may go with the predictions.
    """
    rows = np.arange(sample.n)
    if sample.weight is not None:
        if (sample.weight % 1.0).any():
            raise OptionError(
                'estimator="block" needs sample_weight in whole numbers, since a '
                'row cannot be split between blocks; use "unbiased" instead.'
            )
        rows = np.repeat(rows, sample.weight.astype(np.intp))
    if rows.size < size:
        raise TooFewRowsError(
            f"a block of {size} rows needs at least as many rows; got "
            f"{rows.size}. Lower block_size (at least {MIN_ROWS})."
        )
    rng.shuffle(rows)
    kernel = family.fit_sample(sample).kernel
    return kernel.block_errors(sample.p[rows], sample.y[rows], size)
