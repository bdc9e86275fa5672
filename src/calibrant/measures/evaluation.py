"""Several methods at once, with intervals and scores."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING, Any

from calibrant._validation.sample import warn_if_small
from calibrant.exceptions import OptionError, SmallSampleWarning, TooFewRowsError
from calibrant.measures.estimate import Estimate, Estimator
from calibrant.measures.events import Reading
from calibrant.measures.fitted import FittedEvents
from calibrant.measures.frames import columns_of
from calibrant.measures.proper import ScoreSplit, mean_splits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from calibrant._typing import ArrayLike, Debias, Frame, Scale, Seed, Task
    from calibrant.measures.estimate import Interval

DEFAULT_METHODS = ("smooth", "pl", "es15", "es-sweep", "ew15")


@dataclass(frozen=True)
class Assessment:
    """What was found for one set of predictions: a model, or a group of its rows.

    Attributes
    ----------
    estimates : tuple of Estimate
        One per method.
    classes : tuple of Estimate
        One per method and class, where the task is "classwise".
    scores : tuple of ScoreSplit
        Brier score and log-loss.
    base_rate, mean_prob : float
        How often the event happened, and how often it was predicted on average.
    key : dict
        What tells this set from others: model, group.
    """

    estimates: tuple[Estimate, ...]
    classes: tuple[Estimate, ...]
    scores: tuple[ScoreSplit, ...]
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

    def to_html(self) -> str:
        """Return a page of verdicts and numbers that needs no network.

        An evaluation keeps no rows, so the page has no diagram, checks or repairs; a
        page with them is made by `report_predictions` or `report_table`.
        """
        from calibrant.report.evaluations import evaluation_page

        return evaluation_page(self)

    def _repr_html_(self) -> str:
        from calibrant.report.evaluations import evaluation_table

        return evaluation_table(self)

    def __repr__(self) -> str:
        return f"<Evaluation, alpha = {self.alpha:g}>\n{self}"

    def __str__(self) -> str:
        lines = [
            "  ".join([*(str(v) for v in found.key.values()), str(estimate)])
            for found in self.assessments
            for estimate in found.estimates
        ]
        return "\n".join(lines)


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
    fitted: FittedEvents,
    methods: Sequence[str],
    key: dict[str, Any],
    *,
    lenient: bool = False,
) -> Assessment:
    """Apply every method to the events of one set of predictions.

    Where `lenient`, methods that need more rows are left out with a warning.
    """
    found = _estimates(fitted, methods, lenient=lenient)
    events = fitted.events
    return Assessment(
        estimates=tuple(rows[0] for rows in found),
        classes=tuple(chain.from_iterable(rows[1:] for rows in found)),
        scores=mean_splits(events),
        base_rate=fmean(s.mean(s.y) for s in events.samples),
        mean_prob=fmean(s.mean(s.p) for s in events.samples),
        key=key,
    )


def _estimates(
    fitted: FittedEvents, methods: Sequence[str], *, lenient: bool
) -> list[tuple[Estimate, ...]]:
    found, left_out = [], []
    for method in methods:
        try:
            found.append(fitted.estimates(method))
        except TooFewRowsError:
            if not lenient:
                raise
            left_out.append(method)
    if left_out:
        rows = fitted.events.samples[0].total
        warnings.warn(
            f"{' and '.join(left_out)} left out: {rows:g} rows are too few for so many "
            f"bins. Name methods with fewer, such as es{max(int(rows) // 5, 1)}.",
            SmallSampleWarning,
            stacklevel=4,
        )
    return found


def check_methods(methods: Sequence[str] | str) -> tuple[str, ...]:
    """Return the names of methods as a tuple; one name alone will do."""
    names = (methods,) if isinstance(methods, str) else tuple(methods)
    if not names:
        raise OptionError("methods must name at least one method.")
    return names


def evaluate(  # noqa: PLR0913
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    methods: Sequence[str] | str = DEFAULT_METHODS,
    alpha: float = 1,
    debias: Debias = "auto",
    task: Task = None,
    confidence: float | None = 0.9,
    interval: Interval = "auto",
    n_resamples: int = 1000,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale = "prob",
    random_state: Seed = 0,
) -> Evaluation:
    """Estimate the calibration error by several methods, with intervals.

    Parameters
    ----------
    y_true, y_prob, alpha, debias, task, sample_weight, pos_label, labels, scale
        As in `calibration_error`.
    methods : sequence of str
        Which estimates; see `calibrator_names`. Also "kce". Of the default ones, those
        that have more bins than there are rows are left out with a warning.
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
    random_state : int, generator or None
        Seeds cross-validation and resampling.

    Returns
    -------
    Evaluation
        ``frame()`` has one row a method; ``per_class()`` one a class for the task
        "classwise"; ``scores()`` Brier score and log-loss with their split. Estimates
        that debiasing took below 0 are given as 0.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> print(cb.evaluate(y, p, methods=["es15", "ew15"]))
    es15 (binary): 0.0819 [0.0819, 0.0999], n = 1797
    ew15 (binary): 0.0973 [0.0934, 0.0999], n = 1797
    """
    reading = Reading(task=task, pos_label=pos_label, labels=labels, scale=scale)
    estimator = Estimator(
        alpha=alpha,
        debias=debias,
        confidence=confidence,
        interval=interval,
        n_resamples=n_resamples,
        random_state=random_state,
    )
    events = reading.events(y_true, y_prob, sample_weight)
    warn_if_small(events.samples[0], stacklevel=3)
    lenient = methods is DEFAULT_METHODS  # nobody asked for so many bins
    fitted = FittedEvents(events, estimator)
    found = assess(fitted, check_methods(methods), {}, lenient=lenient)
    return Evaluation((found,), float(alpha), confidence)
