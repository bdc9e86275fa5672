"""Maps with few coefficients: Platt, beta, a parabola between logits, a new prior."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from calibrant.core.parameters import check_fraction
from calibrant.maps.base import FITTED_SCALE, CalibrationMap
from calibrant.numerics.links import WIDEST_ENDS, log_odds_parts, logit, logit_within
from calibrant.numerics.short_formulas import Piece

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatVector, IntVector
    from calibrant.maps.dialects import Language


@dataclass(frozen=True, eq=False)
class ParametricMap(CalibrationMap):
    """A map whose fields are coefficients."""

    @classmethod
    def _values_of_each(
        cls, maps: Sequence[Self], p: FloatVector, which: IntVector
    ) -> FloatVector:
        """Evaluate one map whose coefficients differ from prediction to prediction."""
        names = [field.name for field in fields(cls) if field.name != FITTED_SCALE]
        columns = ([getattr(map_, name) for map_ in maps] for name in names)
        many: Any = cls
        each: FloatVector = many(*(np.array(own)[which].T for own in columns)).values(p)
        return each


@dataclass(frozen=True, eq=False)
class BetaMap(ParametricMap):
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
    ends: tuple[float, float] = WIDEST_ENDS

    @property
    def temperature(self) -> float:
        """Return one over the slope between logits, for maps with a = b."""
        return 1.0 / self.a if self.a else np.inf

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        log_p, minus_log_q = log_odds_parts(p, self.ends)
        f = self.a * log_p + self.b * minus_log_q + self.intercept
        return np.asarray(expit(f), dtype=np.float64)

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
class QuadraticMap(ParametricMap):
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
    ends: tuple[float, float] = WIDEST_ENDS

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        u, inside = (logit_within(p, limits) for limits in (self.ends, self.data))
        f = self.intercept + inside * (self.slope + self.curvature * inside)
        return np.asarray(expit(f + (u - inside)), dtype=np.float64)

    def _joints(self) -> FloatVector:
        return np.array([*self.ends, *self.data])

    def _formula(self, language: Language, name: str) -> str:
        u, inside = (language.logit(name, *e) for e in (self.ends, self.data))
        parabola = Piece(1.0, 0.0, (self.intercept, self.slope, self.curvature))
        return language.expit(
            f"{language.polynomial(parabola, inside)} + {u} - {inside}"
        )


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
