"""Decision curves drawn with matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.displays.drawing import new_figure
from calibrant.displays.layout import as_drawn
from calibrant.displays.style import (
    SCREEN_WIDTH,
    check_width,
    find_style,
    text_size,
)
from calibrant.exceptions import OptionError
from calibrant.measures.decision_curve import (
    TREAT_NONE,
    DecisionCurve,
    decision_curve,
    flagged_by_any,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from calibrant.core.array_types import ArrayLike, FloatVector, Frame
    from calibrant.displays.style import Style, StyleName
    from calibrant.predictions.predictions import Predictions

ASPECT = 0.78
"""Height of a figure by its width."""
ROOM_BELOW = 0.15
"""Share of the height that shows negative net benefits at least."""
MAX_BELOW = 0.4
"""And at most: at high thresholds they have no bound that could be drawn."""
WHOLE_AXIS = 0.95
"""Thresholds that reach this far have an axis up to 1."""


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurveDisplay:
    """A decision curve as a figure: net benefit by threshold, with intervals.

    Curves end with the largest threshold at which a model still flags a row.

    Attributes
    ----------
    curve : DecisionCurve
        What is drawn; made by `decision_curve`, without groups.
    standardised : bool
        Whether net benefits are divided by the share of events.
    simultaneous : bool
        Whether bands contain the true curves at all thresholds at once.

    See Also
    --------
    decision_curve : makes decision curves.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> curve = cb.decision_curve(y, {"forest": p})
    >>> display = cb.DecisionCurveDisplay(curve, standardised=True)
    >>> bool(display.frame()["net_benefit"].max() <= 1.0)
    True
    """

    curve: DecisionCurve
    standardised: bool = False
    simultaneous: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.curve, DecisionCurve):
            raise OptionError(
                "curve must be what decision_curve returned; got "
                f"{type(self.curve).__name__}. Pass predictions to from_predictions."
            )
        if any(unit.group for unit in self.curve.units):
            raise OptionError(
                "a figure shows the decision curves of one group of rows; remove "
                "groups, or pass the rows of one group."
            )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | Predictions,
        y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        standardised: bool = False,
        simultaneous: bool = False,
        ax: Axes | None = None,
        **options: Any,
    ) -> DecisionCurveDisplay:
        """Compute decision curves; drawn at once if `ax` is given.

        Parameters
        ----------
        y_true : array-like of shape (n,) or Predictions
            Labels, as `decision_curve` takes them; or `Predictions`.
        y_prob : array-like of shape (n,) or dict
            Predictions, or those of each model by its name.
        standardised : bool
            Whether to divide net benefits by the share of events.
        simultaneous : bool
            Whether bands contain the true curves at all thresholds at once.
        ax : matplotlib Axes, optional
            Draw onto these axes now; otherwise call `plot`.
        **options
            Options of `decision_curve`, such as `thresholds` and `confidence`.

        Returns
        -------
        DecisionCurveDisplay
            With `plot` and `frame`.

        See Also
        --------
        decision_curve : makes decision curves.

        Examples
        --------
        >>> import calibrant as cb
        >>> p, y = cb.datasets.load_binary("forest")
        >>> ax = cb.DecisionCurveDisplay.from_predictions(y, {"forest": p}).plot()
        >>> ax.get_xlabel()
        'Threshold probability'
        """
        curve = decision_curve(y_true, y_prob, **options)
        display = cls(curve, standardised, simultaneous)
        if ax is not None:
            display.plot(ax)
        return display

    def frame(self) -> Frame:
        """Return one row per model and threshold, also beyond what is drawn."""
        return self.curve.frame(
            standardised=self.standardised, simultaneous=self.simultaneous
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        style: StyleName = "colour",
        width: float | None = None,
        **line_style: Any,
    ) -> Axes:
        """Draw the curves of all models, and of treating all and none.

        Curves end with the largest threshold at which a model still flags a row, and
        each band where its model does: beyond, the net benefit is 0 by definition. To
        show fewer thresholds, pass `thresholds` to `decision_curve`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        style : {"colour", "grey"}
            Colours that are safe for colour-blind readers, or greys for print.
        width : float, optional
            Inches of a new figure: 3.5 for one column of a journal, 7 for two.
        **line_style
            Passed to the lines of the models, such as ``linewidth=2``.

        Returns
        -------
        matplotlib Axes
            ``ax.figure.savefig(...)`` writes it.
        """
        colours = find_style(style)
        inches = SCREEN_WIDTH if width is None else check_width(width)
        size = text_size(inches)
        if ax is None:
            ax = new_figure(inches, ASPECT * inches).add_subplot()
        frame = self.frame()
        models = sum(unit.sample is not None for unit in self.curve.units)
        own_lines = len(self.curve.units) > models + 2
        drawn = flagged_by_any(self.curve.units)
        ends = [0.0]
        for place, unit in enumerate(self.curve.units):
            rows = frame["model"] == unit.model
            columns = ("threshold", "net_benefit", "low", "high")
            x, benefit, low, high = (frame[column][rows] for column in columns)
            colour, dashes = colours.look(place % models, solid_first=models == 1)
            if unit.sample is None:
                none = unit.model == TREAT_NONE
                look: dict[str, Any] = {
                    "linestyle": colours.never if none else colours.always
                }
                look["color"] = colour if own_lines and not none else colours.soft
                look["linewidth"] = 0.11 * size
            else:
                look = {"color": colour, "linestyle": dashes, "linewidth": 0.2 * size}
                limits = x[unit.flags], low[unit.flags], high[unit.flags]
                key = _draw_band(ax, colours, look, limits, several=models > 1)
                ends += [*limits[1], *limits[2]]
                look |= line_style
            ax.plot(x[drawn], benefit[drawn], label=as_drawn(unit.model), **look)
        last = float(self.curve.thresholds[drawn][-1])
        self._describe(ax, ends, last, colours, size)
        kind = "simultaneous" if self.simultaneous else "point-wise"
        key.set_label(f"{100 * self.curve.confidence:g} % band, {kind}")
        handles = [*ax.get_legend_handles_labels()[0], key]
        ax.legend(handles=handles, frameon=False, fontsize=size)
        return ax

    def _describe(
        self, ax: Axes, ends: list[float], last: float, style: Style, size: float
    ) -> None:
        top = 1.05 * max(float(np.nanmax(ends)), 0.01)
        lowest = -1.05 * float(np.nanmin(ends))
        below = min(max(lowest, ROOM_BELOW * top), MAX_BELOW * top)
        ax.set(xlim=(0.0, 1.0 if last >= WHOLE_AXIS else last), ylim=(-below, top))
        ax.set_xlabel("Threshold probability", fontsize=size)
        what = "Standardised net benefit" if self.standardised else "Net benefit"
        ax.set_ylabel(what, fontsize=size)
        ax.tick_params(labelsize=size)
        ax.grid(color=style.light, linewidth=0.1 * size)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)

    def __repr__(self) -> str:
        models = sum(unit.sample is not None for unit in self.curve.units)
        return f"<DecisionCurveDisplay of {models} models>"

    def __str__(self) -> str:
        return str(self.curve)


def _draw_band(
    ax: Axes,
    style: Style,
    line: Mapping[str, Any],
    limits: tuple[FloatVector, FloatVector, FloatVector],
    *,
    several: bool,
) -> Artist:
    """Draw thresholds and limits of the net benefit; return how a key shows bands.

    Areas of grey that overlap cannot be distinguished: then limits are thin lines.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Patch

    x, low, high = limits
    if several and style.outlined:
        thin = 0.3 * line["linewidth"]
        ends = [np.column_stack([x, end]) for end in (low, high)]
        look = {"colors": line["color"], "linestyles": line["linestyle"]}
        ax.add_collection(LineCollection(ends, linewidths=thin, **look))
        return Patch(facecolor="none", edgecolor=style.soft, linewidth=thin)
    alpha = style.band_alpha
    ax.fill_between(x, low, high, color=line["color"], alpha=alpha, linewidth=0.0)
    return Patch(color=style.soft, alpha=alpha, linewidth=0.0)
