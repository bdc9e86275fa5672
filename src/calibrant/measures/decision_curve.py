"""Decision curves: what decisions are worth, and what miscalibration costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.arrays import as_array, as_numbers
from calibrant.core.defaults import DEFAULT_CONFIDENCE
from calibrant.core.parameters import check_fraction, whole_seed
from calibrant.core.sample import warn_if_small
from calibrant.core.tasks import check_one_event
from calibrant.core.threads import one_blas_thread
from calibrant.exceptions import Argument, OptionError
from calibrant.measures.result_tables import SkippedGroups, as_columns, result_key
from calibrant.numerics.binning import sample_table
from calibrant.numerics.cluster_dependence import check_two_clusters
from calibrant.numerics.clustered_test import smooth_p_value
from calibrant.numerics.net_benefit import (
    NetBenefit,
    Outcomes,
    lost_benefit,
    thresholds_reached,
)
from calibrant.numerics.smooth_curve_fits import smooth_curve
from calibrant.numerics.weighted_points import compress_on_log_grid, compress_to_at_most
from calibrant.predictions.predictions import as_predictions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from calibrant.core.array_types import (
        ArrayLike,
        BoolVector,
        FloatVector,
        Frame,
        IntVector,
        Scale,
        Seed,
        Task,
    )
    from calibrant.core.sample import BinarySample
    from calibrant.core.tasks import BinaryTasks
    from calibrant.engines.groups import Group
    from calibrant.predictions.predictions import Predictions

TREAT_ALL, TREAT_NONE = "treat-all", "treat-none"
RESERVED = ("threshold", "net_benefit", "lost", "difference", "model_a", "model_b")
"""Columns of results, which no column of groups may be called."""
PERCENTAGES = np.arange(1, 100) / 100
"""The thresholds by default."""
SHOWN = (0.05, 0.1, 0.2, 0.3, 0.5)
"""The thresholds, of those that there are, in the printed table."""
LOSS_DRAWS = 1000
SAME_RATE = 1e-9
"""Base rates that differ by less are the same but for rounding."""


@dataclass(frozen=True, eq=False)
class DecisionUnit:
    """One model in one group of rows, or one of the strategies that need no model.

    Attributes
    ----------
    model : str
        Name of the model or strategy.
    group : dict
        The group of rows; empty if there are no groups.
    benefit : NetBenefit
        Shares of rows that are acted on, and what they are worth.
    sample : BinarySample or None
        The predictions; None for strategies without a model.
    base_rate : float
        The share of events, which is the largest possible net benefit.
    """

    model: str
    group: dict[str, Any]
    benefit: NetBenefit
    sample: BinarySample | None = None
    base_rate: float = np.nan

    @property
    def flags(self) -> BoolVector:
        """Tell at which thresholds any row is acted on."""
        return np.asarray((self.benefit.shares > 0.0).any(axis=0))


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve:
    """Net benefit of acting on predictions, by threshold.

    Attributes
    ----------
    units : tuple of DecisionUnit
        Models, then the strategies "treat-all" and "treat-none", in each group. If
        base rates differ between models, there is one "treat-all (name)" per model.
    thresholds : ndarray of shape (t,)
        Predicted probabilities from which one acts.
    confidence : float
        Level of the intervals.
    predictions : Predictions
        The predictions that the curves were computed from.
    random_state : int
        Seeds what is drawn for bands and losses.

    See Also
    --------
    decision_curve : makes decision curves.
    DecisionCurveDisplay : draws them.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> curve = cb.decision_curve(y, {"forest": p}, thresholds=[0.2, 0.5])
    >>> curve.frame()["model"].tolist()
    ['forest', 'forest', 'treat-all', 'treat-all', 'treat-none', 'treat-none']
    >>> curve.frame()["net_benefit"].round(3)
    array([ 0.473,  0.481,  0.37 , -0.008,  0.   ,  0.   ])
    """

    units: tuple[DecisionUnit, ...]
    thresholds: FloatVector
    confidence: float
    predictions: Predictions
    random_state: int = 0

    def frame(self, *, standardised: bool = False, simultaneous: bool = False) -> Frame:
        """Return one row per model and threshold as columns.

        Parameters
        ----------
        standardised : bool
            Divide by the share of events, which is the largest possible net benefit;
            the interval treats that share as known. NaN without events.
        simultaneous : bool
            Limits that contain the true curve at all thresholds at once, instead of
            at each threshold separately.

        Returns
        -------
        dict of ndarray
            Columns: model, groups where there are any, threshold, net_benefit, low,
            high.
        """
        return _stack(
            (
                unit,
                self._benefit(
                    unit, standardised=standardised, simultaneous=simultaneous
                ),
            )
            for unit in self.units
        )

    def _benefit(
        self, unit: DecisionUnit, *, standardised: bool, simultaneous: bool
    ) -> dict[str, FloatVector]:
        benefit = unit.benefit
        low = high = benefit.value
        if unit.model != TREAT_NONE:
            rng = np.random.default_rng(self.random_state)
            reach = (
                benefit.simultaneous_reach(self.confidence, rng)
                if simultaneous
                else None
            )
            low, high = benefit.limits(self.confidence, reach)
        columns = {"net_benefit": benefit.value, "low": low, "high": high}
        if standardised:
            highest = unit.base_rate or np.nan
            columns = {k: np.minimum(v / highest, 1.0) for k, v in columns.items()}
        return {"threshold": self.thresholds, **columns}

    def differences(self) -> Frame:
        """Return by how much decisions by one model are better than by another.

        Every pair of models, and every model against "treat-all" and "treat-none", on
        the same rows, whose labels must be the same for all models. Rows that two
        models decide alike add nothing to their difference: where two models have the
        same predictions, the interval is 0 to 0. Against "treat-none", limits are
        those of `frame`.

        Returns
        -------
        dict of ndarray
            Columns: model_a, model_b, groups where there are any, threshold,
            difference (net benefit of a minus that of b), low, high.
        """
        rows: list[tuple[DecisionUnit, dict[str, Any]]] = []
        for key, outcomes, predictions in self._compared():
            for a, b in combinations(predictions, 2):
                if a == TREAT_ALL:
                    continue  # no model
                pair = predictions[a], predictions[b]
                benefit = NetBenefit.difference(outcomes, *pair)
                low, high = benefit.limits(self.confidence)
                columns = {
                    "model_b": np.full(low.size, b),
                    "threshold": self.thresholds,
                    "difference": benefit.value,
                    "low": low,
                    "high": high,
                }
                rows.append((DecisionUnit(a, key, benefit), columns))
        frame = _stack(rows)
        return {"model_a": frame.pop("model"), "model_b": frame.pop("model_b"), **frame}

    def _compared(
        self,
    ) -> Iterator[tuple[dict[str, Any], Outcomes, dict[str, FloatVector]]]:
        """Yield the rows of each group, with the predictions of all that decide."""
        samples = [(unit, unit.sample) for unit in self.units if unit.sample]
        if len({unit.model for unit, _ in samples}) == 1:  # no rows have to be paired
            for unit, sample in samples:
                outcomes, reached = _decided(sample, self.thresholds)
                p = np.concatenate([[0.0], self.thresholds])[reached]
                yield unit.group, outcomes, {unit.model: p} | _strategies(p.size)
            return
        used = [unit.group for unit in self.units]
        for group, tasks in self.predictions.store.paired_tasks():
            if _group_key(group) in used:
                _check_same_labels(tasks)
                first = next(iter(tasks.values())).samples[0]
                outcomes = _outcomes(first, self.thresholds)
                own = {name: one.samples[0].p for name, one in tasks.items()}
                always = _strategies(outcomes.event.size)
                yield _group_key(group), outcomes, own | always

    def lost(self) -> Frame:
        """Return the net benefit that is lost to miscalibration.

        It is what the same model would gain if its predictions were recalibrated:
        decisions are made by the calibration map of `smooth` instead of the
        predictions. It is never negative.

        Returns
        -------
        dict of ndarray
            Columns: model, groups where there are any, threshold, lost, low, high.
        """
        with one_blas_thread():
            return _stack(
                (
                    unit,
                    lost_by_miscalibration(
                        unit.sample, self.thresholds, self.confidence, self.random_state
                    ),
                )
                for unit in self.units
                if unit.sample is not None
            )

    def __repr__(self) -> str:
        return f"<DecisionCurve, {self.thresholds.size} thresholds>\n{self}"

    def __str__(self) -> str:
        shown = [
            int(np.abs(self.thresholds - threshold).argmin()) for threshold in SHOWN
        ]
        shown = sorted(set(shown))
        names = [" ".join([*map(str, u.group.values()), u.model]) for u in self.units]
        width = max(map(len, [*names, "threshold"]))
        head = [f"{self.thresholds[i]:>8.2f}" for i in shown]
        lines = [f"{'threshold':<{width}}{''.join(head)}"]
        for name, unit in zip(names, self.units, strict=True):
            cells = (f"{unit.benefit.value[i]:>8.4f}" for i in shown)
            lines.append(f"{name:<{width}}{''.join(cells)}")
        return "\n".join(lines)


def _group_key(group: Group) -> dict[str, Any]:
    return result_key(group.key, RESERVED)


def _stack(parts: Any) -> Frame:
    """Return columns of several units below each other, with model and group."""
    rows = [
        {"model": unit.model, **unit.group, **dict(zip(columns, row, strict=True))}
        for unit, columns in parts
        for row in zip(*columns.values(), strict=True)
    ]
    return as_columns(rows)


def _check_same_labels(models: Mapping[str, BinaryTasks]) -> None:
    """Raise where models predict different events."""
    (name, first), *others = models.items()
    for other, tasks in others:
        if not np.array_equal(tasks.samples[0].y, first.samples[0].y):
            raise OptionError(
                "differences are between decisions about the same events; the labels "
                f"of models {name!r} and {other!r} differ. Pass one model to compare "
                f"it with {TREAT_ALL} and {TREAT_NONE}."
            )


def _outcomes(sample: BinarySample, thresholds: FloatVector) -> Outcomes:
    event = sample.y * sample.weights
    codes = sample.clusters
    if codes is not None:  # those of a group may leave numbers out
        values, codes = np.unique(codes, return_inverse=True)
        check_two_clusters(values.size)
    return Outcomes(thresholds, event, sample.weights - event, codes)


def _decided(
    sample: BinarySample, thresholds: FloatVector
) -> tuple[Outcomes, IntVector]:
    """Return rows and how many thresholds each reaches.

    Rows of no cluster that reach the same thresholds are as good as one.
    """
    if sample.clusters is not None:
        rows = _outcomes(sample, thresholds)
        return rows, thresholds_reached(sample.p, thresholds)
    table = sample_table(sample, np.concatenate([[0.0], thresholds, [1.0]]))
    event = table.label_sum
    return Outcomes(thresholds, event, table.weight - event), np.arange(event.size)


def lost_by_miscalibration(
    sample: BinarySample, thresholds: FloatVector, confidence: float, seed: Seed
) -> dict[str, FloatVector]:
    """Return the columns threshold, lost, low and high of one model."""
    points = compress_on_log_grid(sample)
    chance = smooth_curve(sample).values(points.p)[:, np.newaxis]
    value = lost_benefit(points.p, points.weight, chance, thresholds)[:, 0]
    # Limits are quantiles over maps drawn from the posterior. None of these is the
    # identity; so the lower ones are 0 unless the test is significant.
    cells, tail = compress_to_at_most(sample), 0.5 * (1.0 - confidence)
    maps = smooth_curve(sample).drawn_curves(cells.p, LOSS_DRAWS, seed)
    lost = lost_benefit(cells.p, cells.weight, maps, thresholds)
    low, high = np.quantile(lost, (tail, 1.0 - tail), axis=1)
    if not smooth_p_value(sample).rejects(tail):
        low = 0.0 * low
    low, high = np.minimum(low, value), np.maximum(high, value)
    return {"threshold": thresholds, "lost": value, "low": low, "high": high}


def _strategies(n: int) -> dict[str, FloatVector]:
    """Return the decisions that need no model, as if they were predictions."""
    return {TREAT_ALL: np.full(n, np.inf), TREAT_NONE: np.full(n, -np.inf)}


def decision_curve(  # noqa: PLR0913
    y_true: ArrayLike | Mapping[str, ArrayLike] | Predictions,
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    thresholds: ArrayLike | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    task: Task = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale | Mapping[str, Scale] = "prob",
    random_state: Seed = 0,
) -> DecisionCurve:
    """Return what decisions by each model are worth, at each threshold.

    Whoever acts (treats, calls, declines) where the predicted probability is at least
    t accepts (1 - t) / t needless actions for each event that is acted on. The net
    benefit at t is the share of rows that are events acted on, less t / (1 - t) times
    the share of other rows acted on. A model is useful at thresholds where its net
    benefit is above that of treating all and of treating none.

    Parameters
    ----------
    y_true : array-like of shape (n,), dict or Predictions
        Labels: 0 and 1, booleans, or with `pos_label` any two values; classes for
        multi-class tasks. Or `Predictions`, which need no other data. A dict has the
        labels of each model, where they depend on the model.
    y_prob : array-like of shape (n,) or (n, k), or dict
        Predicted probability of the event, or of each class; a dict has those of each
        model. With `task` None, two columns are those of `predict_proba`.
    thresholds : array-like of shape (t,), optional
        Predicted probabilities from which one acts, between 0 and 1; by default 1 %
        to 99 %.
    confidence : float
        Level of the intervals.
    task : None, "confidence" or a class
        None: binary. "confidence": the top class and whether it is right. A class, by
        label or column number: that class against the rest.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of 2 counts the row twice.
    groups : array-like of shape (n,), optional
        The group of each row; each group has its own curves.
    clusters : array-like of shape (n,), optional
        Which rows belong together, such as those of one patient. Intervals then
        allow for correlated outcomes within a cluster.
    pos_label : object, optional
        The label that counts as the event.
    labels : sequence, optional
        The label of each column of `y_prob`, in order; by default 0 .. k-1.
    scale : {"prob", "logit", "percent", "logprob"} or dict
        Whether `y_prob` holds probabilities, logits, percentages from 0 to 100, or
        natural logarithms of probabilities; for all models, or for each by name.
    random_state : int, generator or None
        Seeds what is drawn for simultaneous bands and lost benefits.

    Returns
    -------
    DecisionCurve
        ``frame()`` has one row per model and threshold, with "treat-all" and
        "treat-none" (and "treat-all (name)" for each model, if their base rates
        differ); ``differences()`` compares models on the same rows; ``lost()`` is
        the net benefit that miscalibration costs.

    See Also
    --------
    DecisionCurveDisplay : draws decision curves.
    summary : slope, intercept and other numbers for a clinical report.

    Notes
    -----
    Intervals are score intervals, for differences those of paired rows (Tango's, for
    rows that differ in cost), so that they hold with few events too. In `lost`, the
    calibration map of `smooth` stands for the true one; its posterior gives the
    interval.

    References
    ----------
    A. J. Vickers, E. B. Elkin (2006). Decision curve analysis: a novel method for
    evaluating prediction models. Medical Decision Making 26.
    doi:10.1177/0272989X06295361

    B. Van Calster, A. J. Vickers (2015). Calibration of risk prediction models: impact
    on decision-analytic performance. Medical Decision Making 35.
    doi:10.1177/0272989X14547233

    T. Tango (1998). Equivalence test and confidence interval for the difference in
    proportions for the paired-sample design. Statistics in Medicine 17, 891-908.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> print(cb.decision_curve(y, {"forest": p}))
    threshold     0.05    0.10    0.20    0.30    0.50
    forest      0.4783  0.4727  0.4734  0.4791  0.4814
    treat-all   0.4693  0.4398  0.3698  0.2798 -0.0083
    treat-none  0.0000  0.0000  0.0000  0.0000  0.0000
    """
    preds = as_predictions(
        y_true,
        y_prob,
        task=task,
        sample_weight=sample_weight,
        groups=groups,
        clusters=clusters,
        pos_label=pos_label,
        labels=labels,
        scale=scale,
    )
    check_one_event(preds.task, "a decision curve", aggregated=preds.aggregated)
    _check_names(preds.models)
    checked = _check_thresholds(thresholds)
    return DecisionCurve(
        tuple(_units(preds, checked)),
        checked,
        check_fraction(confidence, name="confidence"),
        preds,
        whole_seed(random_state),
    )


def _check_names(models: Iterable[str]) -> None:
    """Raise where a model is called like a strategy that needs no model."""
    for name in models:
        if name in (TREAT_ALL, TREAT_NONE):
            raise OptionError(
                f"decision curves add a strategy called {name!r}; rename the model."
            )


def _check_thresholds(thresholds: ArrayLike | None) -> FloatVector:
    """Return the thresholds in ascending order, each once."""
    if thresholds is None:
        return PERCENTAGES
    given = as_array(thresholds, name="thresholds")
    values = np.unique(as_numbers(given, name="thresholds"))
    outside = values[~((values > 0.0) & (values < 1.0))]
    if outside.size or not values.size:
        got = f"{outside[0]:g}" if outside.size else "none"
        raise OptionError(
            Argument("thresholds"),
            f" must be probabilities above 0 and below 1, at least one; got {got}.",
        )
    return values


def _units(preds: Predictions, thresholds: FloatVector) -> list[DecisionUnit]:
    """Return the curve of each model in each group, then those without a model."""
    parts: dict[str, list[list[DecisionUnit]]] = {}
    skipped = SkippedGroups()
    for unit in preds.store.units():
        sample = unit.read().samples[0]
        if not unit.group.key:
            warn_if_small(sample)
        key, name = _group_key(unit.group), str(unit.group)
        model = preds.store.display_name(unit.model) or "model"
        with skipped.skipping(unit.group):
            own = units_of(model, key, sample, thresholds)
            parts.setdefault(name, []).append(own)
    return skipped.checked([u for own in parts.values() for u in join_units(own)])


def flagged_by_any(units: Iterable[DecisionUnit]) -> BoolVector:
    """Tell at which thresholds any model still acts on rows; everywhere if none does.

    Beyond, net benefits are 0 by definition, and figures show nothing.
    """
    flags = [unit.flags for unit in units if unit.sample is not None]
    flagged: BoolVector = np.asarray(np.any(flags, axis=0))
    return flagged if flagged.any() else ~flagged


def units_of(
    model: str, key: dict[str, Any], sample: BinarySample, thresholds: FloatVector
) -> list[DecisionUnit]:
    """Return the curve of a model, then those of the same rows without a model."""
    outcomes, reached = _decided(sample, thresholds)
    rate = float(outcomes.event.sum() / outcomes.total)
    always = {
        strategy: NetBenefit.of(outcomes, thresholds_reached(p, thresholds))
        for strategy, p in _strategies(outcomes.event.size).items()
    }
    return [
        DecisionUnit(model, key, NetBenefit.of(outcomes, reached), sample, rate),
        *(
            DecisionUnit(strategy, key, benefit, None, rate)
            for strategy, benefit in always.items()
        ),
    ]


def join_units(parts: Sequence[Sequence[DecisionUnit]]) -> list[DecisionUnit]:
    """Return the curves of models, then those without a model.

    To treat all is worth the same for all models if their base rates are the same;
    otherwise each model has its own.
    """
    models, every, none = zip(*parts, strict=True)
    if np.ptp([one.base_rate for one in models]) < SAME_RATE:
        return [*models, every[0], none[0]]
    named = (
        replace(always, model=f"{TREAT_ALL} ({own.model})")
        for own, always in zip(models, every, strict=True)
    )
    return [*models, *named, none[0]]
