"""The calibration summary: what a validation study reports, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from calibrant.core.defaults import DEFAULT_CONFIDENCE
from calibrant.core.formatting import format_estimate, format_interval, format_limits
from calibrant.core.parameters import check_choice, whole_seed
from calibrant.core.tasks import check_one_event
from calibrant.core.text_tables import TableFormat, frame_table, text_table
from calibrant.core.warn import warn
from calibrant.core.wording import visible
from calibrant.engines.groups import format_group_value
from calibrant.exceptions import SmallSampleWarning, UnknownNameError
from calibrant.measures.estimate import ErrorSettings
from calibrant.measures.evaluation import over_units
from calibrant.measures.pooled_summary import pool_units
from calibrant.measures.result_tables import (
    MAX_NAMED,
    as_columns,
)
from calibrant.numerics.summary_measures import (
    Measure,
    SampleMeasures,
    Smoother,
)
from calibrant.predictions.predictions import as_predictions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from calibrant.core.array_types import ArrayLike, Frame, Scale, Seed, Task
    from calibrant.core.text_tables import TextFormat
    from calibrant.measures.estimate import FittedTasks
    from calibrant.predictions.predictions import Predictions

DECIMALS = dict.fromkeys(("in-the-large", "intercept", "slope", "O:E"), 2)
"""Of printed values; three for all others, more if the interval is narrow."""
MAX_DECIMALS = 6
MEASURES = {
    "in-the-large": "intercept with the slope fixed at 1; ideal 0",
    "intercept": "intercept with the slope estimated; ideal 0",
    "slope": "slope of labels on logits; ideal 1, below 1 if too extreme",
    "O:E": "observed over expected number of events; ideal 1",
    "ICI": "mean distance between curve and predictions",
    "E50": "median distance",
    "E90": "90th percentile of the distance",
    "Emax": "maximum distance",
    "Brier": "mean squared error",
    "scaled Brier": "1 - Brier / Brier of the base rate",
    "log-loss": "mean of minus the log-probability of the label",
    "Nagelkerke R2": "explained variation, of predictions as they are",
    "AUROC": "area under the ROC curve",
}
"""All measures in order, and what each is."""
SIDE_BY_SIDE = 3
"""A printed table has at most so many models or groups; more go below."""
CURVES: dict[Smoother, str] = {
    "smooth": "a smooth curve fitted by marginal likelihood",
    "loess": "loess",
    "lowess": "lowess",
}
"""What the curves are called from which distances are computed."""
SENTENCE_ORDER = ("in-the-large", "slope", "O:E", "ICI")
"""Measures of the sentence, of which the first with an interval names its level."""


@dataclass(frozen=True)
class UnitSummary:
    """The measures of one model, in one group of rows if there are any.

    Attributes
    ----------
    key : dict
        Model and group; empty if there is one model without groups.
    n : int
        Number of rows.
    events, total : float
        Number of events, and of rows; sums of weights where rows have any.
    measures : tuple of Measure
        One per measure.
    clusters : int or None
        Number of clusters of rows, if there are any.
    cluster_column : str
        Their column; empty where it has no name.
    """

    key: dict[str, Any]
    n: int
    events: float
    total: float
    measures: tuple[Measure, ...]
    clusters: int | None = None
    cluster_column: str = ""

    def __getitem__(self, name: str) -> Measure:
        found = next((one for one in self.measures if one.measure == name), None)
        if found is None:
            raise UnknownNameError.among("measure", name, MEASURES)
        return found

    @property
    def name(self) -> str:
        """Return what tables call the model and group."""
        return ", ".join(map(format_group_value, self.key.values()))

    @property
    def size(self) -> str:
        """Return the number of rows and of events, as text."""
        share = 100.0 * self.events / self.total
        of = "" if self.clusters is None else f" rows from {self.clusters:,} clusters"
        return f"n = {_count(self.total)}{of}, {_events(self)} ({share:.3g} %)"

    @property
    def on_diagonal(self) -> bool:
        """Tell whether the curve is the diagonal, to the digits that are printed."""
        mean = self["ICI"]
        return round(mean.value, _places(mean)) == 0.0 and not mean.low > 0.0


@dataclass(frozen=True, repr=False)
class CalibrationSummary:
    """What a validation study reports about predictions, with intervals.

    Attributes
    ----------
    units : tuple of UnitSummary
        One per model and group.
    confidence : float or None
        Level of the intervals; None where there are none.
    smoother : {"smooth", "loess", "lowess"}
        The curve from which ICI, E50, E90 and Emax were computed.

    See Also
    --------
    summary : makes summaries.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("logistic")
    >>> result = cb.summary(y, p)
    >>> print(result.table())
    measure                         value
    in-the-large     0.00 (-0.22 to 0.22)
    intercept       -0.01 (-0.19 to 0.18)
    slope             0.84 (0.77 to 0.93)
    O:E            1.000 (0.976 to 1.024)
    ICI            0.011 (0.000 to 0.024)
    E50            0.008 (0.001 to 0.013)
    E90            0.027 (0.001 to 0.070)
    Emax           0.078 (0.001 to 0.382)
    Brier          0.062 (0.054 to 0.070)
    scaled Brier   0.751 (0.718 to 0.785)
    log-loss       0.229 (0.180 to 0.277)
    Nagelkerke R2  0.807 (0.755 to 0.858)
    AUROC          0.973 (0.967 to 0.980)
    n                               1,797
    events                            891
    """

    units: tuple[UnitSummary, ...]
    confidence: float | None
    smoother: Smoother

    def frame(self) -> Frame:
        """Return one row per measure (and model, and group) as columns.

        Returns
        -------
        dict of ndarray
            Columns: model and group where there are several, measure, value, low, high,
            n.
        """
        return as_columns(
            [
                {
                    **unit.key,
                    "measure": one.measure,
                    "value": one.value,
                    "low": one.low,
                    "high": one.high,
                    "n": unit.n,
                }
                for unit in self.units
                for one in unit.measures
            ]
        )

    def pooled(self) -> Frame:
        """Return the mean over groups by random-effects meta-analysis, as columns.

        In-the-large, intercept and slope are pooled as they are, O:E as its logarithm
        and AUROC as its logit. The variance between groups is estimated by restricted
        maximum likelihood; the interval is that of Hartung and Knapp; a new group is
        expected within the prediction interval, that of Nagashima et al. (2019). Groups
        without a standard error are omitted.

        Returns
        -------
        dict of ndarray
            Columns: model where there are several, measure, value, low, high,
            prediction_low, prediction_high, tau (standard deviation between groups, on
            the scale of pooling), groups (their number), n (rows).
        """
        return as_columns(pool_units(self.units, self.confidence or DEFAULT_CONFIDENCE))

    def table(self, format: TableFormat = "text") -> str:  # noqa: A002
        """Return a table with one row per measure, one column per model and group.

        Parameters
        ----------
        format : {"text", "markdown", "latex", "csv"}
            How it is written; LaTeX needs the package booktabs. CSV has the rows of
            `frame` instead, as ``calibrant summary --format csv`` prints them.

        Returns
        -------
        str
            Each value with its interval in parentheses; CSV has separate columns for
            the limits, and all digits.
        """
        check_choice(format, get_args(TableFormat), name="format")
        if format == "csv":
            return frame_table(self.frame(), format)
        level = "" if self.confidence is None else f" ({_level(self.confidence)})"
        return _table(self.units, format, "" if format == "text" else level)

    def sentence(self) -> str:
        """Return a sentence for a manuscript, one per model and group.

        Returns
        -------
        str
            In the terms that the TRIPOD statement uses. It names the curve that
            distances are computed from, and says what could not be estimated.
        """
        level = "" if self.confidence is None else f"{_level(self.confidence)} "
        curve = CURVES[self.smoother]
        return "\n".join(_sentence(unit, curve, level) for unit in self.units)

    def __str__(self) -> str:
        level = ""
        if self.confidence is not None:
            level = f" with {_level(self.confidence)}s"
        if len(self.units) == 1:
            (only,) = self.units
            rows = [
                [
                    one.measure,
                    format_estimate(one.value, _places(one)),
                    format_limits(one.low, one.high, _places(one)),
                    MEASURES[one.measure],
                ]
                for one in only.measures
            ]
            head = ["measure", "value", "interval", "what it is"]
            table = text_table(head, rows, [False, True, True, False])
            head_line = f"Calibration summary{level}: {only.size}"
            return "\n".join([head_line, table, *self._notes()])
        parts = [
            _table(self.units[start : start + SIDE_BY_SIDE], "text")
            for start in range(0, len(self.units), SIDE_BY_SIDE)
        ]
        return "\n\n".join([f"Calibration summary{level}", *parts, *self._notes()])

    def _notes(self) -> list[str]:
        """Return what is to be known about the curves, as one line if there is any."""
        close = [unit.name for unit in self.units if unit.on_diagonal]
        if not close:
            return []
        whose = f" of {'; '.join(close[:MAX_NAMED])}" if close[0] else ""
        whose += f" and {len(close) - MAX_NAMED} more" * (len(close) > MAX_NAMED)
        many = len(close) > 1
        return [
            f"The curve{'s' * many}{whose} cannot be distinguished from the diagonal."
        ]

    def __repr__(self) -> str:
        return f"<CalibrationSummary>\n{self}"


def _level(confidence: float) -> str:
    return f"{100 * confidence:g} % interval"


def _places(*values: Measure) -> int:
    """Return how many decimals values need: two digits of the narrowest interval."""
    least = DECIMALS.get(values[0].measure, 3)
    widths = [one.high - one.low for one in values]
    digits = [1 - np.floor(np.log10(w)) for w in widths if 0.0 < w < np.inf]
    return int(np.clip(max(digits, default=least), least, MAX_DECIMALS))


def _count(number: float) -> str:
    """Return a number of rows, or a sum of weights, without an exponent."""
    return f"{number:,.10g}"


def _events(unit: UnitSummary) -> str:
    """Return the number of events with its noun."""
    return f"{_count(unit.events)} event{'s' * (unit.events != 1.0)}"


def _with_intervals(
    measures: Sequence[Measure],
    places: Sequence[int],
    level: str = "",
    first: str | None = None,
) -> list[str]:
    """Return measures with their intervals; the first one names their level."""
    return [
        format_interval(
            one.value, one.low, one.high, digits, level if one.measure == first else ""
        )
        for one, digits in zip(measures, places, strict=True)
    ]


def _sentence(unit: UnitSummary, curve: str, level: str) -> str:
    """Return what a manuscript says of a model; the level stands at one interval."""
    first = next((m for m in SENTENCE_ORDER if not isnan(unit[m].low)), None)
    places = [_places(one) for one in unit.measures]
    texts = _with_intervals(unit.measures, places, level, first)
    pairs = zip(unit.measures, texts, strict=True)
    number = {one.measure: text for one, text in pairs}

    def clause(what: str, name: str) -> str:
        if isnan(unit[name].value):
            return f"{what} could not be estimated"
        return f"{what} was {number[name]}"

    whose = f"For {unit.name}, in" if unit.name else "In"
    size = f"{_count(unit.total)} observation{'s' * (unit.total != 1.0)}"
    if unit.clusters is not None:
        by = f" ({visible(unit.cluster_column)})" if unit.cluster_column else ""
        size += f" from {unit.clusters:,} clusters{by},"
    slope = clause("the calibration slope", "slope")
    if not isnan(unit["intercept"].value):
        slope += f" with intercept {number['intercept']}"
    diagonal = ""
    if unit.on_diagonal:
        diagonal = "; this curve could not be distinguished from the diagonal"
    return (
        f"{whose} {size} with {_events(unit)}, "
        f"{clause('calibration-in-the-large', 'in-the-large')}, {slope}, and "
        f"{clause('the ratio of observed to expected events', 'O:E')}. Based on "
        f"{curve}, the integrated calibration index was {number['ICI']}, "
        f"E50 {number['E50']}, E90 {number['E90']} and Emax {number['Emax']}"
        f"{diagonal}. "
        f"{clause('The c-statistic', 'AUROC')}, {clause('the Brier score', 'Brier')} "
        f"and {clause('the scaled Brier score', 'scaled Brier')}."
    )


def _table(
    units: Sequence[UnitSummary],
    format: TextFormat,  # noqa: A002
    level: str = "",
) -> str:
    rows = []
    for name in MEASURES:
        values = [unit[name] for unit in units]
        places = [_places(*values)] * len(values)
        rows.append([name, *_with_intervals(values, places)])
    rows.append(["n", *(_count(unit.total) for unit in units)])
    if any(unit.clusters is not None for unit in units):
        rows.append(["clusters", *(f"{unit.clusters or 0:,}" for unit in units)])
    rows.append(["events", *(_count(unit.events) for unit in units)])
    head = [f"measure{level}", *(unit.name or "value" for unit in units)]
    return text_table(head, rows, [False, *[True] * len(units)], format)


def summary(  # noqa: PLR0913
    y_true: ArrayLike | Predictions,
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    smoother: Smoother = "smooth",
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
) -> CalibrationSummary:
    """Summarise calibration as validation studies report it, with intervals.

    Calibration in the large, intercept, slope, O:E ratio, ICI, E50, E90 and Emax; and
    Brier score, scaled Brier score, log-loss, Nagelkerke's R2 and AUROC.

    Parameters
    ----------
    y_true : array-like of shape (n,) or Predictions
        Labels: 0 and 1, booleans, or with `pos_label` any two values; classes for
        multi-class tasks. Or `Predictions`, which need no other data.
    y_prob : array-like of shape (n,) or (n, k), or dict
        Predicted probability of the event, or of each class; a dict has those of each
        model.
    smoother : {"smooth", "loess", "lowess"}
        The curve from which ICI, E50, E90 and Emax are computed: the one of the
        reliability diagram, or R's ``loess(y ~ p)`` or ``lowess(p, y, iter = 0)``.
    confidence : float or None
        Level of the intervals; None for no intervals.
    n_resamples : int
        Number of maps that are drawn from the posterior of "smooth".
    task : None, "confidence" or a class
        None: binary. "confidence": the top class and whether it is right. A class, by
        label or column number: that class against the rest.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of 2 counts the row twice.
    groups : array-like of shape (n,), optional
        The group of each row, such as the hospital; each has its own summary.
    clusters : array-like of shape (n,), optional
        Which rows belong together, such as those of one patient: intervals then allow
        for correlated labels within a cluster.
    pos_label : object, optional
        The label that counts as the event.
    labels : sequence, optional
        The label of each column of `y_prob`, in order; by default 0 .. k-1.
    scale : {"prob", "logit", "percent", "logprob"} or dict
        Whether `y_prob` holds probabilities, logits, percentages from 0 to 100, or
        natural logarithms of probabilities; for all models, or for each by name.
    random_state : int, generator or None
        Seeds the maps that are drawn.
    progress : callable, optional
        Called with the number of finished and of all units.

    Returns
    -------
    CalibrationSummary
        ``frame()`` has one row per measure, model and group; ``table()`` and
        ``sentence()`` are for papers; ``pooled()`` has the mean over groups.

    See Also
    --------
    evaluate : the calibration error by several methods.
    ReliabilityDisplay.from_predictions : the curve itself.

    Notes
    -----
    Two intercepts are reported. "in-the-large" has the slope fixed at 1: it says
    whether predictions are too low (above 0) or too high (below 0) on average.
    "intercept" belongs to the line whose "slope" is estimated too; by itself it says
    little.

    Intervals are by profile likelihood for intercept and slope; exact (mid-P) for O:E
    and in-the-large, which depend on the number of events; from the posterior of
    "smooth" for ICI, E50, E90 and Emax, whatever the smoother (only widened to contain
    the value of another one); DeLong's for AUROC, on
    the logit scale with fewer than 30 events or other rows; and Student's, with the
    standard error of a mean, for the scores. With clusters, all but those of the
    posterior have standard errors from sums over clusters, and one degree of freedom
    less than there are clusters with an event, or with other rows. Measures that the
    data do not determine are NaN, with a warning: for example the slope, if predictions
    separate the events from all other rows.

    Predictions of exactly 0 and 1 are treated as rounded by the regressions and the
    curve; in the log-loss, a wrong one costs 36.04.

    References
    ----------
    E. W. Steyerberg (2019). Clinical prediction models. doi:10.1007/978-3-030-16399-0

    ICI, E50, E90 and Emax were defined, with loess as the curve, by

    P. C. Austin, E. W. Steyerberg (2019). The Integrated Calibration Index (ICI) and
    related metrics for quantifying the calibration of logistic regression models.
    Statistics in Medicine 38. doi:10.1002/sim.8281

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> result = cb.summary(y, {"forest": p, "half": p / 2})
    >>> result.frame()["model"].tolist()[::13]
    ['forest', 'half']
    """
    check_choice(smoother, get_args(Smoother), name="smoother")
    settings = ErrorSettings(
        confidence=confidence, n_resamples=n_resamples, random_state=random_state
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
    check_one_event(preds.task, "a summary", aggregated=preds.aggregated)

    def measure(fitted: FittedTasks, *parts: Any) -> UnitSummary:
        column = preds.store.cluster_column
        return summarise_fitted(fitted, smoother, parts[-1], column)

    named = ("measure",)
    units = over_units(preds.store, ("smooth",), settings, progress, measure, named)
    _warn_of_missing(units)
    return CalibrationSummary(tuple(units), confidence, smoother)


def summarise_fitted(
    fitted: FittedTasks,
    smoother: Smoother,
    key: dict[str, Any],
    cluster_column: str = "",
) -> UnitSummary:
    """Return the measures of one event, by fits that may have been made before."""
    settings, estimate = fitted.settings, fitted.estimates("smooth")[0]
    sample = fitted.tasks.samples[0]
    found = SampleMeasures(
        sample,
        smoother,
        (estimate.value, estimate.low, estimate.high),
        settings.confidence,
        settings.n_resamples,
        whole_seed(settings.random_state),
    )
    measures = found.all()
    clusters = None if found.clusters is None else int(found.clusters.max()) + 1
    return UnitSummary(
        key,
        sample.n_data,
        found.logits.events,
        found.logits.total,
        tuple(measures[name] for name in MEASURES),
        clusters,
        cluster_column,
    )


def _warn_of_missing(units: Iterable[UnitSummary]) -> None:
    """Warn once for each reason why values or intervals are missing."""
    measures: dict[str, dict[str, None]] = {}
    places: dict[str, dict[str, None]] = {}
    for unit in units:
        for one in unit.measures:
            if one.missing:
                measures.setdefault(one.missing, {})[one.measure] = None
                places.setdefault(one.missing, {})[unit.name] = None
    for reason, names in measures.items():
        named = [name for name in places[reason] if name]
        where = f" for {'; '.join(named[:MAX_NAMED])}" if named else ""
        more = f" and {len(named) - MAX_NAMED} more" * (len(named) > MAX_NAMED)
        what = ", ".join(names)
        warn(f"no interval for {what}{where}{more}: {reason}.", SmallSampleWarning)
