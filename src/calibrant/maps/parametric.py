"""Maps with few coefficients: Platt, beta, a parabola between logits, a new prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from calibrant.core.parameters import check_fraction
from calibrant.maps.base import CalibrationMap
from calibrant.numerics.links import WHOLE, log_odds_parts, logit, logit_within
from calibrant.numerics.short_formulas import Piece

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatVector, IntVector
    from calibrant.maps.languages import Language


@dataclass(frozen=True, eq=False)
class BetaMap(CalibrationMap):
    """The map ``expit(a * log(p) - b * log(1 - p) + intercept)``.

    With a = b it is straight between logits, as Platt scaling is. With a and b not
    negative it does not fall.

    Parameters
    ----------
    a, b, intercept : float
        The coefficients.
    ends : tuple of float
        Predictions below the first or above the second count as these.

    Examples
    --------
    >>> identity = BetaMap(1.0, 1.0, 0.0)
    >>> identity(np.array([0.25, 0.5]))
    array([0.25, 0.5 ])
    """

    kind: ClassVar[str] = "beta"
    a: float
    b: float
    intercept: float
    ends: tuple[float, float] = WHOLE

    @property
    def temperature(self) -> float:
        """Return one over the slope between logits, for maps with a = b."""
        return 1.0 / self.a if self.a else np.inf

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        return _beta_values(p, self.a, self.b, self.intercept, self.ends)

    @classmethod
    def _values_of_each(
        cls, maps: Sequence[Self], p: FloatVector, which: IntVector
    ) -> FloatVector:
        """Evaluate map ``which[i]`` at ``p[i]``."""
        numbers = np.array([[one.a, one.b, one.intercept, *one.ends] for one in maps])
        a, b, intercept, *ends = numbers[which].T
        return _beta_values(p, a, b, intercept, ends)

    def _joints(self) -> FloatVector:
        return np.array(self.ends)

    def _formula(self, language: Language, name: str) -> str:
        low, high = self.ends
        p = language.between(low, name, high)
        numbers = (self.a, self.b, self.intercept, 1.0)
        a, b, intercept, one = map(language.number, numbers)
        ln = language.ln
        return language.expit(
            f"{a} * {ln}({p}) - {b} * {ln}({one} - {p}) + {intercept}"
        )


@dataclass(frozen=True, eq=False)
class QuadraticMap(CalibrationMap):
    """The map ``expit(intercept + slope * u + curvature * u**2)`` of the logit u.

    Beyond the data a parabola would soon change direction. There the logit is shifted
    by as much as at the outermost prediction of the data.

    Parameters
    ----------
    intercept, slope, curvature : float
        The coefficients.
    data : tuple of float
        Smallest and largest prediction of the data.
    ends : tuple of float
        Predictions below the first or above the second count as these.

    Examples
    --------
    >>> identity = QuadraticMap(0.0, 1.0, 0.0, (0.2, 0.9))
    >>> identity(np.array([0.1, 0.5]))
    array([0.1, 0.5])
    """

    kind: ClassVar[str] = "quadratic"
    intercept: float
    slope: float
    curvature: float
    data: tuple[float, float]
    ends: tuple[float, float] = WHOLE

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        coefficients = self.intercept, self.slope, self.curvature
        return _quadratic_values(p, coefficients, self.data, self.ends)

    @classmethod
    def _values_of_each(
        cls, maps: Sequence[Self], p: FloatVector, which: IntVector
    ) -> FloatVector:
        """Evaluate map ``which[i]`` at ``p[i]``."""
        numbers = np.array(
            [
                [one.intercept, one.slope, one.curvature, *one.data, *one.ends]
                for one in maps
            ]
        )
        columns = numbers[which].T
        return _quadratic_values(p, columns[:3], columns[3:5], columns[5:])

    def _joints(self) -> FloatVector:
        return np.array([*self.ends, *self.data])

    def _formula(self, language: Language, name: str) -> str:
        u, inside = (language.logit(name, *e) for e in (self.ends, self.data))
        parabola = Piece(1.0, 0.0, (self.intercept, self.slope, self.curvature))
        return language.expit(
            f"{language.polynomial(parabola, inside)} + {u} - {inside}"
        )


def _beta_values(
    p: FloatVector, a: Any, b: Any, intercept: Any, ends: Any
) -> FloatVector:
    """Return the map at predictions; coefficients are of all, or of each of them."""
    log_p, minus_log_q = log_odds_parts(p, ends)
    return np.asarray(expit(a * log_p + b * minus_log_q + intercept))


def _quadratic_values(
    p: FloatVector, coefficients: Any, data: Any, ends: Any
) -> FloatVector:
    """Return the map at predictions; coefficients are of all, or of each of them."""
    intercept, slope, curvature = coefficients
    u, inside = (logit_within(p, limits) for limits in (ends, data))
    f = intercept + inside * (slope + curvature * inside)
    return np.asarray(expit(f + (u - inside)))


def adjust_prior(new_rate: float, *, old_rate: float = 0.5) -> BetaMap:
    """Return the map for a model trained on data with a different rate of events.

    Training data are often rebalanced: events are sampled more often, or other rows
    are dropped, until half of the rows are events. Predictions are then too high where
    the model is used. If rows were sampled by label only, this shifts log-odds by a
    constant, and the map reverses the shift:

        logit(p) - logit(old_rate) + logit(new_rate)

    No labels are needed. Class weights have the same effect as sampling. If you have
    labels, `make_calibrator` corrects other faults as well.

    Parameters
    ----------
    new_rate : float
        Rate of events where the model is used, between 0 and 1.
    old_rate : float
        Rate of events in the training data; 0.5 if they were balanced.

    Returns
    -------
    CalibrationMap
        A map with `transform`, `to_sql` and `to_python`; `save_map` stores it.

    See Also
    --------
    make_calibrator : fits a map to labels.
    diagnose : recognises predictions of balanced training data (CAL013).

    References
    ----------
    C. Elkan (2001). The foundations of cost-sensitive learning. IJCAI, theorem 2.

    M. Saerens, P. Latinne, C. Decaestecker (2002). Adjusting the outputs of a
    classifier to new a priori probabilities: a simple procedure.
    doi:10.1162/089976602753284446

    Examples
    --------
    A model trained on balanced data and used where 2 % of the rows are events:

    >>> import calibrant as cb
    >>> cb.adjust_prior(0.02).transform([0.1, 0.5, 0.9]).round(4)
    array([0.0023, 0.02  , 0.1552])
    """
    rates = [
        check_fraction(rate, name=name)
        for rate, name in ((old_rate, "old_rate"), (new_rate, "new_rate"))
    ]
    old, new = logit(np.array(rates)).tolist()
    return BetaMap(1.0, 1.0, new - old)
