"""Several methods at once, with intervals and scores."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from itertools import chain
from math import isfinite
from statistics import fmean
from typing import TYPE_CHECKING, Any

from calibrant.calibrators.registry import method_name
from calibrant.calibrators.user_calibrator import is_calibrator
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHODS
from calibrant.core.sample import warn_if_small
from calibrant.core.threads import one_blas_thread
from calibrant.exceptions import OptionError, TooFewRowsError, WeightError
from calibrant.measures.estimate import Estimate, Estimator
from calibrant.measures.few_rows import work_ahead
from calibrant.measures.fitted import FittedTasks
from calibrant.measures.frames import columns_of
from calibrant.measures.groups import SkippedGroups, result_key
from calibrant.measures.proper import ScoreDecomposition, mean_splits
from calibrant.predictions.given import as_predictions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from calibrant.core.array_types import ArrayLike, Debias, Frame, Scale, Seed, Task
    from calibrant.measures.estimate import Interval
    from calibrant.predictions.predictions import Predictions
    from calibrant.predictions.units import Unit

UNITS_AT_ONCE, ROWS_AT_ONCE = 1024, 65_536
"""Most units that are read before any is evaluated, and most of their rows."""


@dataclass(frozen=True)
class Assessment:
    """What was found for one set of predictions: a model, or a group of its rows.

    Attributes
    ----------
    estimates : tuple of Estimate
        One per method.
    classes : tuple of Estimate
        One per method and class, where the task is "classwise".
    scores : tuple of ScoreDecomposition
        Brier score and log-loss.
    base_rate, mean_prob : float
        How often the event happened, and how often it was predicted on average.
    key : dict
        What tells this set from others: model, group.
    """

    estimates: tuple[Estimate, ...]
    classes: tuple[Estimate, ...]
    scores: tuple[ScoreDecomposition, ...]
    base_rate: float
    mean_prob: float
    key: dict[str, Any]


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Calibration errors with intervals, one row a method.

    Attributes
    ----------
    assessments : tuple of Assessment
        One per model and group; a single one from `evaluate`.
    alpha, confidence : float
        Exponent of the error and level of the intervals.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> found = evaluate(y, p, methods=["es15", "ew15"], confidence=None)
    >>> found.frame()["value"].round(4)
    array([0.0819, 0.0973])
    >>> found.scores()["brier"].round(4)
    array([0.0277])
    """

    assessments: tuple[Assessment, ...]
    alpha: float
    confidence: float | None

    def frame(self) -> Frame:
        """Return one row a method (and model, and group) as columns.

        Columns: model and group where there are several, method, task, value, low,
        high, n, debiased, bins.
        """
        return _estimate_frame((a.key, a.estimates) for a in self.assessments)

    def per_class(self) -> Frame:
        """Return one row a method and class, for the task "classwise"."""
        return _estimate_frame((a.key, a.classes) for a in self.assessments)

    def scores(self) -> Frame:
        """Return one row a model and group: rates, and the scores with their split."""
        rows = []
        for found in self.assessments:
            row = dict(found.key)
            row |= {"n": found.estimates[0].n, "base_rate": found.base_rate}
            row["mean_prob"] = found.mean_prob
            for part in found.scores:
                name = part.name.replace("-", "_")
                row[name] = part.score
                row[f"{name}_calibration"] = part.calibration
                row[f"{name}_refinement"] = part.refinement
            rows.append(row)
        return columns_of(rows)

    def _repr_html_(self) -> str:
        names = [n for n in self.frame() if n not in ("task", "debiased", "bins")]
        columns = [self.frame()[name].tolist() for name in names]
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        rows = "".join(
            f"<tr>{''.join(f'<td>{_html_text(value)}</td>' for value in row)}</tr>"
            for row in zip(*columns, strict=True)
        )
        return (
            f"<table><caption>Calibration error, alpha = {self.alpha:g}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )

    def __repr__(self) -> str:
        return f"<Evaluation, alpha = {self.alpha:g}>\n{self}"

    def __str__(self) -> str:
        lines = [
            "  ".join([*(str(v) for v in found.key.values()), str(estimate)])
            for found in self.assessments
            for estimate in found.estimates
        ]
        return "\n".join(lines)


def _html_text(value: Any) -> str:
    """Return a value as a cell of a table, numbers with four decimals."""
    if not isinstance(value, float):
        return escape(str(value))
    return f"{value:.4f}" if isfinite(value) else "\N{EN DASH}"


def _estimate_frame(
    found: Iterable[tuple[dict[str, Any], tuple[Estimate, ...]]],
) -> Frame:
    names = [f.name for f in fields(Estimate)]
    return columns_of(
        [
            {**key, **{name: getattr(estimate, name) for name in names}}
            for key, estimates in found
            for estimate in estimates
        ]
    )


def assess(
    fitted: FittedTasks, methods: Sequence[str], key: dict[str, Any]
) -> Assessment:
    """Apply every method to the binary tasks of one unit."""
    found = [fitted.estimates(method) for method in methods]
    events = fitted.events
    return Assessment(
        estimates=tuple(rows[0] for rows in found),
        classes=tuple(chain.from_iterable(rows[1:] for rows in found)),
        scores=mean_splits(events),
        base_rate=fmean(s.mean(s.y) for s in events.samples),
        mean_prob=fmean(s.mean(s.p) for s in events.samples),
        key=key,
    )


def check_methods(methods: Any) -> tuple[Any, ...]:
    """Return methods as a tuple; one alone will do."""
    alone = isinstance(methods, str) or is_calibrator(methods)
    names = (methods,) if alone else tuple(methods)
    if not names:
        raise OptionError("methods must name at least one method.")
    return names


def evaluate(  # noqa: PLR0913
    y_true: ArrayLike | Predictions,
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    methods: Sequence[str] | str = DEFAULT_METHODS,
    alpha: float = 1,
    debias: Debias = "auto",
    confidence: float | None = DEFAULT_CONFIDENCE,
    interval: Interval = "auto",
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
) -> Evaluation:
    """Estimate the calibration error by several methods, with intervals.

    Parameters
    ----------
    y_true : array-like of shape (n,) or Predictions
        Labels: 0 and 1, booleans, or with `pos_label` any two values; classes for
        multi-class tasks. Or `Predictions`, which need no other data.
    y_prob : array-like of shape (n,) or (n, k), or dict
        Predicted probability of the event, or of each class; a dict has those of each
        model.
    methods : str, calibrator, or sequence of them
        Which estimates; see `calibrator_names`. Also "kce", and any object with
        ``fit(p, y)`` and ``transform(p)``, such as one of scikit-learn. Methods with
        more bins than there are rows are left out with a warning, unless no other is
        left.
    alpha : float
        Exponent of the error: 1 for the absolute, 2 for the squared error.
    debias : {"auto", True, False}
        "auto" takes out the estimated bias where the method knows it; False gives the
        raw, classical value.
    confidence : float or None
        Level of the intervals; None for no intervals.
    interval : {"auto", "posterior", "basic", "percentile"}
        "posterior": where the true error lies, by quantiles of the errors of maps
        drawn from the posterior of "smooth", whichever method gives the estimate; the
        lower end is 0 where `calibration_test` finds nothing. "auto" is the same, but
        "basic" for "kce", which measures no map.
        "percentile": quantiles of what the method gives for bootstrap resamples.
        "basic": these reflected at the estimate, which takes out the bias that
        resampling adds. Intervals lie within [0, 1] and hold the estimate; where
        resamples do not scatter there is none.
    n_resamples : int
        Number of maps drawn; or of bootstrap resamples, in which bins stay as they
        were fitted.
    task : None, "confidence", "classwise", or a class
        None: binary. "confidence": the top class and whether it is right. A class, by
        label or column number: that class against the rest. "classwise": the mean over
        classes.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of 2 equals the row twice.
    groups : array-like of shape (n,), optional
        The group of each row; groups are evaluated one by one.
    clusters : array-like of shape (n,), optional
        Which rows belong together. Intervals cannot use it yet: an error says so.
    pos_label : object, optional
        The label that means that the event happened.
    labels : sequence, optional
        The label of each column of `y_prob`, in order; by default 0 .. k-1.
    scale : {"prob", "logit", "percent", "logprob"} or dict
        What `y_prob` holds, for all models or for each.
    random_state : int, generator or None
        Seeds cross-validation and resampling.
    progress : callable, optional
        Called with the number of finished and of all units.

    Returns
    -------
    Evaluation
        ``frame()`` has one row per method, model and group; ``per_class()`` one per
        class for the task "classwise"; ``scores()`` Brier score and log-loss with their
        split. Estimates that debiasing took below 0 are given as 0.

    See Also
    --------
    calibration_error : one estimate as a number.
    Predictions.from_table : predictions in files, data frames and databases.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> print(cb.evaluate(y, p, methods=["es15", "ew15"]))
    es15 (binary): 0.0819 [0.0819, 0.1006], n = 1797
    ew15 (binary): 0.0973 [0.0928, 0.1006], n = 1797

    Columns of a table, one model each:

    >>> preds = cb.Predictions.from_table(
    ...     cb.datasets.BINARY_FILE, y="even", p=["forest", "bayes"]
    ... )
    >>> print(cb.evaluate(preds, methods="es15"))
    forest  es15 (binary): 0.0819 [0.0819, 0.1006], n = 1797
    bayes  es15 (binary): 0.0876 [0.0746, 0.1028], n = 1797
    """
    estimator = Estimator(
        alpha=alpha,
        debias=debias,
        confidence=confidence,
        interval=interval,
        n_resamples=n_resamples,
        random_state=random_state,
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
    preds.store.check_no_clusters("evaluate")
    found = assess_units(preds, check_methods(methods), estimator, progress)
    return Evaluation(tuple(found), float(alpha), confidence)


def assess_units(
    preds: Predictions,
    methods: tuple[str, ...],
    estimator: Estimator,
    progress: Callable[[int, int], None] | None,
) -> list[Assessment]:
    """Apply every method to every unit, but for groups that are too small for it."""
    units = preds.store.units()
    found: list[Assessment] = []
    left_out = SkippedGroups()
    with one_blas_thread():  # taking the limit costs as much as a small fit
        for done, (unit, fitted) in enumerate(
            _fitted_units(units, methods, estimator, left_out)
        ):
            if progress is not None:
                progress(done, len(units))
            if not unit.group.key:
                warn_if_small(fitted.events.samples[0])
            key = {"model": unit.model} if preds.store.named else {}
            key |= result_key(unit.group.key)
            try:
                possible = _possible(fitted, methods, str(unit.group), left_out)
                found.append(assess(fitted, possible, key))
            except (TooFewRowsError, WeightError) as error:
                if not unit.group.key:
                    raise
                left_out.add(str(unit.group), error)
    left_out.warn()
    if not found:
        raise OptionError(left_out.nothing_left)
    return found


def assess_one(fitted: FittedTasks, methods: tuple[str, ...]) -> Assessment:
    """Apply the methods that there are enough rows for, and warn of the others."""
    left_out = SkippedGroups()
    possible = _possible(fitted, methods, "", left_out)
    left_out.warn()
    return assess(fitted, possible, {})


def _fitted_units(
    units: Sequence[Unit],
    methods: tuple[str, ...],
    estimator: Estimator,
    left_out: SkippedGroups,
) -> Iterator[tuple[Unit, FittedTasks]]:
    """Read units, as many at once as are small together; leave out what cannot be."""
    batch: list[tuple[Unit, FittedTasks]] = []
    rows = 0
    for unit in units:
        try:
            fitted = FittedTasks(unit.read(), estimator)
        except (TooFewRowsError, WeightError) as error:
            if not unit.group.key:
                raise
            left_out.add(str(unit.group), error)
            continue
        batch.append((unit, fitted))
        rows += fitted.events.samples[0].n
        if len(batch) == UNITS_AT_ONCE or rows > ROWS_AT_ONCE:
            work_ahead([fitted for _, fitted in batch], methods)
            yield from batch
            batch, rows = [], 0
    work_ahead([fitted for _, fitted in batch], methods)
    yield from batch


def _possible(
    fitted: FittedTasks, methods: tuple[str, ...], group: str, left_out: SkippedGroups
) -> list[str]:
    """Return the methods that a unit has enough rows for; raise where none is."""
    failed: dict[str, TooFewRowsError] = {}
    for method in methods:
        try:
            fitted.estimates(method)
        except TooFewRowsError as error:
            failed[method] = error
    possible = [method for method in methods if method not in failed]
    if not possible:
        raise failed[methods[0]]
    for method, reason in failed.items():
        left_out.add(group, reason, method_name(method))
    return possible
