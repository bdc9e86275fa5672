"""Several reliability diagrams side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.displays.reliability import Part, ReliabilityDisplay
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from calibrant._typing import ArrayLike, Frame


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityGrid:
    """Reliability diagrams of several models, drawn side by side.

    Attributes
    ----------
    displays : tuple of ReliabilityDisplay
        One per model.
    left_out : int
        How many more there would be, of a table with very many groups.

    Examples
    --------
    >>> import calibrant as cb
    >>> forest, y = cb.datasets.load_binary("forest")
    >>> network, y = cb.datasets.load_binary("network")
    >>> models = {"forest": forest, "network": network}
    >>> grid = cb.ReliabilityGrid.from_predictions(y, models, method="ew5")
    >>> [str(display) for display in grid.displays]
    ['forest, ew5: error 0.0933', 'network, ew5: error 0.0050']
    """

    displays: tuple[ReliabilityDisplay, ...]
    left_out: int = 0

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, models: Mapping[str, ArrayLike], **options: Any
    ) -> ReliabilityGrid:
        """Compute the diagrams of several models on the same labels.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        models : dict
            Predictions of each model by its name.
        **options
            As in `ReliabilityDisplay.from_predictions`.

        Returns
        -------
        ReliabilityGrid
            With `plot` and `frame`.

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
        if not models:
            raise OptionError("models must hold the predictions of at least one model.")
        return cls(
            tuple(
                ReliabilityDisplay.from_predictions(
                    y_true, y_prob, name=name, **options
                )
                for name, y_prob in models.items()
            )
        )

    def frame(self, part: Part | None = None) -> Frame:
        """Return the numbers of all diagrams, with a column for the model.

        Without `part`, what `ReliabilityDisplay.frame` gives without one.
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
        """Draw all diagrams on a new figure and return it."""
        from calibrant.displays.drawing import draw_grid

        return draw_grid(self.displays, fill_style)

    def __repr__(self) -> str:
        return f"<ReliabilityGrid of {len(self.displays)} diagrams>"

    def __str__(self) -> str:
        return "\n".join(map(str, self.displays))
