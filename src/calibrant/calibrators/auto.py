"""The best supported repair, or none, with a certificate.

A few families are fitted by cross-validation and pooled on the logarithmic scale, with
the weights that are best for rows not used to fit. Unless the labels of all rows make
miscalibration likely enough, predictions stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit, ndtri

from calibrant.calibrators.auto_held_out import (
    MIN_EVIDENCE,
    ClassRows,
    EventRows,
    HeldOut,
)
from calibrant.calibrators.base import NO_GROUPS, ClassCalibrator, EventCalibrator
from calibrant.calibrators.fits import WHOLE_RANGE, CurveFit, MulticlassFit
from calibrant.calibrators.isotonic import VennAbers
from calibrant.calibrators.logistic import Quadratic
from calibrant.calibrators.smooth import Smooth, smooth_fit
from calibrant.calibrators.softmax_regression import StructuredScaling
from calibrant.calibrators.temperature import Temperature
from calibrant.core.arrays import row_hash
from calibrant.core.defaults import DEFAULT_CONFIDENCE
from calibrant.core.parameters import check_count, check_flag
from calibrant.core.sample import BinarySample
from calibrant.core.threads import one_blas_thread
from calibrant.exceptions import OptionError
from calibrant.maps.certificate import (
    Bounds,
    Certificate,
    CertifiedClassMap,
    CertifiedMap,
    GroupTrial,
    Trial,
)
from calibrant.maps.multiclass import PooledMap
from calibrant.maps.piecewise import map_through
from calibrant.maps.smooth import SmoothMap
from calibrant.numerics.links import WIDEST_ENDS, logit, logit_within
from calibrant.numerics.pooling import brier_scores, log_losses, mean_and_error
from calibrant.numerics.resampling import widen_to
from calibrant.numerics.smooth_calibration_test import smooth_p_values
from calibrant.numerics.weighted_points import MAX_EXACT_ROWS, compress_to_at_most

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.calibrators.base import Kind
    from calibrant.calibrators.grouped import GroupedFit
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector, Seed
    from calibrant.core.sample import ClassSample
    from calibrant.maps.base import CalibrationMap
    from calibrant.maps.grouped import Key
    from calibrant.numerics.resampling import Resamples

FOLDS, FOLDS_OF_MANY = 10, 5
"""Number of folds by default, and with so many rows that they become cells."""
MANY_CLASS_ROWS, MANY_CLASSES, FEWEST_FOLDS = 2_000, 18, 3
"""With more rows of several classes there are fewer folds, and with more classes only
three and one method: fits take long."""
MIN_ROWS = 30
"""With fewer rows nothing is tried."""
MANY = 1_000.0
"""Rows from which methods that fit any rising map take part."""
MIN_OUTCOMES = 100.0
"""Rows of the rarer outcome that they need besides."""
FINE = 0.001
"""Maps are stored up to this difference of logits, far below what rows can tell."""
DRAWS = 400
"""Draws of the map for intervals of the calibration error."""


def certify(
    held_out: HeldOut[Any],
    n: int,
    data: str,
    groups: GroupTrial | None = None,
    by_group: FloatMatrix | None = None,
    errors: tuple[Bounds, Bounds] | None = None,
) -> Certificate:
    """Return what was tried and what it brings, compared with raw predictions.

    `n` is the number of rows of the data, whatever their weights; `data` is their hash;
    `by_group` are log-probabilities of held-out rows after the maps of their groups;
    `errors` those by "smooth" before and after the repair, where they are known.
    """
    raw, target, weight = held_out.raw, held_out.repaired.target, held_out.rows.weight
    after = held_out.after
    if groups is not None and groups.used and by_group is not None:
        after = by_group

    shares, alone = held_out.weights.tolist(), held_out.alone
    own, left = (log_losses(one, target) for one in (raw.log_prob, after))
    gains = [own - log_losses(alone[name], target) for name in held_out.names]
    tried = [
        Trial(name, share, float(np.average(gain, weights=weight)))
        for name, share, gain in zip(held_out.names, shares, gains, strict=True)
    ]
    # Of one event it is the square of one difference, which is here twice.
    part = 0.5 if isinstance(raw, EventRows) else 1.0
    brier = [part * brier_scores(one, target) for one in (raw.log_prob, after)]
    before, repaired = errors or tuple(
        _error(raw.event(log_prob)) for log_prob in (raw.log_prob, after)
    )
    return Certificate(
        tried=tuple(tried),
        rounded=held_out.rows is not raw,
        log_loss_gain=mean_bounds(own - left, weight, raw.clusters),
        brier_gain=mean_bounds(brier[0] - brier[1], weight, raw.clusters),
        error_before=before,
        error_after=repaired,
        evidence=held_out.evidence,
        needed=MIN_EVIDENCE,
        n=n,
        folds=int(raw.fold.max()) + 1,
        confidence=DEFAULT_CONFIDENCE,
        data=data,
        groups=groups,
        classes=1 if isinstance(raw, EventRows) else int(raw.log_prob.shape[1]),
    )


def mean_bounds(
    values: FloatVector, weight: FloatVector, clusters: IntVector | None = None
) -> Bounds:
    """Return the mean of values with its interval."""
    mean, error = mean_and_error(values, weight, clusters)
    reach = float(ndtri(0.5 + 0.5 * DEFAULT_CONFIDENCE)) * error
    return Bounds(mean, mean - reach, mean + reach)


def _error(sample: BinarySample) -> Bounds:
    """Return the calibration error by the smooth map, with its interval."""
    fit = smooth_fit(sample)
    value = fit.error(sample, alpha=1.0, debias=False)
    tail = 0.5 - 0.5 * DEFAULT_CONFIDENCE
    low, high = fit.error_quantiles((tail, 1.0 - tail), n_draws=DRAWS)
    test = smooth_p_values([compress_to_at_most(sample)])[0]
    if not test.rejects(tail):  # no drawn error is 0
        low = 0.0
    return Bounds(value, *widen_to(value, float(low), float(high)))


@dataclass(kw_only=True, eq=False, repr=False)
class Auto(ClassCalibrator, EventCalibrator):
    """A mixture of repairs, as strong as the rows justify, or none.

    A few methods are fitted by cross-validation and pooled on the scale of logits or
    log-probabilities, with the weights that make held-out rows most probable. The
    probability that predictions are miscalibrated, if it is one half beforehand,
    follows from how much more probable the labels are under `smooth` than under the
    predictions. At 40 % or less, predictions stay unchanged; otherwise this probability
    is the strength of the repair, of which several classes take the part that held-out
    rows support. Predictions of exactly 0 and 1 are treated as rounded if predictions
    come in steps or labels contradict them. Beyond the data, the map of one event
    shifts logits by as much as at the outermost predictions.

    Parameters
    ----------
    monotone : bool
        Whether the map of an event must not decrease.
    keep_order : bool
        Whether the order of several classes in each row must not change.
    folds : int, optional
        Number of folds of the cross-validation; ten by default, five of very many rows.
    random_state : int, generator or None
        Seeds the division into folds.

    References
    ----------
    D. Wolpert (1992). Stacked generalization. doi:10.1016/S0893-6080(05)80023-1
    """

    monotone: bool = True
    keep_order: bool = False
    folds: int | None = None
    random_state: Seed = 0

    knows_clusters: ClassVar[bool] = True
    _only_for: ClassVar[dict[Kind, tuple[str, ...]]] = {
        "binary": ("monotone",),
        "multi-class": ("keep_order",),
    }

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_flag(self.monotone, name="monotone")
        check_flag(self.keep_order, name="keep_order")
        if self.folds is not None:
            check_count(self.folds, name="folds", least=2)

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Choose the repair of a sample."""
        held_out = self.held_out(sample)
        rows = held_out.raw.all_rows
        fits = _used(held_out, event_families(sample, monotone=self.monotone), rows)
        map_ = self._map(rows, held_out.rows.ends, fits)
        data = row_hash(sample.p, sample.y, sample.weight)
        certified = CertifiedMap(map_, certify(held_out, sample.n_data, data))
        return CurveFit(certified, 1, WHOLE_RANGE, partial(_refit, fits=fits))

    def fit_classes(self, sample: ClassSample) -> MulticlassFit:
        """Choose the repair of all classes of a sample."""
        held_out = self.held_out(sample)
        families = class_families(sample, keep_order=self.keep_order)
        used = _used(held_out, families, sample)
        weights, maps = np.array([w for w, _ in used]), tuple(f.map for _, f in used)
        floor = held_out.rows.floor
        pooled = PooledMap(maps, weights, sample.n_classes, sample.scale, floor)
        data = row_hash(sample.scores, sample.column, sample.weight)
        certificate = certify(held_out, sample.n, data)
        return MulticlassFit(CertifiedClassMap(pooled, certificate))

    def fit_groups(
        self,
        sample: BinarySample | ClassSample,
        by: Sequence[str],
        row_keys: Sequence[Key],
    ) -> GroupedFit:
        """Choose the common repair of an event, then whether groups have their own."""
        from calibrant.calibrators.grouped import GroupedAuto

        if not isinstance(sample, BinarySample):
            raise OptionError(*NO_GROUPS)
        with one_blas_thread():
            return GroupedAuto.of(self, by, row_keys).fit(sample)

    def held_out(self, sample: BinarySample | ClassSample) -> HeldOut[Any]:
        """Return what the methods make of rows that they were not fitted on."""
        if isinstance(sample, BinarySample):
            rows = EventRows.of(sample, self.n_folds(sample), self.random_state)
            return HeldOut.of(rows, event_families(sample, monotone=self.monotone))
        folds = self.folds or _usual_class_folds(sample)
        classes = ClassRows.of(sample, folds, self.random_state)
        families = class_families(sample, keep_order=self.keep_order)
        return HeldOut.of(classes, families)

    def n_folds(self, sample: BinarySample) -> int:
        """Return the number of folds of a sample."""
        return self.folds or _usual_folds(sample.n_data)

    def map_of(
        self, sample: BinarySample, held_out: HeldOut[EventRows]
    ) -> CalibrationMap:
        """Return the map of a sample that held-out rows support."""
        rows = held_out.raw.all_rows
        fits = _used(held_out, event_families(sample, monotone=self.monotone), rows)
        return self._map(rows, held_out.rows.ends, fits)

    def _map(
        self,
        sample: BinarySample,
        ends: tuple[float, float],
        fits: Sequence[tuple[float, CurveFit]],
    ) -> CalibrationMap:
        """Return the pooled map as lines between logits, or the identity."""
        if not fits:
            reach = np.array(ends if ends != WIDEST_ENDS else (0.0, 1.0))
            return map_through(reach, reach)
        cells = compress_to_at_most(sample)
        u = logit_within(cells.p, ends)
        shifts = sum(share * (logit(f.map.values(cells.p)) - u) for share, f in fits)
        first = np.flatnonzero(np.diff(u, prepend=-np.inf) > 0.0)
        pooled = SmoothMap.through(u[first], np.asarray(shifts)[first], ends)
        if self.monotone:
            pooled = pooled.repairing(cells.p, cells.weight)
        return pooled.thinned(FINE)


def _refit(
    resamples: Resamples, *, fits: Sequence[tuple[float, CurveFit]]
) -> FloatMatrix:
    """Return the map of each resample, with the weights of the sample."""
    u = logit(resamples.p)
    shifts = sum(share * (logit(fit.refit(resamples)) - u) for share, fit in fits)
    return np.asarray(expit(u + shifts + np.zeros((len(resamples.weight), 1))))


def _usual_folds(rows: int) -> int:
    return FOLDS if rows <= MAX_EXACT_ROWS else FOLDS_OF_MANY


def _usual_class_folds(sample: ClassSample) -> int:
    if sample.n_classes > MANY_CLASSES:
        return FEWEST_FOLDS
    return FOLDS if sample.n <= MANY_CLASS_ROWS else FOLDS_OF_MANY


def event_families(sample: BinarySample, *, monotone: bool) -> dict[str, Any]:
    """Return the families that are tried on a sample of so many rows."""
    if min(sample.n_data, sample.total) < MIN_ROWS:
        return {}
    families: dict[str, Any] = {
        "smooth": Smooth(monotone=monotone),
        "temperature": Temperature(),
        "quadratic": Quadratic(),
    }
    events = sample.total * sample.mean(sample.y)
    rarer = min(events, sample.total - events)
    if sample.total >= MANY and rarer >= MIN_OUTCOMES:
        families["venn-abers"] = VennAbers()
    return families


def class_families(sample: ClassSample, *, keep_order: bool) -> dict[str, Any]:
    """Return the methods for all classes that are tried on a sample."""
    if sample.n < MIN_ROWS:
        return {}
    if keep_order:
        return {"temperature": Temperature()}
    families: dict[str, Any] = {"smooth": Smooth()}
    if sample.n_classes <= MANY_CLASSES:
        families["sms"] = StructuredScaling(structure="matrix")
    return families


def _used(
    held_out: HeldOut[Any], families: dict[str, Any], sample: Any
) -> list[tuple[float, Any]]:
    """Return the fits that are pooled, to all rows, with their weights."""
    return [
        (float(weight), family.fit_sample(sample))
        for weight, family in zip(held_out.weights, families.values(), strict=True)
        if weight
    ]
