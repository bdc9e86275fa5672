"""Which of several models is better calibrated, on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.calibrators.smooth import SmoothFit
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHOD
from calibrant.core.parameters import check_fraction, generator, whole_seed
from calibrant.core.sample import warn_if_small
from calibrant.core.tasks import check_events
from calibrant.core.text_tables import frame_table
from calibrant.core.threads import one_blas_thread
from calibrant.exceptions import Argument, OptionError, Setting
from calibrant.measures.estimate import ErrorSettings, Estimate, FittedTasks
from calibrant.measures.result_tables import SkippedGroups, as_columns, result_key
from calibrant.numerics.paired import paired_differences, ranks, significantly_different
from calibrant.numerics.resampling import RowGroups, bootstrap_cells
from calibrant.predictions.in_memory import GROUP
from calibrant.predictions.predictions import Predictions, as_predictions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calibrant.calibrators.fits import ErrorFit
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
    from calibrant.core.text_tables import TableFormat

MIN_MODELS = 2
ENDS = ("value", "low", "high")
PAIR_COLUMNS = ("model_a", "model_b", "difference", "probability", "distinct", "rank")

PAIR_NAMES = {
    "model_a": "a",
    "model_b": "b",
    "difference": "a - b",
    "probability": "P(a is better)",
    "distinct": "significant",
}
"""What tables for readers call the columns of pairs."""


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
        Error of a less that of b; negative debiased errors count as 0.
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
        note = "" if self.distinct else ", not significant"
        return (
            f"{self.model_a} - {self.model_b}: {self.difference:z.4f} "
            f"[{self.low:z.4f}, {self.high:z.4f}], better with probability "
            f"{self.probability:.3f}{note}"
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

    See Also
    --------
    compare : makes comparisons.

    Examples
    --------
    >>> import calibrant as cb
    >>> forest, y = cb.datasets.load_binary("forest")
    >>> network, y = cb.datasets.load_binary("network")
    >>> result = compare(y, {"forest": forest, "network": network}, method="es15")
    >>> result.frame()["model"].tolist(), result.frame()["rank"].tolist()
    (['network', 'forest'], [1, 2])
    >>> result.pairs()["difference"].round(4)
    array([-0.0802])
    """

    standings: tuple[Standing, ...]
    differences: tuple[PairedDifference, ...]
    alpha: float
    confidence: float
    key: dict[str, Any] = field(default_factory=dict)
    groups: tuple[Comparison, ...] = ()

    def frame(self) -> Frame:
        """Return one row per model, best first, as columns.

        Returns
        -------
        dict of ndarray
            Columns: group where there are several, model, rank, method, task, value,
            low, high, n, debiased, bins.
        """
        return as_columns(
            [
                {**part.key, "model": s.model, "rank": s.rank, **asdict(s.estimate)}
                for part in self._parts
                for s in part.standings
            ]
        )

    def pairs(self) -> Frame:
        """Return one row per pair of models as columns.

        Returns
        -------
        dict of ndarray
            Columns: group where there are several, model_a, model_b, difference, low,
            high, probability, distinct.
        """
        return as_columns(
            [
                {**part.key, **asdict(pair)}
                for part in self._parts
                for pair in part.differences
            ]
        )

    def table(self, format: TableFormat = "text") -> str:  # noqa: A002
        """Return the rows of `frame`, and below those of `pairs`, as two tables.

        ``calibrant compare --format`` prints the same.

        Parameters
        ----------
        format : {"text", "markdown", "latex", "csv"}
            How it is written; LaTeX needs the package booktabs. CSV has the rows of
            `frame` only.

        Returns
        -------
        str
            Numbers with four decimals, and a hyphen where a number is missing; CSV
            has all digits, and nan.
        """
        models = frame_table(self.frame(), format)
        if format == "csv":
            return models
        return f"{models}\n\n{frame_table(name_pairs(self.pairs()), format)}"

    @property
    def _parts(self) -> tuple[Comparison, ...]:
        return self.groups or (self,)

    def __repr__(self) -> str:
        return f"<Comparison, alpha = {self.alpha:g}>\n{self}"

    def __str__(self) -> str:
        if self.groups:
            names = (
                ", ".join(f"{k}={v}" for k, v in c.key.items()) for c in self.groups
            )
            pairs = zip(names, self.groups, strict=True)
            return "\n\n".join(f"{name}\n{group}" for name, group in pairs)
        lines = [f"{s.rank}. {s.model}  {s.estimate}" for s in self.standings]
        return "\n".join([*lines, *map(str, self.differences)])


def name_pairs(pairs: Frame) -> Frame:
    """Return the columns of `Comparison.pairs` under names for readers."""
    names = {old: new for old, new in PAIR_NAMES.items() if new not in pairs}
    distinct = np.where(pairs["distinct"], "yes", "no")
    shown = {**pairs, "distinct": distinct}
    return {names.get(name, name): values for name, values in shown.items()}


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
    """Compare the calibration errors of several models in pairs, and rank the models.

    All models predict the same rows. All models are evaluated on the same resamples,
    so that rows that are easy or hard for all of them do not add noise to the
    difference.

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
        "auto" subtracts the estimated bias if it is known for the method; False gives
        the raw, classical value.
    confidence : float
        Level of the intervals, and of significance.
    n_resamples : int
        Number of bootstrap resamples.
    task : None, "confidence", "classwise", "multilabel", or a class
        None: binary. "confidence" or "top-label": the top class and whether it is
        right. A class, by label or column number: that class against the rest.
        "classwise": the mean over classes. "multilabel": the same for labels of which a
        row can have several, with a matrix of 0 and 1 as `y_true`.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of 2 counts the row twice.
    groups : array-like of shape (n,), optional
        The group of each row; models are compared in each group.
    clusters : array-like of shape (n,), optional
        Which rows belong together, such as those of one patient: resamples draw whole
        clusters, and differences have Student's distribution.
    pos_label : object, optional
        The label that counts as the event.
    labels : sequence, optional
        The label of each column of predictions, in order; by default 0 .. k-1.
    scale : {"prob", "logit", "percent", "logprob"} or dict
        Whether predictions are probabilities, logits, percentages from 0 to 100, or
        natural logarithms of probabilities; for all models, or for each by name.
    random_state : int, generator or None
        Seeds cross-validation and resampling.
    progress : callable, optional
        Called with the number of finished and of all groups.

    Returns
    -------
    Comparison
        ``frame()`` has one row per model, best first; ``pairs()`` one per pair of
        models with their difference and the probability that the first is better
        calibrated.

    See Also
    --------
    evaluate : errors of one or several models, without differences.
    ComparisonDisplay : the picture of a comparison.

    Notes
    -----
    A difference is taken as normal with its standard deviation over the resamples. A
    model whose error can be explained by noise (its interval begins at 0) is rarely
    significantly worse than another. Ranks count the significantly better models; the
    chance that any of these is false is at most 1 - `confidence` (Holm). Models that
    share a rank have the same number of significantly better models; rank 1 has none. A
    model of rank 1 may have a larger error than one of rank 2, if it is less certain.

    References
    ----------
    S. Holm (1979). A simple sequentially rejective multiple test procedure.
    Scandinavian Journal of Statistics 6(2), 65-70.

    Examples
    --------
    >>> import calibrant as cb
    >>> names = ("bayes", "forest", "logistic")
    >>> y = cb.datasets.load_binary("bayes")[1]
    >>> models = {name: cb.datasets.load_binary(name)[0] for name in names}
    >>> ranked = cb.compare(y, models).frame()
    >>> dict(zip(ranked["model"].tolist(), ranked["rank"].tolist()))
    {'logistic': 1, 'bayes': 2, 'forest': 2}

    Two models that answer the same questions are right on different ones:

    >>> rng = np.random.default_rng(0)
    >>> prob = {"plain": rng.random(2000), "bold": rng.random(2000)}
    >>> right = {
    ...     "plain": rng.random(2000) < prob["plain"],
    ...     "bold": rng.random(2000) < 0.5 * prob["bold"],
    ... }
    >>> cb.compare(right, prob).frame()["model"].tolist()
    ['plain', 'bold']
    """
    settings = ErrorSettings(
        alpha=alpha,
        debias=debias,
        confidence=check_fraction(confidence, name="confidence"),
        n_resamples=n_resamples,
        random_state=whole_seed(random_state),
    )
    if not isinstance(y_true, Predictions) and not isinstance(y_prob, Mapping):
        raise OptionError(
            f"y_prob must be a dict of predictions by name, such as "
            f'{{"a": p_a, "b": p_b}}; got {type(y_prob).__name__}.'
        )
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
    if len(preds.models) < MIN_MODELS:
        raise OptionError(
            f"at least {MIN_MODELS} models are needed to compare; got "
            f"{max(len(preds.models), 1)}. For one model use evaluate. With a task, "
            f"the columns of all classes are one model.",
            *_names_of_models(preds),
        )
    check_events(preds.task, "a comparison")
    with one_blas_thread():
        comparisons = _compare_groups(preds, method, settings, progress)
    if not preds.by:
        return comparisons[0]
    return Comparison((), (), float(alpha), confidence, groups=tuple(comparisons))


def _names_of_models(preds: Predictions) -> list[str | Argument]:
    """Return that a column of groups may have been meant as that of models."""
    if not preds.by or GROUP in preds.by:
        return []
    column = preds.by[0]
    return [
        f" If column {column!r} names the model of each row, pass ",
        Setting("model", column),
        " and ",
        Setting("id"),
        " instead of ",
        Setting("by", column),
        ".",
    ]


def _compare_groups(
    preds: Predictions,
    method: str,
    settings: ErrorSettings,
    progress: Callable[[int, int], None] | None,
) -> list[Comparison]:
    """Compare the models in each group, but for those that are too small."""
    comparisons: list[Comparison] = []
    skipped = SkippedGroups()
    parts = preds.store.paired_tasks()
    for done, (group, models) in enumerate(parts):
        if progress is not None:
            progress(done, len(parts))
        if not group.key:
            warn_if_small(next(iter(models.values())).samples[0])
        fitted = {name: FittedTasks(own, settings) for name, own in models.items()}
        with skipped.skipping(group):
            key = result_key(group.key, PAIR_COLUMNS)
            comparisons.append(compare_fitted(fitted, method, key))
    return skipped.checked(comparisons)


def compare_fitted(
    models: Mapping[str, FittedTasks],
    method: str,
    key: dict[str, Any] | None = None,
) -> Comparison:
    """Compare models whose events lie on the same rows, by the same settings."""
    first = next(iter(models.values()))
    settings, sample = first.settings, first.tasks.samples[0]
    level = settings.confidence
    if level is None:
        raise OptionError("confidence must be given to compare models.")
    rng = generator(settings.random_state)
    shared = RowGroups.draw(
        sample.n, settings.n_resamples, rng, sample.weight, sample.clusters
    )
    freedom = np.inf if sample.clusters is None else shared.counts.shape[1] - 1.0
    estimates = {name: one.estimates(method)[0] for name, one in models.items()}
    # Whatever the order of the models was, numbers and order are the same.
    names = sorted(estimates, key=lambda name: (estimates[name].value, name))
    value, low, high = (
        np.array([getattr(estimates[name], end) for name in names]) for end in ENDS
    )
    low, high = np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)
    draws = [_resampled_errors(models[name], method, shared) for name in names]
    paired = paired_differences(value, low, high, np.stack(draws), level, freedom)
    distinct = significantly_different(paired.probability, 1.0 - level)
    rank = ranks(paired.difference, distinct)
    order = np.argsort(rank, kind="stable").tolist()
    standings = (Standing(names[i], int(rank[i]), estimates[names[i]]) for i in order)
    differences = (
        PairedDifference(
            model_a=names[a],
            model_b=names[b],
            difference=float(paired.difference[a, b]),
            low=float(paired.low[a, b]),
            high=float(paired.high[a, b]),
            probability=float(paired.probability[a, b]),
            distinct=bool(distinct[a, b]),
        )
        for a, b in combinations(order, 2)
    )
    return Comparison(
        standings=tuple(standings),
        differences=tuple(differences),
        alpha=float(settings.alpha),
        confidence=level,
        key=key or {},
    )


def _resampled_errors(
    fitted: FittedTasks, method: str, shared: RowGroups
) -> FloatVector:
    """Return the errors of one model on the shared resamples."""
    alpha, debias = fitted.settings.alpha, fitted.estimates(method)[0].debiased

    def errors(fit: ErrorFit, sample: BinarySample) -> FloatVector:
        free = fit.loosened(sample) if isinstance(fit, SmoothFit) else fit
        cells = bootstrap_cells(sample.p, sample.y, sample.weight, free.edges)
        weights = shared.weights(cells)
        return free.resampled_errors(cells, weights, alpha=alpha, debias=debias)

    pairs = zip(fitted.fits(method), fitted.tasks.samples, strict=True)
    each = [errors(fit, sample) for fit, sample in pairs]
    return np.asarray(np.mean(each, axis=0))
