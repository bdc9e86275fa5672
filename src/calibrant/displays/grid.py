"""Several reliability diagrams side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant.core.sample import warn_if_small
from calibrant.core.tasks import SEVERAL_EVENTS, check_events
from calibrant.core.warn import warn
from calibrant.displays.diagram_data import (
    AxesKind,
    axis_names,
    choose_axes,
    histogram_of,
)
from calibrant.displays.reliability import Part, ReliabilityDisplay, display_of_sample
from calibrant.engines.groups import format_group_value
from calibrant.exceptions import FewerDiagramsWarning
from calibrant.measures.estimate import ErrorSettings, FittedTasks
from calibrant.predictions.predictions import as_predictions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.core.array_types import ArrayLike, Frame, Scale, Task
    from calibrant.core.sample import BinarySample
    from calibrant.core.tasks import BinaryTasks
    from calibrant.displays.style import StyleName
    from calibrant.predictions.aggregates import Unit
    from calibrant.predictions.predictions import Predictions

    NamedSample: TypeAlias = tuple[str | None, BinarySample]

MAX_DIAGRAMS, MAX_ROW = 36, 6
"""Diagrams of a figure, and groups of a model that stand in a row of their own."""
ROW_LENGTHS = (5, 6, 4, 3)
"""Lengths of rows of classes, of which each model has the same."""
RANKING_BINS = 15
"""Of the errors by which the worst classes are found."""


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityGrid:
    """Reliability diagrams of several models, classes or groups, on the same axes.

    Attributes
    ----------
    displays : tuple of ReliabilityDisplay
        One per model, class and group.
    left_out : int
        How many more there would be, if there are very many groups or classes.
    row_length : int
        Length of rows, if each model has rows of the same groups or classes, or a
        column; otherwise 0.

    See Also
    --------
    ReliabilityDisplay : a single diagram.

    Examples
    --------
    >>> import calibrant as cb
    >>> forest, y = cb.datasets.load_binary("forest")
    >>> network, y = cb.datasets.load_binary("network")
    >>> models = {"forest": forest, "network": network}
    >>> grid = cb.ReliabilityGrid.from_predictions(y, models, method="ew5")
    >>> [str(display) for display in grid.displays]
    ['forest, ew5: error 0.0931', 'network, ew5: error 0.0026']
    """

    displays: tuple[ReliabilityDisplay, ...]
    left_out: int = 0
    row_length: int = 0

    @classmethod
    def from_predictions(  # noqa: PLR0913
        cls,
        y_true: ArrayLike | Predictions,
        y_prob: Mapping[str, ArrayLike] | None = None,
        *,
        task: Task = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        pos_label: Any = None,
        labels: Sequence[Any] | None = None,
        scale: Scale | Mapping[str, Scale] = "prob",
        axes: AxesKind = "prob",
        **options: Any,
    ) -> ReliabilityGrid:
        """Compute one diagram per model, class and group.

        Parameters
        ----------
        y_true : array-like of shape (n,) or Predictions
            Labels: 0 and 1, booleans, or with `pos_label` any two values; classes for
            multi-class tasks. Or `Predictions`, which need no other data.
        y_prob : array-like of shape (n,) or (n, k), or dict
            Predicted probability of the event, or of each class; a dict has those of
            each model.
        task : None, "confidence", "classwise", "multilabel", or a class
            None: binary. "confidence" or "top-label": the top class and whether it is
            right. A class, by label or column number: that class against the rest.
            "classwise": one diagram per class. "multilabel": the same for labels of
            which a row can have several, with a matrix of 0 and 1 as `y_true`.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of 2 counts the row twice.
        groups : array-like of shape (n,), optional
            The group of each row; each group has its own diagram.
        clusters : array-like of shape (n,), optional
            Which rows belong together, such as those of one patient.
        pos_label : object, optional
            The label that counts as the event.
        labels : sequence, optional
            The label of each class column, in order; by default 0 .. k-1.
        scale : {"prob", "logit", "percent", "logprob"} or dict
            What the predictions are, for all models or for each.
        axes : {"prob", "logit", "auto"}
            How all axes are drawn; "auto" uses logit axes if at least 90 % of the
            predictions of any diagram are below 0.05, or above 0.95.
        **options
            How diagrams are drawn: `method`, `debias`, `kind` and the other options of
            `ReliabilityDisplay.from_predictions`.

        Returns
        -------
        ReliabilityGrid
            With `plot` and `frame`; at most 36 diagrams, of the classes with the
            largest errors if there are more, with a warning (`FewerDiagramsWarning`).
            Of several models, the same groups or classes stand below each other.

        See Also
        --------
        ReliabilityDisplay.from_predictions : the diagram of one model.

        Examples
        --------
        >>> import calibrant as cb
        >>> forest, y = cb.datasets.load_binary("forest")
        >>> bayes, y = cb.datasets.load_binary("bayes")
        >>> grid = cb.ReliabilityGrid.from_predictions(
        ...     y, {"forest": forest, "bayes": bayes}, method="es3"
        ... )
        >>> grid.frame()["model"].tolist()
        ['forest', 'forest', 'forest', 'bayes', 'bayes', 'bayes']
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
        check_events(preds.task, "a diagram")
        samples, left_out, row_length = _diagrams(preds)
        options["axis_labels"] = axis_names(preds.task, preds.store.origin.event)
        options["axes"] = choose_axes(axes, [sample for _, sample in samples])
        displays = [
            display_of_sample(sample, name=name, **options) for name, sample in samples
        ]
        drawn = _on_same_axes(displays, [one for _, one in samples])
        return cls(drawn, left_out, row_length)

    def frame(self, part: Part = "bins") -> Frame:
        """Return the numbers of all diagrams, with a column for the model.

        Parameters
        ----------
        part : str
            Which part of the diagrams, as in `ReliabilityDisplay.frame`.

        Returns
        -------
        dict of ndarray
            Equally long columns.
        """
        frames = [display.frame(part) for display in self.displays]
        sizes = [next(iter(frame.values())).size for frame in frames]
        names = np.repeat([str(display.name) for display in self.displays], sizes)
        columns = {
            column: np.concatenate([frame[column] for frame in frames])
            for column in frames[0]
        }
        return {"model": names} | columns

    def plot(
        self, *, style: StyleName = "colour", width: float | None = None, **parts: Any
    ) -> Figure:
        """Draw all diagrams side by side on a new figure and return it.

        Parameters
        ----------
        style : {"colour", "grey"}
            Colours that are safe for colour-blind readers, or greys for print.
        width : float, optional
            Inches of the figure: 3.5 for one column of a journal, 7 for two.
        **parts
            Keywords of matplotlib for parts, as in `ReliabilityDisplay.plot`.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from calibrant.displays.grid_drawing import draw_grid

        return draw_grid(self.displays, self.row_length, style, width, parts)

    def overlay(
        self,
        ax: Axes | None = None,
        *,
        style: StyleName = "colour",
        width: float | None = None,
        **parts: Any,
    ) -> Axes:
        """Draw all curves in one diagram, such as those before and after a repair.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        style : {"colour", "grey"}
            Colours that are safe for colour-blind readers, or greys for print.
        width : float, optional
            Inches of a new figure: 3.5 for one column of a journal, 7 for two.
        **parts
            Keywords of matplotlib for parts, as in `ReliabilityDisplay.plot`.

        Returns
        -------
        matplotlib Axes
            The axes; ``ax.figure.savefig(...)`` writes it.

        Examples
        --------
        >>> import calibrant as cb
        >>> p, y = cb.datasets.load_binary("forest")
        >>> repaired = cb.make_calibrator("beta").fit(p[:900], y[:900]).transform(p)
        >>> both = {"before": p[900:], "after": repaired[900:]}
        >>> grid = cb.ReliabilityGrid.from_predictions(y[900:], both)
        >>> ax = grid.overlay(width=3.5)
        >>> [text.get_text() for text in ax.texts][:2]
        ['before', 'after']
        """
        from calibrant.displays.grid_drawing import draw_overlay

        return draw_overlay(self.displays, ax, style, width, parts)

    def __repr__(self) -> str:
        return f"<ReliabilityGrid of {len(self.displays)} diagrams>"

    def __str__(self) -> str:
        more = [f"not drawn: {self.left_out} more"] if self.left_out else []
        return "\n".join([*map(str, self.displays), *more])


def _diagrams(preds: Predictions) -> tuple[list[NamedSample], int, int]:
    """Return what each diagram shows with its name, how many more, and rows' length.

    Warn where not all are drawn.
    """
    units = preds.store.units()
    grouped = any(unit.group.key for unit in units)
    few = len(units) <= MAX_DIAGRAMS // 2
    if preds.task in SEVERAL_EVENTS and few and not grouped:
        tasks = {preds.store.display_name(unit.model): unit.read() for unit in units}
        names = {one.names for one in tasks.values()}
        if len(names) == 1:
            return _diagrams_of_classes(tasks)
    samples, left_out, row = _diagrams_of_units(preds, units)
    if left_out:
        warn(
            f"only the first {len(samples)} diagrams are drawn, out of "
            f"{len(samples) + left_out}. Draw the others from rows of fewer models or "
            "groups.",
            FewerDiagramsWarning,
        )
    return samples, left_out, row


def _diagrams_of_classes(
    tasks: Mapping[str, BinaryTasks],
) -> tuple[list[NamedSample], int, int]:
    """Return diagrams of all classes of each model, or of those with large errors.

    Of several models, each has rows of the same classes, one below the other.
    """
    classes = next(iter(tasks.values())).names
    shown, max_classes = list(range(len(classes))), MAX_DIAGRAMS // len(tasks)
    if len(shown) > max_classes:
        shown = _worst_classes(list(tasks.values()))[:max_classes]
        warn(
            f"only the {max_classes} classes with the largest errors are drawn, out of "
            f"{len(classes)}, the worst first.",
            FewerDiagramsWarning,
        )
    count = len(shown)
    lengths = [count] if count <= MAX_ROW else ROW_LENGTHS
    row = next((length for length in lengths if count % length == 0), 0)
    if len(tasks) == 1:
        row, places = 0, [(model, k) for model in tasks for k in shown]
    elif row:
        starts = range(0, count, row)
        rows = [shown[start : start + row] for start in starts]
        places = [(model, k) for own in rows for model in tasks for k in own]
    else:  # one column per model
        row = len(tasks) if len(tasks) <= MAX_ROW else 0
        places = [(model, k) for k in shown for model in tasks]
    samples: list[NamedSample] = []
    for model, k in places:
        title = ", ".join(filter(None, (model, f"class {classes[k]}")))
        sample = tasks[model].samples[k]
        warn_if_small(sample, title)
        samples.append((title, sample))
    return samples, len(tasks) * (len(classes) - count), row


def _worst_classes(tasks: Sequence[BinaryTasks]) -> list[int]:
    """Return the classes by their mean error over models, the largest first."""
    rows = min(sample.n for one in tasks for sample in one.samples)
    method = f"ew{min(RANKING_BINS, rows)}"  # fast
    settings = ErrorSettings()
    errors = [
        [estimate.value for estimate in FittedTasks(one, settings).estimates(method)]
        for one in tasks
    ]
    of_classes = np.mean(errors, axis=0)[1:]  # the first is that of the task
    return [int(k) for k in np.argsort(-of_classes, kind="stable")]


def _diagrams_of_units(
    preds: Predictions, units: Sequence[Unit]
) -> tuple[list[NamedSample], int, int]:
    """Return diagrams of models and groups, and of their classes if they have any."""
    samples: list[NamedSample] = []
    row = _row_length(units)
    max_diagrams = MAX_DIAGRAMS - MAX_DIAGRAMS % max(row, 1)
    left_out = 0
    for unit in units:
        if len(samples) >= max_diagrams:
            left_out += 1
            continue
        tasks, key = unit.read(), unit.group.key
        group = ", ".join(f"{k}: {format_group_value(v)}" for k, v in key.items())
        model = preds.store.display_name(unit.model)
        model = model if len(preds.models) > 1 or not group else ""
        several = len(tasks.samples) > 1
        for name, sample in zip(tasks.names, tasks.samples, strict=True):
            event = f"class {name}" if several else ""
            title, warned = (
                ", ".join(filter(None, (model, rows, event))) or None
                for rows in (group, str(unit.group))
            )
            warn_if_small(sample, warned)
            samples.append((title, sample))
    row = row if len(samples) + left_out == len(units) else 0
    return samples[:max_diagrams], left_out + len(samples[max_diagrams:]), row


def _row_length(units: Sequence[Unit]) -> int:
    """Return how many groups each model has, 0 where these are no rows of a figure."""
    groups: dict[str, list[str]] = {}
    for unit in units:
        groups.setdefault(unit.model, []).append(str(unit.group))
    first, *others = groups.values()
    alike = bool(others) and all(names == first for names in others)
    return len(first) if alike and 1 < len(first) <= MAX_ROW else 0


def _on_same_axes(
    displays: list[ReliabilityDisplay], samples: list[BinarySample]
) -> tuple[ReliabilityDisplay, ...]:
    """Return diagrams whose axes all have the widest limits of any."""
    limits = (min(d.limits[0] for d in displays), max(d.limits[1] for d in displays))
    if displays[0].axes == "prob":
        return tuple(displays)
    return tuple(
        replace(
            display,
            limits=limits,
            histogram_data=histogram_of(sample, display.table.edges, "logit", limits),
        )
        for display, sample in zip(displays, samples, strict=True)
    )
