"""The reliability diagram of one set of predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np

from calibrant.calibrators.registry import find_binary, method_name
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHOD
from calibrant.core.parameters import check_choice, check_count, whole_seed
from calibrant.core.sample import warn_if_small
from calibrant.core.tasks import BinaryTasks, check_one_event
from calibrant.core.threads import one_blas_thread
from calibrant.displays.diagram_data import (
    NO_POINTS,
    PROB_LIMITS,
    AxesKind,
    Band,
    BandKind,
    Histogram,
    Limits,
    Points,
    axis_limits,
    axis_names,
    band_of,
    bin_columns,
    choose_axes,
    data_range,
    has_bins,
    histogram_of,
    map_points,
    picked_instances,
    table_of,
    true_points,
)
from calibrant.displays.statistics import Statistics
from calibrant.exceptions import OptionError, Setting
from calibrant.measures.estimate import ErrorSettings, Estimate, FittedTasks
from calibrant.predictions.predictions import as_predictions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from calibrant.calibrators.fits import Fit
    from calibrant.core.array_types import (
        ArrayLike,
        Debias,
        FloatVector,
        Frame,
        Scale,
        Seed,
        Space,
        Task,
        Tops,
    )
    from calibrant.core.sample import BinarySample
    from calibrant.displays.style import StyleName
    from calibrant.numerics.binning import BinTable
    from calibrant.predictions.predictions import Predictions

Kind: TypeAlias = Literal["curve", "diagonal", "centres", "bars"]
Part: TypeAlias = Literal[
    "bins", "curve", "knots", "band", "histogram", "statistics", "instances", "true_map"
]


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityDisplay:
    """A reliability diagram: an estimated calibration map against the diagonal.

    Made by `from_predictions` or `from_estimator`; drawn by `plot`.

    Attributes
    ----------
    table : BinTable
        Sums over the bins of the map; over some bins of equal size, or over each
        distinct prediction where they are few, if the map has no bins.
    bins : dict of ndarray
        What ``frame("bins")`` returns.
    binned : bool
        Whether these are the bins of the map.
    curve : Points
        The estimated calibration map, where there are predictions.
    knots : Points
        Where a map without bins bends, except for its ends; empty for one with bins.
    histogram_data : Histogram
        What the histogram shows.
    statistics : Statistics
        The numbers in the corner: rows, events, calibration error with interval,
        slope and intercept.
    limits : tuple of float
        Where both axes begin and end.
    method, kind, name, histogram
        As given to `from_predictions`.
    axes : {"prob", "logit"}
        How the axes are drawn.
    axis_labels : tuple of str
        Titles of the two axes: the predicted probability and the observed rate.
    instances : Points or None
        Rows for which the distance to the diagonal is drawn.
    true_map : Points or None
        The true calibration map.
    band : Band or None
        Limits of the true map, if the method has any.

    See Also
    --------
    ReliabilityGrid : one diagram per model, class or group.
    calibration_error : the error of the curve that is drawn.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> cb.ReliabilityDisplay.from_predictions(y, p, method="es5", name="forest")
    <ReliabilityDisplay forest, es5: error 0.0526>
    """

    table: BinTable
    bins: Frame
    binned: bool
    curve: Points
    knots: Points
    histogram_data: Histogram
    statistics: Statistics
    method: str
    kind: Kind = "curve"
    axes: Space = "prob"
    limits: Limits = PROB_LIMITS
    histogram: bool = True
    name: str | None = None
    axis_labels: tuple[str, str] = axis_names("binary", None)
    instances: Points | None = None
    true_map: Points | None = None
    band: Band | None = None

    @property
    def error(self) -> float:
        """Return the calibration error, as `evaluate` shows it."""
        return self.statistics.error

    @classmethod
    def from_predictions(  # noqa: PLR0913
        cls,
        y_true: ArrayLike | Predictions,
        y_prob: ArrayLike | None = None,
        *,
        method: str = DEFAULT_METHOD,
        kind: Kind = "curve",
        axes: AxesKind = "prob",
        histogram: bool = True,
        ax: Axes | None = None,
        name: str | None = None,
        true_map: Callable[[FloatVector], FloatVector] | ArrayLike | None = None,
        instances: int = 0,
        tops: Tops | None = None,
        debias: Debias = "auto",
        band: BandKind | None = "point-wise",
        confidence: float = DEFAULT_CONFIDENCE,
        task: Task = None,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        pos_label: Any = None,
        labels: Sequence[Any] | None = None,
        scale: Scale = "prob",
        random_state: Seed = 0,
    ) -> ReliabilityDisplay:
        """Compute the diagram of predictions; drawn at once if `ax` is given.

        Parameters
        ----------
        y_true : array-like of shape (n,) or Predictions
            Labels: 0 and 1, booleans, or with `pos_label` any two values; classes for
            multi-class tasks. Or `Predictions` of one model, which need no other data;
            `ReliabilityGrid` takes those of several.
        y_prob : array-like of shape (n,) or (n, k)
            Predicted probability of the event, or of each class.
        method : str
            Which map; see `calibrator_names`.
        kind : {"curve", "diagonal", "centres", "bars"}
            "curve": the map as a thin line with its band, dots of bins with exact
            intervals, and colours where predictions are too high or too low. The
            paper's diagrams: "bars" as high as the observed rate; "centres": with a
            dot at each bin's mean prediction and a line to the diagonal; "diagonal":
            filled up to the estimated map, so that the mean distance between fill
            and diagonal is the error.
        axes : {"prob", "logit", "auto"}
            How the axes are drawn; "auto" uses logit axes if at least 90 % of the
            predictions are below 0.05, or above 0.95.
        histogram : bool
            Show below how predictions of events and of non-events are distributed.
        ax : matplotlib Axes, optional
            Draw onto these axes now; otherwise call `plot`.
        name : str, optional
            Name of the model, for the title.
        true_map : callable or array-like of shape (n,), optional
            The true calibration map, or its value for each row.
        instances : int
            For how many rows, spread over the bins, to draw the distance to the
            diagonal: that of the true map if given, else of the estimated one.
        tops : {"slope-1", "flat"}, optional
            Tops of the bins; by default those of the method.
        debias : {"auto", True, False}
            "auto" subtracts the estimated bias if it is known for the method; False
            gives the raw, classical error, as in `evaluate`.
        band : {"point-wise", "simultaneous"}, optional
            Limits of the true map for methods that have them, such as "smooth": at
            each prediction, or at all at once; None for no band.
        confidence : float
            Level of the band and of the intervals.
        task : None, "confidence" or a class
            None: binary. "confidence": the top class and whether it is right. A class,
            by label or column number: that class against the rest.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of 2 counts the row twice.
        clusters : array-like of shape (n,), optional
            Which rows belong together, such as those of one patient.
        pos_label : object, optional
            The label that counts as the event.
        labels : sequence, optional
            The label of each column of `y_prob`, in order; by default 0 .. k-1.
        scale : {"prob", "logit", "percent", "logprob"}
            What `y_prob` holds.
        random_state : int, generator or None
            Seeds cross-validation, the band and the choice of instances.

        Returns
        -------
        ReliabilityDisplay
            With `plot` and `frame`.

        Examples
        --------
        >>> import calibrant as cb
        >>> p, y = cb.datasets.load_binary("forest")
        >>> display = cb.ReliabilityDisplay.from_predictions(y, p, method="ew5")
        >>> display.frame()["gap"].round(2)
        array([-0.07, -0.22,  0.09,  0.28,  0.06])
        """
        check_one_event(task, "a single diagram")
        preds = as_predictions(
            y_true,
            y_prob,
            task=task,
            sample_weight=sample_weight,
            clusters=clusters,
            pos_label=pos_label,
            labels=labels,
            scale=scale,
        )
        tasks = preds.store.single_tasks("ReliabilityDisplay", "ReliabilityGrid")
        check_one_event(tasks.task, "a single diagram", aggregated=preds.aggregated)
        warn_if_small(tasks.samples[0])
        rows = None if true_map is None else preds.store.all_rows()
        display = display_of_sample(
            tasks.samples[0],
            method=method,
            kind=kind,
            axes=axes,
            histogram=histogram,
            name=name,
            axis_labels=axis_names(preds.task, preds.store.origin.event),
            truth=None if rows is None else true_points(true_map, rows),
            instances=instances,
            tops=tops,
            debias=debias,
            band=band,
            confidence=confidence,
            random_state=random_state,
        )
        if ax is not None:
            display.plot(ax)
        return display

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, **options: Any
    ) -> ReliabilityDisplay:
        """Compute the diagram of a fitted scikit-learn classifier.

        Parameters
        ----------
        estimator : classifier
            With ``predict_proba`` and ``classes_``.
        X : array-like of shape (n, n_features)
            Features of the test data.
        y : array-like of shape (n,)
            Labels of the test data.
        **options
            As in `from_predictions`. For a binary classifier without a task,
            `pos_label` defaults to the second of its classes; the axes name it.

        Returns
        -------
        ReliabilityDisplay
            With `plot` and `frame`.

        Examples
        --------
        >>> import calibrant as cb
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = GaussianNB().fit(X[:300], y[:300])
        >>> display = cb.ReliabilityDisplay.from_estimator(
        ...     model, X[300:], y[300:], method="es3"
        ... )
        >>> display.name, round(display.error, 3)
        ('GaussianNB', 0.008)
        """
        if not hasattr(estimator, "predict_proba"):
            raise OptionError(
                f"estimator must have predict_proba; {type(estimator).__name__} has "
                f"none. Pass its probabilities to from_predictions instead."
            )
        prob = np.asarray(estimator.predict_proba(X))
        classes = list(np.asarray(estimator.classes_).tolist())
        options.setdefault("name", type(estimator).__name__)
        if options.get("task") is not None:
            options.setdefault("labels", classes)
            return cls.from_predictions(y, prob, **options)
        if len(classes) != 2:  # noqa: PLR2004
            raise OptionError(
                f"the estimator has {len(classes)} classes; choose a task: ",
                Setting("task", "confidence"),
                " or a class.",
            )
        event = options.setdefault("pos_label", classes[1])
        column = classes.index(check_choice(event, classes, name="pos_label"))
        return cls.from_predictions(y, prob[:, column], **options)

    def frame(self, part: Part = "bins") -> Frame:
        """Return the numbers that `plot` draws.

        Parameters
        ----------
        part : str
            "bins": one row per bin that has rows: its ends, mean prediction, observed
            rate with its exact interval, their difference (gap) and the weight.
            "curve": the estimated map. "band": limits of the true one. "histogram":
            ends, weight and events. "statistics": one row, the numbers in the corner.
            "knots": where a map without bins bends. "instances" and "true_map": empty
            where none were asked for, as is "band" where the method has none.

        Returns
        -------
        dict of ndarray
            Equally long columns.
        """
        check_choice(part, get_args(Part), name="part")
        if part == "bins":
            return dict(self.bins)
        if part == "histogram":
            return self.histogram_data.frame()
        if part == "statistics":
            return self.statistics.frame()
        if part == "band":
            none = {name: np.empty(0) for name in ("p", "low", "high")}
            return none if self.band is None else self.band.frame()
        points: Points | None = getattr(self, part)
        return (points or NO_POINTS).frame()

    def plot(
        self,
        ax: Axes | None = None,
        *,
        style: StyleName = "colour",
        width: float | None = None,
        **parts: Any,
    ) -> Axes:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        style : {"colour", "grey"}
            Colours that are safe for colour-blind readers, or greys for print.
        width : float, optional
            Inches of a new figure: 3.5 for one column of a journal, 7 for two.
        **parts
            Keywords of matplotlib for a part of the diagram, such as
            ``curve={"color": "black"}``, or False to omit it: curve, band, bins,
            over, under, diagonal, grid, events, non_events, statistics, directions,
            title, true_map, instances; of the paper's diagrams also fill, outline,
            gaps.

        Returns
        -------
        matplotlib Axes
            The axes; ``ax.figure.savefig(...)`` writes it, ``ax.set_xlabel(...)``
            renames the axis below the histogram.
        """
        from calibrant.displays.drawing import draw_reliability

        return draw_reliability(self, ax, style, width, parts)

    def __repr__(self) -> str:
        return f"<ReliabilityDisplay {self}>"

    def __str__(self) -> str:
        model = "" if self.name is None else f"{self.name}, "
        return f"{model}{self.method}: error {self.error:.4f}"


def display_of_sample(  # noqa: PLR0913
    sample: BinarySample,
    *,
    method: str = DEFAULT_METHOD,
    kind: Kind = "curve",
    axes: AxesKind = "prob",
    histogram: bool = True,
    name: str | None = None,
    axis_labels: tuple[str, str] = axis_names("binary", None),
    truth: Points | None = None,
    instances: int = 0,
    tops: Tops | None = None,
    debias: Debias = "auto",
    band: BandKind | None = "point-wise",
    confidence: float = DEFAULT_CONFIDENCE,
    random_state: Seed = 0,
    fitted: tuple[Fit, Estimate] | None = None,
) -> ReliabilityDisplay:
    """Compute the diagram of a sample that has been checked.

    `fitted` are the map and its error, where they are known.
    """
    check_choice(kind, get_args(Kind), name="kind")
    if band is not None:
        check_choice(band, get_args(BandKind), name="band")
    check_count(instances, name="instances", least=0)
    seed = whole_seed(random_state)
    drawn_axes = choose_axes(axes, [sample])
    fit, estimate = fitted or _fitted(
        sample,
        method,
        tops,
        ErrorSettings(debias=debias, confidence=confidence, random_state=seed),
    )
    binned = has_bins(fit)
    # The paper's diagrams show whole bins; a curve ends with the data.
    drawn_range = PROB_LIMITS if binned and kind != "curve" else data_range(sample)
    curve, table = map_points(fit, drawn_range), table_of(sample, fit)
    limits = axis_limits(drawn_axes, sample, table, curve)
    bends = np.empty(0) if binned else fit.edges[1:-1]
    return ReliabilityDisplay(
        table=table,
        bins=bin_columns(sample, table, confidence),
        binned=binned,
        curve=curve,
        knots=Points(bends, fit.map.values(bends)) if bends.size else NO_POINTS,
        histogram_data=histogram_of(sample, fit.edges, drawn_axes, limits),
        statistics=Statistics.of(sample, estimate, confidence),
        method=method_name(method),
        kind=kind,
        axes=drawn_axes,
        limits=limits,
        histogram=histogram,
        name=name,
        axis_labels=axis_labels,
        instances=picked_instances(sample, fit, truth, instances, seed)
        if instances
        else None,
        true_map=truth,
        band=band_of(fit, curve, band, confidence, seed),
    )


def _fitted(
    sample: BinarySample,
    method: str,
    tops: Tops | None,
    settings: ErrorSettings,
) -> tuple[Fit, Estimate]:
    """Return the map that is drawn, and its error with the interval of `evaluate`."""
    family = find_binary(method)
    if tops is not None:  # not the method that `evaluate` knows by this name
        fit = family.measuring(settings.random_state, tops=tops).fit_sample(sample)
        found = settings.measured([fit], [sample], method)
        value, interval = max(float(found.errors[0]), 0.0), (np.nan, np.nan)
        return fit, Estimate(
            found.method, "binary", value, *interval, sample.n, found.debiased, 0
        )
    tasks = BinaryTasks("binary", ("binary",), (sample,))
    fitted = FittedTasks(tasks, settings)
    with one_blas_thread():
        (estimate,) = fitted.estimates(method)
    return cast("Fit", fitted.fits(method)[0]), estimate
