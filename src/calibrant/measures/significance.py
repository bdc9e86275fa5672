"""Tests: whether perfectly calibrated predictions could have looked like this."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, get_args

import numpy as np
from scipy.special import ndtr

from calibrant.calibrators.kernel import KernelError, check_two_rows
from calibrant.core.options import check_choice, check_count, generator
from calibrant.core.sample import warn_if_small
from calibrant.exceptions import OptionError, Setting, TooFewRowsError, UnknownNameError
from calibrant.measures.kernel import block_errors
from calibrant.numerics.calibration_tests import (
    Outcome,
    cox,
    hosmer_lemeshow,
    spiegelhalter_z,
)
from calibrant.numerics.smooth_test import ORDERS, smooth_test
from calibrant.numerics.weighted_points import compress_to_at_most
from calibrant.predictions.predictions import as_predictions

if TYPE_CHECKING:
    from collections.abc import Sequence

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
FEWEST_BLOCKS = 2


@dataclass(frozen=True)
class CalibrationTest:
    """How surprising the labels are, were the predictions calibrated.

    Attributes
    ----------
    method, task : str
        What was asked.
    statistic : float
        The test's statistic.
    pvalue : float
        The chance of a statistic at least as extreme under perfect calibration.
    n : int
        Number of rows.
    alternative : str
        What the test looks for.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> found = calibration_test(y, p, method="spiegelhalter")
    >>> print(found)
    spiegelhalter (binary): statistic -13.05, p-value 6.72e-39, n = 1797
    >>> found.pvalue < 0.05
    True
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
        """Return the result as columns of one row."""
        return {f.name: np.array([getattr(self, f.name)]) for f in fields(self)}


class Test(Protocol):
    """A test with its options."""

    alternative: ClassVar[str]

    def run(self, sample: BinarySample, rng: np.random.Generator) -> Outcome:
        """Return statistic and p-value."""
        ...


@dataclass(frozen=True, kw_only=True)
class SmoothTest:
    """Smooth departures of growing order, from a line to a fine wave.

    Attributes
    ----------
    most : int
        Largest number of functions of the prediction that labels are held against.
        With few rows fewer are used.
    """

    alternative = "any smooth map"
    most: int = ORDERS[-1]

    def __post_init__(self) -> None:
        check_count(self.most, name="most")

    def run(self, sample: BinarySample, rng: np.random.Generator) -> Outcome:  # noqa: ARG002
        """Return minus the log of the least p-value, and its own p-value."""
        return smooth_test(compress_to_at_most(sample), self.most)


@dataclass(frozen=True, kw_only=True)
class KernelTest:
    """The kernel calibration error against what calibrated labels give.

    Attributes
    ----------
    kernel : {"rbf", "laplace"}
        As in `kernel_calibration_error`; the kernel of labels does not matter here
        and is the linear one.
    bandwidth : float or "median"
        The same.
    null : {"resampled", "asymptotic"}
        "resampled": the unbiased error over all pairs, against labels drawn anew with
        the predicted probabilities; the p-value is exact at any number of rows.
        "asymptotic": the mean over random blocks against a normal distribution; far
        less power, no draws.
    n_resamples : int
        How often labels are drawn.
    block_size : int
        Rows a block of the asymptotic test.
    """

    alternative = "any map"
    kernel: KernelName = "rbf"
    bandwidth: float | Literal["median"] = "median"
    null: Null = "resampled"
    n_resamples: int = 1000
    block_size: int = 2

    def __post_init__(self) -> None:
        self._family()
        check_choice(self.null, get_args(Null), name="null")
        check_count(self.n_resamples, name="n_resamples")
        check_count(self.block_size, name="block_size", least=2)

    def _family(self) -> KernelError:
        return KernelError(
            kernel=self.kernel, bandwidth=self.bandwidth, outcome_kernel="linear"
        )

    def run(self, sample: BinarySample, rng: np.random.Generator) -> Outcome:
        """Return the squared kernel error and its p-value, one-sided."""
        check_two_rows(sample, debias=True)
        if self.null == "asymptotic":
            return self._asymptotic(sample, rng)
        fit = self._family().fit(sample)
        found = fit.error(sample, alpha=2.0, debias=True)
        drawn = fit.kernel.calibrated_errors(
            sample.p, sample.weight, self.n_resamples, rng
        )
        # Labels on few predictions give equal statistics, but for rounding.
        level = found - 1e-9 * np.abs(drawn).max()
        above = np.count_nonzero(drawn >= level)
        return Outcome(found, float((1 + above) / (1 + self.n_resamples)))

    def _asymptotic(self, sample: BinarySample, rng: np.random.Generator) -> Outcome:
        blocks = block_errors(self._family(), sample, self.block_size, rng)
        if blocks.size < FEWEST_BLOCKS:
            raise TooFewRowsError(
                f'null="asymptotic" needs at least {FEWEST_BLOCKS} blocks of '
                f"{self.block_size} rows; got {sample.total:g} rows. Lower block_size "
                f'or use null="resampled".'
            )
        mean = float(blocks.mean())
        error = float(blocks.std(ddof=1)) / np.sqrt(blocks.size)
        if error == 0.0:
            return Outcome(mean, 0.0 if mean > 0.0 else 1.0)
        return Outcome(mean, float(ndtr(-mean / error)))


@dataclass(frozen=True, kw_only=True)
class SpiegelhalterTest:
    """Spiegelhalter's z: whether the Brier score is what the predictions promise."""

    alternative = "a Brier score other than promised"

    def run(self, sample: BinarySample, rng: np.random.Generator) -> Outcome:  # noqa: ARG002
        """Return z and its two-sided p-value."""
        return spiegelhalter_z(sample.p, sample.y, _weights(sample))


@dataclass(frozen=True, kw_only=True)
class HosmerLemeshowTest:
    """Hosmer and Lemeshow's chi-square over groups of equal size.

    Attributes
    ----------
    groups : int
        Number of groups.
    fitted : int
        Degrees of freedom that fitting used up: 0 for predictions of held-out rows,
        2 by custom for those of a logistic regression on its own training rows.
    """

    alternative = "a share of positives off in some group"
    groups: int = 10
    fitted: int = 0

    def __post_init__(self) -> None:
        check_count(self.groups, name="groups")
        check_count(self.fitted, name="fitted", least=0)
        if self.fitted >= self.groups:
            raise OptionError(
                f"fitted must be less than groups; got {self.fitted} and {self.groups}."
            )

    def run(self, sample: BinarySample, rng: np.random.Generator) -> Outcome:  # noqa: ARG002
        """Return chi-square and its p-value; NaN where ties leave too few groups."""
        return hosmer_lemeshow(
            sample.p, sample.y, sample.weight, groups=self.groups, fitted=self.fitted
        )


@dataclass(frozen=True, kw_only=True)
class CoxTest:
    """Cox's test: whether a regression on logit(p) has intercept 0 and slope 1."""

    alternative = "an intercept other than 0 or a slope other than 1"

    def run(self, sample: BinarySample, rng: np.random.Generator) -> Outcome:  # noqa: ARG002
        """Return the likelihood ratio, chi-square with two degrees of freedom."""
        return cox(sample.p, sample.y, _weights(sample))


TESTS: dict[str, type[Any]] = {
    "smooth": SmoothTest,
    "kce": KernelTest,
    "spiegelhalter": SpiegelhalterTest,
    "hosmer-lemeshow": HosmerLemeshowTest,
    "cox": CoxTest,
}


def _weights(sample: BinarySample) -> FloatVector:
    return np.ones(sample.n) if sample.weight is None else sample.weight


def _build(method: str, options: dict[str, Any]) -> Test:
    if not isinstance(method, str) or method not in TESTS:
        raise UnknownNameError.among("method", method, TESTS)
    known = [f.name for f in fields(TESTS[method])]
    for name in options:
        if name not in known:
            raise UnknownNameError.among(f"parameter of {method}", name, known)
    test: Test = TESTS[method](**options)
    return test


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
        "smooth": lines and curves of growing order, simple ones first, without draws;
        "kce": the kernel calibration error, which sees any departure, given enough
        rows; "spiegelhalter": the Brier score; "hosmer-lemeshow": shares of positives
        in groups; "cox": intercept and slope of a logistic regression.
    task : None, "confidence" or a class
        None: binary. "confidence": the top class and whether it is right. A class, by
        label or column number: that class against the rest.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of 2 equals the row twice.
    clusters : array-like of shape (n,), optional
        Which rows belong together. No test can use it yet: an error says so.
    pos_label : object, optional
        The label that means that the event happened.
    labels : sequence, optional
        The label of each column of `y_prob`, in order; by default 0 .. k-1.
    scale : {"prob", "logit", "percent", "logprob"}
        What `y_prob` holds.
    random_state : int, generator or None
        Seeds drawn labels and blocks.
    **options
        Of the method. "smooth": ``most=24``, the largest number of functions.
        "kce": ``kernel``, ``bandwidth`` (by default "median"),
        ``null="resampled"`` or "asymptotic", ``n_resamples=1000``, ``block_size=2``.
        "hosmer-lemeshow": ``groups=10``, ``fitted=0`` (degrees of freedom that
        fitting on the same rows used up).

    Returns
    -------
    CalibrationTest
        With `statistic`, `pvalue` and the `alternative`.

    References
    ----------
    J. Fan (1996). Test of significance based on wavelet thresholding and Neyman's
    truncation. JASA 91. doi:10.1080/01621459.1996.10476936

    D. Widmann, F. Lindsten, D. Zachariah (2019). Calibration tests in multi-class
    classification: a unifying framework. NeurIPS.

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
    smooth (binary): statistic 89.11, p-value 9.32e-39, n = 1797
    >>> print(cb.calibration_test(y, p, method="hosmer-lemeshow", groups=5))
    hosmer-lemeshow (binary): statistic 101, p-value 3.2e-20, n = 1797
    """
    test = _build(method, options)
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
    preds.store.check_no_clusters("calibration_test")
    tasks = preds.store.single_tasks("calibration_test")
    if len(tasks.samples) > 1:
        raise OptionError(
            "a test looks at one event; pass ",
            Setting("task", "confidence"),
            " or one class instead of ",
            Setting("task", "classwise"),
            ".",
        )
    sample = tasks.samples[0]
    warn_if_small(sample)
    found = test.run(sample, generator(random_state))
    return CalibrationTest(method, tasks.task, *found, sample.n_data, test.alternative)
