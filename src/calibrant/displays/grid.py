"""Several reliability diagrams side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.sample import warn_if_small
from calibrant.displays.diagram_data import axis_names
from calibrant.displays.reliability import (
    Part,
    ReliabilityDisplay,
    check_one_event,
    display_of_sample,
)
from calibrant.predictions.predictions import as_predictions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from calibrant.core.array_types import ArrayLike, Frame, Scale, Task
    from calibrant.predictions.predictions import Predictions

MAX_DIAGRAMS = 24


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityGrid:
    """Reliability diagrams of several models, drawn side by side.

    Attributes
    ----------
    displays : tuple of ReliabilityDisplay
        One per model.
    left_out : int
        How many more there would be, of a table with very many groups.

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

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | Predictions,
        y_prob: Mapping[str, ArrayLike] | None = None,
        *,
        task: Task = None,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        labels: Sequence[Any] | None = None,
        scale: Scale | Mapping[str, Scale] = "prob",
        **options: Any,
    ) -> ReliabilityGrid:
        """Compute one diagram per model and group.

        Parameters
        ----------
        y_true : array-like of shape (n,) or Predictions
            Labels: 0 and 1, booleans, or with `pos_label` any two values; classes for
            multi-class tasks. Or `Predictions`, which need no other data.
        y_prob : dict
            Predictions of each model by its name.
        task : None, "confidence" or a class
            None: binary. "confidence": the top class and whether it is right. A class,
            by label or column number: that class against the rest.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of 2 counts the row twice.
        pos_label : object, optional
            The label that counts as the event.
        labels : sequence, optional
            The label of each class column, in order; by default 0 .. k-1.
        scale : {"prob", "logit", "percent", "logprob"} or dict
            What predictions hold, for all models or for each.
        **options
            How diagrams are drawn: `method`, `kind`, `axes` and the other options of
            `ReliabilityDisplay.from_predictions`.

        Returns
        -------
        ReliabilityGrid
            With `plot` and `frame`; at most 24 diagrams.

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
        check_one_event(task)
        preds = as_predictions(
            y_true,
            y_prob,
            task=task,
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=labels,
            scale=scale,
        )
        check_one_event(preds.task)
        preds.store.check_fields("ReliabilityGrid")
        units = preds.store.units()
        displays = []
        labels_of_axes = axis_names(preds.task, preds.store.event)
        for unit in units[:MAX_DIAGRAMS]:
            group = str(unit.group)
            model = unit.model if len(preds.models) > 1 or not group else ""
            name = ", ".join(filter(None, (model, group))) or None
            sample = unit.read().samples[0]
            warn_if_small(sample)
            displays.append(
                display_of_sample(
                    sample, name=name, axis_labels=labels_of_axes, **options
                )
            )
        return cls(tuple(displays), len(units) - len(displays))

    def frame(self, part: Part | None = None) -> Frame:
        """Return the numbers of all diagrams, with a column for the model.

        Parameters
        ----------
        part : str, optional
            Which part of the diagrams, as in `ReliabilityDisplay.frame`; without, the
            map that is drawn.

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

    def plot(self, **fill_style: Any) -> Figure:
        """Draw all diagrams on a new figure and return it.

        Parameters
        ----------
        **fill_style
            Keywords of matplotlib for the filled areas.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from calibrant.displays.drawing import draw_grid

        return draw_grid(self.displays, fill_style)

    def __repr__(self) -> str:
        return f"<ReliabilityGrid of {len(self.displays)} diagrams>"

    def __str__(self) -> str:
        return "\n".join(map(str, self.displays))
