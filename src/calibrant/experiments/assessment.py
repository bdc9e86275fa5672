r"""How good a calibrator and an evaluator are, where the truth is known.

With predictions P, the true map c*(p) = E[Y | P = p], an estimated map c_hat, and
d(a, b) = abs(a - b) ** alpha (paper, section 6):

- CMEE = E[d(c_hat(P), c*(P))], the map estimation error;
- CEAC = E[d(c_hat(P), E[c*(P) | c_hat(P)])], the calibration error after calibration;
- for alpha = 2 their difference is E[d(E[c*(P) | c_hat(P)], c*(P))] (Theorem 3): the
  loss from giving one value to rows with different true probabilities;
- abs(ECE - CE), the distance of an estimated error from the true one;
- Spearman's rank correlation of estimated and true errors over several models.

A `Truth` is a source of data, a `Contender` a method that is assessed on them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from calibrant.calibrators.registry import EVALUATORS, find_evaluator
from calibrant.calibrators.wrappers import UserMethod
from calibrant.core.parameters import check_count
from calibrant.core.sample import BinarySample
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from calibrant.core.array_types import ArrayLike, FloatVector

TIE_RESOLUTION = 1e-4
"""Values of a map closer than this count as equal in the error after calibration."""

TIE_ROWS = 50_000
"""Approximate number of unseen rows for the error after calibration."""

THINNING = 20
"""Continuous maps are compared with the truth at every 20th of the unseen rows.

Compared with all rows this changes a map error by less than 1e-6, a tenth of the last
printed digit; maps that jump or rise steeply are compared at all rows.
"""

MEASURES = (
    "true_error", "true_error_sq", "estimate", "estimate_sq", "map_error",
    "error_after", "true_error_flat", "map_error_flat", "true_error_slope",
    "map_error_slope", "true_error_exact", "map_error_exact",
)  # fmt: skip
"""Measured in each cell; NaN where a method has no such thing.

``true_error`` is the mean of abs(p - c) over the rows that were fitted on and
``estimate`` the method's estimate of it, debiased where the method knows its bias;
``map_error`` is CMEE and ``error_after`` CEAC on unseen rows. ``_sq`` uses squares;
``_flat``, ``_slope`` and ``_exact`` use other estimates of an unknown true map.
"""


@dataclass(frozen=True, eq=False)
class KnownSample:
    """Rows whose calibrated probabilities are known.

    Attributes
    ----------
    p, y, c : ndarray of shape (n,)
        Predictions, labels, and the true calibration map at p.
    others : dict of ndarray of shape (n,)
        Other estimates of the true map at p, by name, where it is not known exactly.
    """

    p: FloatVector
    y: FloatVector
    c: FloatVector
    others: dict[str, FloatVector] = field(default_factory=dict)

    def true_errors(self) -> dict[str, float]:
        """Return the true calibration errors by the names of `MEASURES`."""
        errors = {
            f"true_error_{k}": map_error(self.p, c) for k, c in self.others.items()
        }
        squared = map_error(self.p, self.c, 2.0)
        return {
            "true_error": map_error(self.p, self.c),
            "true_error_sq": squared,
        } | errors

    def thin(self, every: int) -> slice:
        """Return a slice of every so many rows, at least one."""
        every = min(every, self.p.size)
        return slice(every // 2, None, every)


class Truth(Protocol):
    """A source of data with a known calibration map.

    Anything with these members can be part of a design: a shape of the bench, or a
    data set of your own for which c is known.
    """

    @property
    def shape(self) -> str:
        """Return the name of the row in tables."""
        ...

    @property
    def error(self) -> float:
        """Return the expected error, which distinguishes truths of one shape."""
        ...

    @property
    def name(self) -> str:
        """Return a name that depends on everything the data depend on."""
        ...

    def draw(self, n: int, seed: int) -> KnownSample:
        """Draw rows to fit on; the same for the same size and seed."""
        ...

    def unseen(self) -> KnownSample:
        """Return rows to compare maps on, in ascending order of p."""
        ...


def map_error(c_hat: ArrayLike, c: ArrayLike, alpha: float = 1.0) -> float:
    """Return CMEE, the mean distance of an estimated map from the true one.

    Parameters
    ----------
    c_hat, c : array-like of shape (n,)
        Both maps at predictions that were not fitted on.
    alpha : float
        Power of the distance: 1 for absolute, 2 for squared differences.

    Returns
    -------
    float
        E[abs(c_hat - c*) ** alpha].

    Examples
    --------
    >>> round(map_error([0.2, 0.4], [0.1, 0.5]), 6)
    0.1
    """
    gap = np.abs(np.asarray(c_hat, float) - np.asarray(c, float))
    return float(np.mean(gap**alpha))


def error_after_calibration(
    c_hat: ArrayLike, c: ArrayLike, alpha: float = 1.0, *, resolution: float = 0.0
) -> float:
    """Return CEAC, the calibration error that remains after calibration.

    Parameters
    ----------
    c_hat, c, alpha
        As in `map_error`.
    resolution : float
        Values of `c_hat` are rounded to multiples of this before ties are looked for,
        as a map that is not monotone takes nearly equal values at distant predictions;
        0 for exact ties only.

    Returns
    -------
    float
        E[abs(c_hat - E[c* | c_hat]) ** alpha], at most `map_error` for alpha = 2.

    Examples
    --------
    >>> error_after_calibration([0.3, 0.3], [0.1, 0.5])
    0.0
    """
    values = np.asarray(c_hat, dtype=np.float64)
    values = np.round(values / resolution) * resolution if resolution else values
    return map_error(values, truth_after_calibration(values, c), alpha)


def truth_after_calibration(c_hat: ArrayLike, c: ArrayLike) -> FloatVector:
    """Return E[c* | c_hat] for each row: the true map of the calibrated model."""
    _, group = np.unique(np.asarray(c_hat, float), return_inverse=True)
    total = np.bincount(group, weights=np.asarray(c, float))
    return np.asarray((total / np.bincount(group))[group])


def rank_correlation(estimate: ArrayLike, truth: ArrayLike) -> float:
    """Return Spearman's rank correlation of estimated and true errors.

    Ties get their mean rank; NaN where all values of one of the two are equal.

    Examples
    --------
    >>> round(rank_correlation([0.01, 0.02, 0.05], [0.0, 0.03, 0.2]), 6)
    1.0
    """
    from scipy.stats import rankdata

    ranks = np.stack([rankdata(estimate), rankdata(truth)])
    if not np.isfinite([estimate, truth]).all() or not np.ptp(ranks, axis=1).all():
        return float("nan")
    return float(np.corrcoef(ranks)[0, 1])


def measure_map(
    c_hat: FloatVector, unseen: KnownSample, rows: slice
) -> dict[str, float]:
    """Compare calibrated probabilities with the truth at some unseen rows."""
    c = unseen.c[rows]
    some = slice(None, None, max(c.size // TIE_ROWS, 1))
    after = error_after_calibration(c_hat[some], c[some], resolution=TIE_RESOLUTION)
    others = {
        f"map_error_{name}": map_error(c_hat, other[rows])
        for name, other in unseen.others.items()
    }
    return {"map_error": map_error(c_hat, c), "error_after": after, **others}


@dataclass(frozen=True)
class Contender:
    """A method that takes part.

    Parameters
    ----------
    name : str
        Column of the tables.
    family : object
        A calibrator, of the library or any other with ``fit(p, y)`` and
        ``transform(p)``. Its repr and attributes are part of the key of stored results.
    every : int
        The map is compared with the truth at every so many of the unseen rows, in
        order of p.
    squared : bool
        Whether the method estimates only the squared error.

    Examples
    --------
    >>> Contender.of("es-cv", random_state=1).name
    'es-cv'
    >>> Contender.of("pl", name="pl, folds", ensemble="folds").family.ensemble
    'folds'
    """

    name: str
    family: Any
    every: int = 1
    squared: bool = False
    measures: ClassVar[tuple[str, ...]] = MEASURES

    def __post_init__(self) -> None:
        check_count(self.every, name="every")
        if " at 0x" in repr(self.family):
            raise OptionError(
                f"family of {self.name!r} must have a repr that shows its parameters, "
                f"since it is part of the key of stored results; make it a dataclass. "
                f"Got {self.family!r}."
            )

    @classmethod
    def of(
        cls, method: str, *, name: str | None = None, every: int = 1, **params: Any
    ) -> Contender:
        """Return a method of the library, with hyper-parameters."""
        family = find_evaluator(method).measuring(**params)
        return cls(name or method, family, every, method in EVALUATORS)

    def family_for(self, _truth: Truth) -> Any:
        """Return the family to fit on data of a truth."""
        known = hasattr(self.family, "fit_sample")
        return self.family if known else UserMethod(calibrator=self.family)

    def measure(
        self, data: KnownSample, unseen: KnownSample, truth: Truth
    ) -> dict[str, float]:
        """Fit on data of a truth and return measures by name."""
        sample = BinarySample(data.p, data.y)
        fit = self.family_for(truth).fit_sample(sample)
        measures = data.true_errors()
        for alpha, name in {1.0: "estimate", 2.0: "estimate_sq"}.items():
            if alpha > 1.0 or not self.squared:
                debias = fit.debiases(alpha)
                measures[name] = fit.error(sample, alpha=alpha, debias=debias)
        map_ = getattr(fit, "map", None)
        if map_ is None or not unseen.p.size:
            return measures
        rows = unseen.thin(self.every)
        return measures | measure_map(map_(unseen.p[rows]), unseen, rows)
