"""Tests: whether perfectly calibrated predictions could have looked like this."""

from __future__ import annotations

from dataclasses import dataclass, fields
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from scipy.special import ndtr

from calibrant.calibrators.kernel_error import KernelError, check_two_rows
from calibrant.core.parameters import check_choice, check_count, generator
from calibrant.core.sample import warn_if_small
from calibrant.core.tasks import check_one_event
from calibrant.exceptions import (
    Argument,
    OptionError,
    TooFewRowsError,
    UnknownNameError,
)
from calibrant.measures.kernel import block_errors
from calibrant.numerics.classical_tests import (
    Outcome,
    cox,
    hosmer_lemeshow,
    spiegelhalter_z,
)
from calibrant.numerics.cluster_dependence import dependence_of
from calibrant.numerics.clustered_test import cluster_t, clustered_cox, smooth_p_value
from calibrant.numerics.smooth_calibration_test import MAX_FUNCTIONS
from calibrant.numerics.weighted_points import compress_to_at_most
from calibrant.predictions.predictions import as_predictions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calibrant.core.array_types import (
        ArrayLike,
        FloatVector,
        Frame,
        Scale,
        Seed,
        Task,
    )
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.kernel_error import KernelName
    from calibrant.predictions.predictions import Predictions

Null = Literal["resampled", "asymptotic"]
MIN_BLOCKS = 2


@dataclass(frozen=True)
class CalibrationTest:
    """Result of a test of whether predictions are calibrated.

    Attributes
    ----------
    method, task : str
        Name of the test and of the task.
    statistic : float
        The test's statistic.
    pvalue : float
        The probability of a statistic at least as extreme under perfect calibration.
    n : int
        Number of rows.
    alternative : str
        What the test looks for.

    See Also
    --------
    calibration_test : makes tests.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> print(calibration_test(y, p, method="spiegelhalter"))
    spiegelhalter (binary): statistic -13.05, p-value 6.72e-39, n = 1797
    """

    method: str
    task: str
    statistic: float
    pvalue: float
    n: int
    alternative: str

    def __str__(self) -> str:
        return (
            f"{self.method} ({self.task}): statistic {self.statistic:.4g}, "
            f"p-value {self.pvalue:.3g}, n = {self.n}"
        )

    def frame(self) -> Frame:
        """Return the result as columns of one row.

        Returns
        -------
        dict of ndarray
            Columns: method, task, statistic, pvalue, n, alternative.
        """
        return {f.name: np.array([getattr(self, f.name)]) for f in fields(self)}


def _smooth(
    sample: BinarySample,
    rng: np.random.Generator,  # noqa: ARG001
    *,
    most: int = MAX_FUNCTIONS,
) -> Outcome:
    """Return minus the log of the mean of p-values, and its own p-value."""
    check_count(most, name="most")
    return smooth_p_value(sample, most).outcome


def _kernel(
    sample: BinarySample,
    rng: np.random.Generator,
    *,
    kernel: KernelName = "rbf",
    bandwidth: float | Literal["median"] = "median",
    null: Null = "resampled",
    n_resamples: int = 1000,
    block_size: int = 2,
) -> Outcome:
    """Return the squared kernel error and its p-value, one-sided.

    The kernel of labels does not matter here and is the linear one.
    """
    family = KernelError(kernel=kernel, bandwidth=bandwidth, outcome_kernel="linear")
    check_choice(null, get_args(Null), name="null")
    check_count(n_resamples, name="n_resamples")
    check_count(block_size, name="block_size", least=2)
    check_two_rows(sample, debias=True)
    if null == "asymptotic":
        blocks = block_errors(family, sample, block_size, rng)
        return _asymptotic(blocks, block_size, sample.total)
    fit = family.fit_sample(sample)
    error = fit.error(sample, alpha=2.0, debias=True)
    drawn = fit.kernel.calibrated_errors(sample.p, sample.weight, n_resamples, rng)
    # Labels on few predictions give equal statistics, but for rounding.
    level = error - 1e-9 * np.abs(drawn).max()
    above = np.count_nonzero(drawn >= level)
    return Outcome(error, float((1 + above) / (1 + n_resamples)))


def _asymptotic(blocks: FloatVector, size: int, total: float) -> Outcome:
    """Return the mean error of blocks, and its p-value as a normal variable."""
    if blocks.size < MIN_BLOCKS:
        raise TooFewRowsError(
            f'null="asymptotic" needs at least {MIN_BLOCKS} blocks of {size} rows; got '
            f'{total:g} rows. Lower block_size or use null="resampled".'
        )
    mean = float(blocks.mean())
    error = float(blocks.std(ddof=1)) / np.sqrt(blocks.size)
    if error == 0.0:
        return Outcome(mean, 0.0 if mean > 0.0 else 1.0)
    return Outcome(mean, float(ndtr(-mean / error)))


def _spiegelhalter(sample: BinarySample, rng: np.random.Generator) -> Outcome:  # noqa: ARG001
    """Return Spiegelhalter's z, or t of clusters, and its two-sided p-value."""
    if sample.clusters is None:
        return spiegelhalter_z(sample.p, sample.y, sample.weights)
    scores = sample.weights * (sample.y - sample.p) * (1.0 - 2.0 * sample.p)
    return cluster_t(scores, sample.clusters)


def _hosmer_lemeshow(
    sample: BinarySample,
    rng: np.random.Generator,  # noqa: ARG001
    *,
    groups: int = 10,
    fitted: int = 0,
) -> Outcome:
    """Return chi-square and its p-value; NaN where ties leave too few groups."""
    check_count(groups, name="groups")
    check_count(fitted, name="fitted", least=0)
    if fitted >= groups:
        raise OptionError(
            f"fitted must be less than groups; got {fitted} and {groups}."
        )
    return hosmer_lemeshow(
        sample.p, sample.y, sample.weight, groups=groups, fitted=fitted
    )


def _cox(sample: BinarySample, rng: np.random.Generator) -> Outcome:  # noqa: ARG001
    """Return the likelihood ratio, chi-square with two degrees of freedom.

    With clusters, it is the score test of the same two parameters.
    """
    dependence = dependence_of(sample)
    if dependence is not None:
        return clustered_cox(compress_to_at_most(sample), dependence)
    return cox(sample.p, sample.y, sample.weights)


TESTS: dict[str, tuple[Callable[..., Outcome], str]] = {
    "smooth": (_smooth, "any smooth map"),
    "kce": (_kernel, "any map"),
    "spiegelhalter": (_spiegelhalter, "a Brier score other than expected"),
    "hosmer-lemeshow": (_hosmer_lemeshow, "an observed rate that is off in some group"),
    "cox": (_cox, "an intercept other than 0 or a slope other than 1"),
}
"""Each test, and what it looks for; its keywords are its options."""
CLUSTERED = ("smooth", "spiegelhalter", "cox")
"""Tests that know of clusters."""


def calibration_test(  # noqa: PLR0913
    y_true: ArrayLike | Predictions,
    y_prob: ArrayLike | None = None,
    *,
    method: str = "smooth",
    task: Task = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale = "prob",
    random_state: Seed = 0,
    **options: Any,
) -> CalibrationTest:
    """Test whether the predictions could be perfectly calibrated.

    Parameters
    ----------
    y_true : array-like of shape (n,) or Predictions
        Labels: 0 and 1, booleans, or with `pos_label` any two values; classes for
        multi-class tasks. Or `Predictions` of one model, which need no other data.
    y_prob : array-like of shape (n,) or (n, k)
        Predicted probability of the event, or of each class.
    method : {"smooth", "kce", "spiegelhalter", "hosmer-lemeshow", "cox"}
        "smooth": lines and curves of increasing order, of which lines count most;
        nothing is simulated. "kce": the kernel calibration error, which detects
        any departure, given enough rows. "spiegelhalter": the Brier score.
        "hosmer-lemeshow": observed rates in groups. "cox": intercept and slope of a
        logistic regression.
    task : None, "confidence" or a class
        None: binary. "confidence": the top class and whether it is right. A class, by
        label or column number: that class against the rest.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of 2 counts the row twice.
    clusters : array-like of shape (n,), optional
        Which rows belong together, such as those of one patient, for "smooth",
        "spiegelhalter" and "cox", which then allow for correlated labels.
    pos_label : object, optional
        The label that counts as the event.
    labels : sequence, optional
        The label of each column of `y_prob`, in order; by default 0 .. k-1.
    scale : {"prob", "logit", "percent", "logprob"}
        What `y_prob` holds: probabilities, logits, percentages from 0 to 100, or
        natural logarithms of probabilities.
    random_state : int, generator or None
        Seeds drawn labels and blocks.
    **options
        Of the method. "smooth": ``most=24``, the maximum number of functions.
        "kce": ``kernel="rbf"`` or "laplace", ``bandwidth="median"`` or a number;
        ``null="resampled"``, labels simulated from the predicted probabilities
        ``n_resamples=1000`` times, exact for any number of rows, or "asymptotic", the
        mean over random blocks of ``block_size=2`` rows as a normal variable, which is
        quick but has less power.
        "hosmer-lemeshow": ``groups=10``, ``fitted=0`` (degrees of freedom that
        fitting on the same rows used up).

    Returns
    -------
    CalibrationTest
        With `statistic`, `pvalue` and the `alternative`.

    See Also
    --------
    evaluate : how large the error is, with intervals.
    diagnose : which kinds of miscalibration there are.

    References
    ----------
    J. Fan (1996). Test of significance based on wavelet thresholding and Neyman's
    truncation. JASA 91. doi:10.1080/01621459.1996.10476936

    V. Vovk, R. Wang (2020). Combining p-values via averaging. Biometrika 107.
    doi:10.1093/biomet/asaa027

    D. Widmann, F. Lindsten, D. Zachariah (2019). Calibration tests in multi-class
    classification: a unifying framework. NeurIPS. arXiv:1910.11385

    D. J. Spiegelhalter (1986). Probabilistic prediction in patient management and
    clinical trials. Statistics in Medicine 5. doi:10.1002/sim.4780050506

    D. W. Hosmer, S. Lemeshow, R. X. Sturdivant (2013). Applied logistic regression.
    doi:10.1002/9781118548387

    D. R. Cox (1958). Two further applications of a model for binary regression.
    Biometrika 45. doi:10.1093/biomet/45.3-4.562

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> print(cb.calibration_test(y, p))
    smooth (binary): statistic 85.33, p-value 9.94e-38, n = 1797
    >>> print(cb.calibration_test(y, p, method="hosmer-lemeshow", groups=5))
    hosmer-lemeshow (binary): statistic 101, p-value 3.2e-20, n = 1797
    """
    if not isinstance(method, str) or method not in TESTS:
        raise UnknownNameError.among("method", method, TESTS)
    test, alternative = TESTS[method]
    known = [*signature(test).parameters][2:]
    for name in options:
        if name not in known:
            raise UnknownNameError.among(f"parameter of {method}", name, known)
    preds = as_predictions(
        y_true,
        y_prob,
        task=task,
        sample_weight=sample_weight,
        clusters=clusters,
        pos_label=pos_label,
        labels=labels,
        scale=scale,
    )
    check_one_event(preds.task, "a calibration test", aggregated=preds.aggregated)
    tasks = preds.store.single_tasks("calibration_test")
    sample = tasks.samples[0]
    if sample.clusters is not None and method not in CLUSTERED:
        raise OptionError(
            f"method {method!r} treats rows as independent; with ",
            Argument("clusters"),
            f" choose one of {', '.join(map(repr, CLUSTERED))}.",
        )
    warn_if_small(sample)
    outcome = test(sample, generator(random_state), **options)
    return CalibrationTest(method, tasks.task, *outcome, sample.n_data, alternative)
