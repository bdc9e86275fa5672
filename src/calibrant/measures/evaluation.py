"""Several methods at once, with intervals and scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from html import escape
from itertools import chain
from math import isfinite
from statistics import fmean
from typing import TYPE_CHECKING, Any

from calibrant.calibrators.map_warnings import reversal_of, warn_of_reversals
from calibrant.calibrators.registry import calibrator_names, method_name
from calibrant.calibrators.wrappers import is_calibrator, name_apart
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHODS
from calibrant.core.sample import warn_if_small
from calibrant.core.tasks import CANONICAL
from calibrant.core.text_tables import frame_table
from calibrant.core.threads import one_blas_thread
from calibrant.engines.groups import Group
from calibrant.exceptions import Argument, OptionError, TooFewRowsError
from calibrant.measures.estimate import ErrorSettings, Estimate, FittedTasks
from calibrant.measures.result_tables import (
    Result,
    SkippedGroups,
    as_columns,
    result_key,
)
from calibrant.measures.score_decomposition import (
    Splits,
    mean_splits,
    prepare_splits,
    small_samples,
)
from calibrant.numerics.isotonic import SortedSamples
from calibrant.numerics.sample_cache import fill_cache
from calibrant.numerics.smooth_calibration_test import smooth_p_values
from calibrant.numerics.smooth_curve_fits import fit_curves
from calibrant.predictions.predictions import as_predictions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from calibrant.core.array_types import ArrayLike, Debias, Frame, Scale, Seed, Task
    from calibrant.core.tasks import BinaryTasks
    from calibrant.core.text_tables import TableFormat
    from calibrant.numerics.classical_tests import Reversal
    from calibrant.predictions.aggregates import AggregatedPredictions, Unit
    from calibrant.predictions.in_memory import RowPredictions
    from calibrant.predictions.predictions import Predictions

UNITS_AT_ONCE, ROWS_AT_ONCE = 1024, 65_536
"""The maximum number of units that are read before any is evaluated, and of rows."""


@dataclass(frozen=True)
class Assessment:
    """The errors and scores of one unit: a model, or a group of its rows.

    Attributes
    ----------
    estimates : tuple of Estimate
        One per method.
    classes : tuple of Estimate
        One per method and class, where the task is "classwise".
    base_rate, mean_prob : float
        How often the event happened, and how often it was predicted on average.
    key : dict
        Model and group of this unit.
    score_source : BinaryTasks or tuple of ScoreDecomposition
        What `scores` are computed from: the rows; or, where the task has several
        events whose rows would take much memory, the scores themselves.
    """

    estimates: tuple[Estimate, ...]
    classes: tuple[Estimate, ...]
    base_rate: float
    mean_prob: float
    key: dict[str, Any]
    score_source: BinaryTasks | Splits = field(repr=False, compare=False)

    @cached_property
    def scores(self) -> Splits:
        """Return Brier score and log-loss; they need all rows in order: on demand."""
        source = self.score_source
        return source if isinstance(source, tuple) else mean_splits(source)


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Calibration errors with intervals, one row per method.

    Attributes
    ----------
    assessments : tuple of Assessment
        One per model and group.
    alpha, confidence : float
        Exponent of the error and level of the intervals.

    See Also
    --------
    evaluate : makes evaluations.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> result = evaluate(y, p, methods=["es15", "ew15"], confidence=None)
    >>> result.frame()["value"].round(4)
    array([0.0819, 0.0973])
    >>> result.scores()["brier"].round(4)
    array([0.0277])
    """

    assessments: tuple[Assessment, ...]
    alpha: float
    confidence: float | None

    def frame(self) -> Frame:
        """Return one row per method (and model, and group) as columns.

        Returns
        -------
        dict of ndarray
            Columns: model and group where there are several, method, task, value, low,
            high, n, debiased, bins.
        """
        return self._estimate_frame("estimates")

    def per_class(self) -> Frame:
        """Return one row per method and class, for the task "classwise".

        Returns
        -------
        dict of ndarray
            The columns of `frame`, with the class as the task.
        """
        return self._estimate_frame("classes")

    def _estimate_frame(self, kind: str) -> Frame:
        names = [f.name for f in fields(Estimate)]
        return as_columns(
            [
                {**one.key, **{name: getattr(estimate, name) for name in names}}
                for one in self.assessments
                for estimate in getattr(one, kind)
            ]
        )

    def scores(self) -> Frame:
        """Return one row per model and group: rates, and the scores with their parts.

        Returns
        -------
        dict of ndarray
            Columns: model and group where there are several, n, base_rate, mean_prob;
            brier and log_loss, each with its calibration and refinement.
        """
        sources = (one.score_source for one in self.assessments)
        prepare_splits(one for one in sources if not isinstance(one, tuple))
        rows = []
        for one in self.assessments:
            row = {**one.key, "n": one.estimates[0].n, "base_rate": one.base_rate}
            row["mean_prob"] = one.mean_prob
            for part in one.scores:
                name = part.name.replace("-", "_")
                row[name] = part.score
                row[f"{name}_calibration"] = part.calibration
                row[f"{name}_refinement"] = part.refinement
            rows.append(row)
        return as_columns(rows)

    def table(self, format: TableFormat = "text") -> str:  # noqa: A002
        """Return the rows of `frame` as a table, as ``calibrant evaluate`` prints them.

        Parameters
        ----------
        format : {"text", "markdown", "latex", "csv"}
            How it is written; LaTeX needs the package booktabs.

        Returns
        -------
        str
            Numbers with four decimals, and a hyphen where a number is missing; CSV
            has all digits, and nan.
        """
        return frame_table(self.frame(), format)

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
        return "\n".join(
            "  ".join([*(str(v) for v in one.key.values()), str(estimate)])
            for one in self.assessments
            for estimate in one.estimates
        )


def _html_text(value: Any) -> str:
    """Return a value as a cell of a table, numbers with four decimals."""
    if not isinstance(value, float):
        return escape(str(value))
    return f"{value:.4f}" if isfinite(value) else "\N{EN DASH}"


def evaluate(  # noqa: PLR0913
    y_true: ArrayLike | Predictions,
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    methods: Sequence[str] | str = DEFAULT_METHODS,
    alpha: float = 1,
    debias: Debias = "auto",
    confidence: float | None = DEFAULT_CONFIDENCE,
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
        model. With `task` None, two columns are those of `predict_proba`.
    methods : str, calibrator, or sequence of them
        Which estimates; see `calibrator_names`. Also "kce", and any object with
        ``fit(p, y)`` and ``transform(p)``, such as scikit-learn's calibrators. Methods
        with more bins than there are rows are skipped with a warning, unless no
        other remains.
    alpha : float
        Exponent of the error: 1 for the absolute, 2 for the squared error.
    debias : {"auto", True, False}
        "auto" subtracts the estimated bias if it is known for the method; False gives
        the raw, classical value.
    confidence : float or None
        Level of the intervals; None for no intervals. Ends are quantiles of the errors
        of maps drawn from the posterior of "smooth", whichever method gives the
        estimate; the lower end is 0 where `calibration_test` is not significant.
        Intervals lie within [0, 1] and contain the estimate.
    n_resamples : int
        Number of maps drawn for the intervals.
    task : None, "confidence", "classwise", "canonical", "multilabel", or a class
        None: binary. "confidence" or "top-label": the top class and whether it is
        right. A class, by label or column number: that class against the rest.
        "classwise": the mean over classes. "canonical": the whole vector of class
        probabilities, as in `calibration_error`; without intervals, and by default
        with "smooth" only, since bins are of one event. "multilabel": the mean over
        labels of which a row can have several, with a matrix of 0 and 1 as `y_true`.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of 2 counts the row twice.
    groups : array-like of shape (n,), optional
        The group of each row; groups are evaluated separately.
    clusters : array-like of shape (n,), optional
        Which rows belong together, such as those of one patient: intervals and the
        curve of "smooth" then allow for correlated labels within a cluster.
    pos_label : object, optional
        The label that counts as the event.
    labels : sequence, optional
        The label of each column of `y_prob`, in order; by default 0 .. k-1.
    scale : {"prob", "logit", "percent", "logprob"} or dict
        Whether `y_prob` holds probabilities, logits, percentages from 0 to 100, or
        natural logarithms of probabilities; for all models, or for each by name.
    random_state : int, generator or None
        Seeds cross-validation, and the maps drawn for intervals.
    progress : callable, optional
        Called with the number of finished and of all units.

    Returns
    -------
    Evaluation
        ``frame()`` has one row per method, model and group; ``per_class()`` one per
        class for the task "classwise"; ``scores()`` Brier score and log-loss with their
        split, means over classes for "classwise" and "canonical". Negative debiased
        estimates are given as 0.

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
    chosen = check_methods(methods)
    settings = ErrorSettings(
        alpha=alpha,
        debias=debias,
        confidence=confidence,
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
    if chosen == DEFAULT_METHODS and preds.task == CANONICAL:
        known = calibrator_names("multi-class")
        chosen = tuple(name for name in chosen if name in known)
    assess = partial(_assess, chosen)
    assessments = over_units(preds.store, chosen, settings, progress, assess)
    return Evaluation(tuple(assessments), float(alpha), confidence)


def check_methods(methods: Any) -> tuple[Any, ...]:
    """Return methods as a tuple, also where there is only one."""
    alone = isinstance(methods, str) or not isinstance(methods, Iterable)
    alone = alone or (not isinstance(methods, list | tuple) and is_calibrator(methods))
    names = (methods,) if alone else tuple(methods)
    if not names:
        raise OptionError(Argument("methods"), " must name at least one method.")
    if not all(isinstance(name, str) for name in names):
        return name_apart(names)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise OptionError(Argument("methods"), f" must differ; {twice!r} is repeated.")
    return names


def assess_one(fitted: FittedTasks, methods: tuple[str, ...]) -> Assessment:
    """Apply the methods that there are enough rows for, and warn of the others."""
    skipped = SkippedGroups()
    assessment = _assess(methods, fitted, Group({}, slice(None)), skipped, {})
    skipped.warn()
    return assessment


def over_units(
    store: RowPredictions | AggregatedPredictions,
    methods: tuple[str, ...],
    settings: ErrorSettings,
    progress: Callable[[int, int], None] | None,
    measure: Callable[[FittedTasks, Group, SkippedGroups, dict[str, Any]], Result],
    reserved: Iterable[str] = (),
) -> list[Result]:
    """Return what is measured of each unit, but for groups that are too small.

    `measure` also gets model and group by the names that results have for them; no
    column of groups may have one of the `reserved` names.
    """
    results: list[Result] = []
    skipped, units, named = SkippedGroups(), store.units(), store.named
    reversals: dict[str, Reversal] = {}
    tested = 0
    with one_blas_thread():  # setting the limit costs as much as a small fit
        pairs = fitted_units(units, methods, settings, skipped)
        for done, (unit, fitted) in enumerate(pairs):
            if progress is not None:
                progress(done, len(units))
            key = {"model": unit.model} if named else {}
            key |= result_key(unit.group.key, reserved)
            first = fitted.tasks.samples[0]
            if not unit.group.key:
                warn_if_small(first)
            if fitted.tasks.task == "binary":
                tested += 1
                if (found := reversal_of(first)) is not None:
                    names = key.get("model"), str(unit.group)
                    reversals[", ".join(filter(None, names))] = found
            with skipped.skipping(unit.group):
                results.append(measure(fitted, unit.group, skipped, key))
    warn_of_reversals(reversals, tested)
    return skipped.checked(results)


def _assess(
    methods: tuple[str, ...],
    fitted: FittedTasks,
    group: Group,
    skipped: SkippedGroups,
    key: dict[str, Any],
) -> Assessment:
    """Apply the methods that a unit has enough rows for; raise where none is."""
    results: list[tuple[Estimate, ...]] = []
    failed: dict[str, TooFewRowsError] = {}
    for method in methods:
        try:
            results.append(fitted.estimates(method))
        except TooFewRowsError as error:
            failed[method_name(method)] = error
    if not results:
        raise next(iter(failed.values()))
    for name, reason in failed.items():
        skipped.add(str(group), reason, name)
    tasks, samples = fitted.tasks, fitted.tasks.samples
    return Assessment(
        estimates=tuple(rows[0] for rows in results),
        classes=tuple(chain.from_iterable(rows[1:] for rows in results)),
        base_rate=fmean(s.mean(s.y) for s in samples),
        mean_prob=fmean(s.mean(s.p) for s in samples),
        key=key,
        score_source=tasks.without_fits() if len(samples) == 1 else mean_splits(tasks),
    )


def fitted_units(
    units: Sequence[Unit],
    methods: tuple[str, ...],
    settings: ErrorSettings,
    skipped: SkippedGroups,
) -> Iterator[tuple[Unit, FittedTasks]]:
    """Read units, several small ones at once, and skip those that cannot be read."""
    batch: list[tuple[Unit, FittedTasks]] = []
    rows = 0
    for unit in units:
        with skipped.skipping(unit.group):
            fitted = FittedTasks(unit.read(), settings)
            batch.append((unit, fitted))
            rows += fitted.tasks.samples[0].n
        if len(batch) == UNITS_AT_ONCE or rows > ROWS_AT_ONCE:
            _prepare_small_units([fitted for _, fitted in batch], methods)
            yield from batch
            batch, rows = [], 0
    _prepare_small_units([fitted for _, fitted in batch], methods)
    yield from batch


def _prepare_small_units(fitted: Sequence[FittedTasks], methods: Sequence[str]) -> None:
    """Compute for all small units at once what their estimates start from.

    Ten thousand groups of ten rows are quick to compute, but going through them one by
    one costs a millisecond of calls each. Results are cached on the samples.
    """
    samples = small_samples([one.tasks for one in fitted])
    if not samples:
        return
    cells = SortedSamples.of(samples).cells
    fill_cache("few cells", samples, cells)
    if "smooth" in methods or fitted[0].settings.confidence is not None:
        fill_cache("smooth test", samples, smooth_p_values(cells))
        fill_cache("smooth curve", samples, fit_curves(samples))
