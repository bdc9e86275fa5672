"""Smooth maps: penalised splines around the identity, by marginal likelihood."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from calibrant.calibrators.base import ClassCalibrator, EventCalibrator
from calibrant.calibrators.fits import CurveFit
from calibrant.calibrators.multiclass_smooth import fit_classes
from calibrant.core.parameters import (
    check_count,
    check_flag,
    check_penalties,
)
from calibrant.exceptions import OptionError
from calibrant.maps.smooth import SmoothMap
from calibrant.numerics.smooth_curve_fits import (
    FREE,
    CurveChoices,
    fit_curves,
    fit_near,
    smooth_curve,
)
from calibrant.numerics.smooth_curves import FewRowsCurve
from calibrant.numerics.smooth_terms import TERMS
from calibrant.numerics.weighted_points import compress_to_at_most

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.calibrators.base import Kind
    from calibrant.calibrators.fits import MulticlassFit
    from calibrant.core.array_types import FloatVector, Seed
    from calibrant.core.sample import BinarySample, ClassSample
    from calibrant.numerics.smooth_curves import SmoothCurve


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothFit(CurveFit):
    """A fitted smooth map.

    Attributes
    ----------
    family : Smooth
        The hyper-parameters.
    curve : SmoothCurve
        The curve that the map follows, with its posterior.
    """

    map: SmoothMap
    family: Smooth
    curve: SmoothCurve

    @property
    def evidence(self) -> float:
        """Return the log of how many times more probable labels are by the map."""
        return self.curve.evidence

    def error(self, sample: BinarySample, *, alpha: float, debias: bool) -> float:  # noqa: ARG002
        """Return the mean of abs(map(p) - p) ** alpha."""
        if not isinstance(self.curve, FewRowsCurve) or (
            compress_to_at_most(sample) is not self.curve.cells
        ):
            line = self.map.knots, self.map.shifts
            return self.curve.error_of(line, sample, alpha)
        return self.curve.own_error(alpha)

    def error_quantiles(
        self, levels: tuple[float, ...], *, n_draws: int
    ) -> FloatVector:
        """Return quantiles of the errors of maps drawn from the posterior."""
        return self.curve.error_quantiles(levels, n_draws=n_draws)

    def band(
        self,
        p: FloatVector,
        confidence: float = 0.95,
        *,
        simultaneous: bool = False,
        random_state: Seed = 0,
    ) -> tuple[FloatVector, FloatVector]:
        """Return limits of the map at predictions, which hold the map itself.

        Parameters
        ----------
        p : ndarray
            Where.
        confidence : float
            Chance that the true map lies between the limits.
        simultaneous : bool
            At all predictions of the sample at once, instead of at each.
        random_state : int, generator or None
            Seeds the maps that are drawn.
        """
        return self.curve.band(
            p,
            confidence,
            simultaneous=simultaneous,
            random_state=random_state,
            around=(self.map.knots, self.map.shifts),
        )

    def loosened(self, sample: BinarySample) -> SmoothFit:
        """Return the fit of all terms with penalties far below what the data weigh.

        Penalties that hold the map at the identity hold it there in every resample,
        so that errors of resamples scatter less than the error does from sample to
        sample, where penalties are chosen again. These maps scatter at least as much.
        """
        penalties = tuple(self.curve.loose_penalties(sample).tolist())
        if sample.clusters is not None:  # resamples draw whole clusters
            sample = replace(sample, clusters=None)
        return replace(self.family, penalties=penalties).fit_event(sample)


@dataclass(kw_only=True, eq=False, repr=False)
class Smooth(ClassCalibrator, EventCalibrator):
    """Penalised regression around the identity, penalties by marginal likelihood.

    For one event, the logit of the map is logit(p) + a + b logit(p) + s1(logit(p)) +
    s2(p) with natural cubic splines s1 and s2. Their curvatures are penalised, and so
    are a and b: without evidence to the contrary, the map is the identity. The four
    penalties are those that make the labels most probable. If labels are clearly more
    probable by it, s2 is a spline of the rank of p instead: the share of rows below.
    Where predictions crowd, such a map can be steep.

    For several classes it is softmax regression on logits and probabilities (see
    `calibrant.calibrators.multiclass_smooth`), for which only `scale` and `labels` can
    be set.

    Parameters
    ----------
    coefficients : int
        Number of knots of each spline, at quantiles of the predictions; at most one
        for every five rows, but at least three.
    average : bool
        Whether to take the mean over fits with both splines, with either and with
        none, by how probable each makes the labels; else the fit with both.
    penalties : tuple of four numbers, optional
        Penalties of a, b, s1 and s2, instead of the most probable ones: one over the
        mean square that each term is thought to add to the logit. Then there is one
        fit only.
    monotone : bool
        Whether the map is used as a repair: it then does not decrease, and moves no
        prediction farther than the rows within one logit and one more row, which agrees
        with the prediction, can support. Evaluation uses the unrestricted curve.

    References
    ----------
    S. Wood (2011). Fast stable restricted maximum likelihood and marginal likelihood
    estimation of semiparametric generalized linear models. JRSS B.
    """

    coefficients: int = 20
    average: bool = True
    penalties: tuple[float, float, float, float] | None = None
    monotone: bool = True

    knows_clusters: ClassVar[bool] = True
    _only_for: ClassVar[dict[Kind, tuple[str, ...]]] = {
        "binary": ("coefficients", "average", "penalties", "monotone")
    }

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_count(self.coefficients, name="coefficients", least=3)
        check_flag(self.average, name="average")
        check_flag(self.monotone, name="monotone")
        if self.penalties is not None:
            given: tuple[Any, ...] = check_penalties(self.penalties, name="penalties")
            if len(given) != TERMS:
                raise OptionError(
                    f"penalties must be four numbers, of a, b and both splines; got "
                    f"{self.penalties!r}."
                )

    def fit_event(self, sample: BinarySample) -> SmoothFit:
        """Estimate the calibration map of a sample."""
        if self._choices == FREE:
            return self._fits([smooth_curve(sample)])[0]
        return self.fit_each([sample])[0]

    def fit_each(self, samples: Sequence[BinarySample]) -> list[SmoothFit]:
        """Estimate the calibration map of each of several samples."""
        return self._fits(fit_curves(samples, self._choices))

    @property
    def _choices(self) -> CurveChoices:
        """Return the choices that the user made instead of leaving them to the data."""
        given = None if self.penalties is None else tuple(self.penalties)
        return CurveChoices(self.coefficients, self.average, given)

    def fit_classes(self, sample: ClassSample) -> MulticlassFit:
        """Fit the tempering of all classes, then the terms."""
        return fit_classes(sample)

    def fit_each_near(
        self, samples: Sequence[BinarySample], near: SmoothCurve
    ) -> list[SmoothFit]:
        """Estimate the maps of parts of a sample, with the penalties of `near`."""
        return self._fits([fit_near(sample, near) for sample in samples])

    def _fits(self, curves: Sequence[SmoothCurve]) -> list[SmoothFit]:
        """Return the curves themselves, or repairs if `monotone`."""
        lines = [curve.line(repairing=self.monotone) for curve in curves]
        return [
            SmoothFit(
                map=SmoothMap(*line, curve.terms.ends),
                n_pieces=0,  # curves have none
                edges=curve.terms.edges,
                refit=curve.refitted,
                family=self,
                curve=curve,
            )
            for line, curve in zip(lines, curves, strict=True)
        ]


EVALUATOR = Smooth(monotone=False)
"""The curve as it is."""


def smooth_fit(sample: BinarySample) -> SmoothFit:
    """Return the curve that evaluation takes of a sample as a fit."""
    return EVALUATOR.fit_event(sample)
