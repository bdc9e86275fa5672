"""Which of several models is better calibrated, on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.calibrators.smooth_fits import SmoothFit
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHOD
from calibrant.core.options import check_fraction, generator, whole_seed
from calibrant.core.sample import warn_if_small
from calibrant.exceptions import OptionError, TooFewRowsError, WeightError
from calibrant.measures.estimate import Estimate, Estimator
from calibrant.measures.fitted import FittedTasks
from calibrant.measures.frames import columns_of
from calibrant.measures.groups import SkippedGroups, result_key
from calibrant.numerics.paired import paired_differences, ranks, significantly_different
from calibrant.numerics.resampling import bootstrap_cells
from calibrant.predictions.given import as_predictions
from calibrant.predictions.predictions import Predictions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calibrant.calibrators.base import ErrorFit
    from calibrant.core.array_types import (
        ArrayLike,
        Debias,
        FloatVector,
        Frame,
        Scale,
        Seed,
        Task,
    )
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.resampling import RowGroups

MIN_MODELS = 2
ENDS = ("value", "low", "high")
PAIR_COLUMNS = ("model_a", "model_b", "difference", "probability", "distinct", "rank")


@dataclass(frozen=True)
class Standing:
    """One model among others.

    Attributes
    ----------
    model : str
        Its name.
    rank : int
        1 plus the number of significantly better calibrated models.
    estimate : Estimate
        Its error with interval, as `evaluate` gives it.
    """

    model: str
    rank: int
    estimate: Estimate


@dataclass(frozen=True)
class PairedDifference:
    """Two models on the same rows.

    Attributes
    ----------
    model_a, model_b : str
        Their names.
    difference : float
        Error of a less that of b; errors that debiasing took below 0 count as 0.
    low, high : float
        Ends of the interval of the difference.
    probability : float
        How probable it is that a is the better calibrated one.
    distinct : bool
        Whether they differ significantly, all pairs taken together (Holm).
    """

    model_a: str
    model_b: str
    difference: float
    low: float
    high: float
    probability: float
    distinct: bool

    def __str__(self) -> str:
        told = "" if self.distinct else ", not significant"
        return (
            f"{self.model_a} - {self.model_b}: {self.difference:z.4f} "
            f"[{self.low:z.4f}, {self.high:z.4f}], better with probability "
            f"{self.probability:.3f}{told}"
        )


@dataclass(frozen=True, repr=False)
class Comparison:
    """Models in the order of their ranks, and every pair of them.

    Attributes
    ----------
    standings : tuple of Standing
        One per model, best first.
    differences : tuple of PairedDifference
        One per pair, the model that stands first as a.
    alpha, confidence : float
        Exponent of the error and level of all intervals.
    key : dict
        The group of rows, where there are several.
    groups : tuple of Comparison
        That of each group of rows; then there are no standings of all rows.

    Examples
    --------
    >>> import calibrant as cb
    >>> forest, y = cb.datasets.load_binary("forest")
    >>> network, y = cb.datasets.load_binary("network")
    >>> found = compare(y, {"forest": forest, "network": network}, method="es15")
    >>> found.frame()["model"].tolist(), found.frame()["rank"].tolist()
    (['network', 'forest'], [1, 2])
    >>> found.pairs()["difference"].round(4)
    array([-0.0802])
    """

    standings: tuple[Standing, ...]
    differences: tuple[PairedDifference, ...]
    alpha: float
    confidence: float
    key: dict[str, Any] = field(default_factory=dict)
    groups: tuple[Comparison, ...] = ()

    def frame(self) -> Frame:
        """Return one row a model, best first, as columns.

        Columns: model, rank, method, task, value, low, high, n, debiased, bins.
        """
        return columns_of(
            [
                {**part.key, "model": s.model, "rank": s.rank, **asdict(s.estimate)}
                for part in self._parts
                for s in part.standings
            ]
        )

    def pairs(self) -> Frame:
        """Return one row a pair of models as columns.

        Columns: model_a, model_b, difference, low, high, probability, distinct.
        """
        return columns_of(
            [
                {**part.key, **asdict(pair)}
                for part in self._parts
                for pair in part.differences
            ]
        )

    @property
    def _parts(self) -> tuple[Comparison, ...]:
        return self.groups or (self,)

    def __repr__(self) -> str:
        return f"<Comparison, alpha = {self.alpha:g}>\n{self}"

    def __str__(self) -> str:
        if self.groups:
            return "\n\n".join(f"{_format_key(c.key)}\n{c}" for c in self.groups)
        lines = [f"{s.rank}. {s.model}  {s.estimate}" for s in self.standings]
        return "\n".join([*lines, *map(str, self.differences)])


def compare(  # noqa: PLR0913
    y_true: ArrayLike | Mapping[str, ArrayLike] | Predictions,
    y_prob: Mapping[str, ArrayLike] | None = None,
    *,
    method: str = DEFAULT_METHOD,
    alpha: float = 1,
    debias: Debias = "auto",
    confidence: float = DEFAULT_CONFIDENCE,
    n_resamples: int = 1000,
    task: Task = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale | Mapping[str, Scale] = "prob",
    random_state: Seed = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Tell which of several models is better calibrated, and how surely.

    All models predict the same rows. Rows are resampled once for all models, so that
    what makes rows easy or hard for all of them does not blur their difference.

    Parameters
    ----------
    y_true : array-like of shape (n,), dict or Predictions
        Labels: 0 and 1, booleans, or with `pos_label` any two values; classes for
        multi-class tasks. A single vector assumes that the event is the same for all
        models. Where it depends on the model, as whether each model's own answer is
        right, pass a dict with the labels of each model. Row i must be the same case,
        such as the same question, for all models. Or `Predictions` of several models,
        which need no other data; those of a long table are paired by their `id`.
    y_prob : dict
        Predictions of each model by its name, at least two.
    method : str
        How errors are estimated; see `calibrator_names`. Also "kce".
    alpha : float
        Exponent of the error: 1 for the absolute, 2 for the squared error.
    debias : {"auto", True, False}
        "auto" takes out the estimated bias where the method knows it; False gives the
        raw, classical value.
    confidence : float
        Level of the intervals, and of what differs significantly.
    n_resamples : int
        Number of bootstrap resamples.
    task : None, "confidence", "classwise", or a class
        None: binary. "confidence": the top class and whether it is right. A class, by
        label or column number: that class against the rest. "classwise": the mean over
        classes.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of 2 equals the row twice.
    groups : array-like of shape (n,), optional
        The group of each row; models are compared in each group.
    clusters : array-like of shape (n,), optional
        Which rows belong together. It cannot be used yet: an error says so.
    pos_label : object, optional
        The label that means that the event happened.
    labels : sequence, optional
        The label of each column of predictions, in order; by default 0 .. k-1.
    scale : {"prob", "logit", "percent", "logprob"} or dict
        What predictions hold, for all models or for each.
    random_state : int, generator or None
        Seeds cross-validation and resampling.
    progress : callable, optional
        Called with the number of finished and of all groups.

    Returns
    -------
    Comparison
        ``frame()`` has one row a model, best first; ``pairs()`` one a pair of models
        with their difference and the probability that the first is better calibrated.

    Notes
    -----
    A difference is taken as normal with its standard deviation over the resamples.
    Where noise alone can explain a model's error (its interval begins at 0), it is
    rarely found significantly worse than any other. Ranks count the significantly
    better models; the chance that any of these is false is at most 1 - `confidence`
    (Holm). Models that share a rank are beaten by equally many, and rank 1 by none. A
    model of rank 1 may have a larger error than one of rank 2, if it is far less
    certain.

    Examples
    --------
    >>> import calibrant as cb
    >>> names = ("bayes", "forest", "logistic")
    >>> y = cb.datasets.load_binary("bayes")[1]
    >>> models = {name: cb.datasets.load_binary(name)[0] for name in names}
    >>> found = cb.compare(y, models)
    >>> dict(zip(found.frame()["model"].tolist(), found.frame()["rank"].tolist()))
    {'logistic': 1, 'bayes': 2, 'forest': 2}

    Two models that answer the same questions are right on different ones:

    >>> rng = np.random.default_rng(0)
    >>> said = {"plain": rng.random(2000), "bold": rng.random(2000)}
    >>> right = {
    ...     "plain": rng.random(2000) < said["plain"],
    ...     "bold": rng.random(2000) < 0.5 * said["bold"],
    ... }
    >>> cb.compare(right, said).frame()["model"].tolist()
    ['plain', 'bold']
    """
    estimator = Estimator(
        alpha=alpha,
        debias=debias,
        confidence=check_fraction(confidence, name="confidence"),
        n_resamples=n_resamples,
        random_state=whole_seed(random_state),
    )
    if not isinstance(y_true, Predictions):
        _check_is_mapping(y_prob)
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
    preds.store.check_no_clusters("compare")
    _check_several(preds)
    found = _compared_groups(preds, method, estimator, progress)
    if not preds.by:
        return found[0]
    return Comparison((), (), float(alpha), confidence, groups=tuple(found))


def _compared_groups(
    preds: Predictions,
    method: str,
    estimator: Estimator,
    progress: Callable[[int, int], None] | None,
) -> list[Comparison]:
    """Compare the models in each group, but for those that are too small."""
    found, left_out = [], SkippedGroups()
    parts = preds.store.paired_tasks()
    for done, (group, tasks) in enumerate(parts):
        if progress is not None:
            progress(done, len(parts))
        if not group.key:
            warn_if_small(next(iter(tasks.values())).samples[0])
        fitted = {name: FittedTasks(own, estimator) for name, own in tasks.items()}
        try:
            key = result_key(group.key, PAIR_COLUMNS)
            found.append(compare_events(fitted, method, key))
        except (TooFewRowsError, WeightError) as error:
            if not group.key:
                raise
            left_out.add(str(group), error)
    left_out.warn()
    if not found:
        raise OptionError(left_out.nothing_left)
    return found


def _check_is_mapping(y_prob: Any) -> None:
    if not isinstance(y_prob, Mapping):
        raise OptionError(
            f"y_prob must be a dict of predictions by name, such as "
            f'{{"a": p_a, "b": p_b}}; got {type(y_prob).__name__}.'
        )


def _check_several(preds: Predictions) -> None:
    if len(preds.models) < MIN_MODELS:
        raise OptionError(
            f"at least {MIN_MODELS} models are needed to compare; got "
            f"{max(len(preds.models), 1)}. For one model use evaluate. With a task, "
            f"the columns of all classes are one model."
        )


def _format_key(key: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in key.items())


def compare_events(
    models: Mapping[str, FittedTasks],
    method: str,
    key: dict[str, Any] | None = None,
) -> Comparison:
    """Compare models whose events lie on the same rows, by one estimator."""
    first = next(iter(models.values()))
    estimator = first.estimator
    level = estimator.confidence
    if level is None:
        raise OptionError("confidence must be given to compare models.")
    rng = generator(estimator.random_state)
    shared = estimator.shared_rows(first.events, rng)
    found = {name: _estimate(fitted, method, shared) for name, fitted in models.items()}
    # Whatever the order of the models was, numbers and order are the same.
    names = sorted(found, key=lambda name: (found[name][0].value, name))
    estimates = [found[name][0] for name in names]
    value, low, high = (np.array([getattr(e, end) for e in estimates]) for end in ENDS)
    low, high = np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)
    draws = np.stack([found[name][1] for name in names])
    paired = paired_differences(value, low, high, draws, level)
    apart = significantly_different(paired.probability, 1.0 - level)
    rank = ranks(paired.difference, apart)
    order = np.argsort(rank, kind="stable").tolist()

    def pair(a: int, b: int) -> PairedDifference:
        return PairedDifference(
            model_a=names[a],
            model_b=names[b],
            difference=float(paired.difference[a, b]),
            low=float(paired.low[a, b]),
            high=float(paired.high[a, b]),
            probability=float(paired.probability[a, b]),
            distinct=bool(apart[a, b]),
        )

    return Comparison(
        standings=tuple(Standing(names[i], int(rank[i]), estimates[i]) for i in order),
        differences=tuple(pair(a, b) for a, b in combinations(order, 2)),
        alpha=float(estimator.alpha),
        confidence=level,
        key=key or {},
    )


def _estimate(
    fitted: FittedTasks, method: str, shared: RowGroups
) -> tuple[Estimate, FloatVector]:
    """Return the estimate of one model, and its errors on the shared resamples."""
    estimate = fitted.estimates(method)[0]

    def resampled(fit: ErrorFit, sample: BinarySample) -> FloatVector:
        free = fit.loosened(sample) if isinstance(fit, SmoothFit) else fit
        cells = bootstrap_cells(sample.p, sample.y, sample.weight, free.edges)
        return free.resampled_errors(
            cells,
            shared.weights(cells),
            alpha=fitted.estimator.alpha,
            debias=estimate.debiased,
        )

    errors = [
        resampled(fit, sample)
        for fit, sample in zip(fitted.fits(method), fitted.events.samples, strict=True)
    ]
    return estimate, np.mean(errors, axis=0)
