"""Errors of several models with their intervals, and how surely they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from calibrant.exceptions import OptionError
from calibrant.measures.comparison import Comparison, compare

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.core.array_types import ArrayLike, FloatMatrix, Frame
    from calibrant.predictions.predictions import Predictions


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonDisplay:
    """A comparison as a figure: errors with intervals, and a matrix of pairs.

    Attributes
    ----------
    comparison : Comparison
        What is drawn; made by `compare`.

    Examples
    --------
    >>> import calibrant as cb
    >>> forest, y = cb.datasets.load_binary("forest")
    >>> network, y = cb.datasets.load_binary("network")
    >>> found = cb.compare(y, {"forest": forest, "network": network}, method="es15")
    >>> cb.ComparisonDisplay.from_comparison(found).matrix()
    array([[nan,  1.],
           [ 0., nan]])
    """

    comparison: Comparison

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, *, ax: Axes | None = None
    ) -> ComparisonDisplay:
        """Return the figure of a comparison; drawn at once where `ax` is given.

        Parameters
        ----------
        comparison : Comparison
            What `compare` returned, of all rows.
        ax : matplotlib Axes, optional
            Draw onto these axes now; otherwise call `plot`.

        Returns
        -------
        ComparisonDisplay
            With `plot` and `frame`.

        See Also
        --------
        compare : which of several models is better calibrated.

        Examples
        --------
        >>> import calibrant as cb
        >>> forest, y = cb.datasets.load_binary("forest")
        >>> network, y = cb.datasets.load_binary("network")
        >>> found = cb.compare(y, {"forest": forest, "network": network}, method="es15")
        >>> display = cb.ComparisonDisplay.from_comparison(found)
        >>> display.frame()["model"].tolist()
        ['network', 'forest']
        """
        if comparison.groups:
            raise OptionError(
                "a figure shows one comparison; pass one of its groups, such as "
                "comparison.groups[0]."
            )
        display = cls(comparison)
        if ax is not None:
            display.plot(ax)
        return display

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | Predictions,
        y_prob: Mapping[str, ArrayLike] | None = None,
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> ComparisonDisplay:
        """Compare models; drawn at once where `ax` is given.

        Parameters
        ----------
        y_true : array-like of shape (n,), dict or Predictions
            Labels, as `compare` takes them; or `Predictions` of several models.
        y_prob : dict
            Predictions of each model by its name.
        ax : matplotlib Axes, optional
            Draw onto these axes now; otherwise call `plot`.
        **options
            Options of `compare`, such as `method` and `confidence`.

        Returns
        -------
        ComparisonDisplay
            With `plot` and `frame`.

        Examples
        --------
        >>> import calibrant as cb
        >>> forest, y = cb.datasets.load_binary("forest")
        >>> network, y = cb.datasets.load_binary("network")
        >>> display = cb.ComparisonDisplay.from_predictions(
        ...     y, {"forest": forest, "network": network}, method="es15"
        ... )
        >>> display.frame()["model"].tolist()
        ['network', 'forest']
        """
        return cls.from_comparison(compare(y_true, y_prob, **options), ax=ax)

    def frame(self) -> Frame:
        """Return one row a model, best first: what is drawn on the left."""
        return self.comparison.frame()

    def matrix(self) -> FloatMatrix:
        """Return how probable it is that row's model is better than column's.

        Models stand in the order of `frame`; the diagonal is NaN.
        """
        place = {s.model: i for i, s in enumerate(self.comparison.standings)}
        found = np.full((len(place), len(place)), np.nan)
        for pair in self.comparison.differences:
            a, b = place[pair.model_a], place[pair.model_b]
            found[a, b], found[b, a] = pair.probability, 1.0 - pair.probability
        return found

    def figure(self) -> Figure:
        """Draw on a new figure and return it."""
        return cast("Figure", self.plot().figure)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw errors with intervals, best on top, and beside them the pairs.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; the pairs take the right part of it. By default a new
            figure.

        Returns
        -------
        matplotlib Axes
            The axes of the errors; ``ax.figure.savefig(...)`` writes it.
        """
        from calibrant.displays.drawing_comparison import draw_comparison

        return draw_comparison(self, ax)

    def __repr__(self) -> str:
        return f"<ComparisonDisplay of {len(self.comparison.standings)} models>"

    def __str__(self) -> str:
        return str(self.comparison)
