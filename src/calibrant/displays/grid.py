"""Several reliability diagrams side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.sample import warn_if_small
from calibrant.core.tasks import check_events
from calibrant.displays.diagram_data import (
    AxesKind,
    axis_names,
    choose_axes,
    histogram_of,
)
from calibrant.displays.reliability import Part, ReliabilityDisplay, display_of_sample
from calibrant.engines.groups import format_group_value
from calibrant.predictions.predictions import as_predictions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.core.array_types import ArrayLike, Frame, Scale, Task
    from calibrant.core.sample import BinarySample
    from calibrant.displays.style import StyleName
    from calibrant.predictions.aggregates import Unit
    from calibrant.predictions.predictions import Predictions

MAX_DIAGRAMS, MAX_ROW = 36, 6
"""Diagrams of a figure, and groups of a model that stand in a row of their own."""


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityGrid:
    """Reliability diagrams of several models, classes or groups, on the same axes.

    Attributes
    ----------
    displays : tuple of ReliabilityDisplay
        One per model, class and group.
    left_out : int
        How many more there would be, if a table has very many groups.
    row_length : int
        Groups of each model, if each model has a row of diagrams; otherwise 0.

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
            With `plot` and `frame`; at most 36 diagrams. Groups of several
            models have one row per model, if there are at most six.

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
        samples, left_out, row_length = _named_samples(preds)
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


def _named_samples(
    preds: Predictions,
) -> tuple[list[tuple[str | None, BinarySample]], int, int]:
    """Return what each diagram shows with its name, how many more, and rows' length."""
    samples: list[tuple[str | None, BinarySample]] = []
    units = preds.store.units()
    row = _row_length(units)
    most = MAX_DIAGRAMS - MAX_DIAGRAMS % max(row, 1)
    left_out = 0
    for unit in units:
        if len(samples) >= most:
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
    return samples[:most], left_out + len(samples[most:]), row


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
