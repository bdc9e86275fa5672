"""Decision curves drawn with matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from calibrant.displays.drawing import new_figure
from calibrant.displays.names import as_drawn
from calibrant.exceptions import OptionError
from calibrant.measures.decision_curve import (
    TREAT_ALL,
    TREAT_NONE,
    DecisionCurve,
    decision_curve,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.core.array_types import ArrayLike, FloatVector, Frame
    from calibrant.predictions.predictions import Predictions

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Colour-blind safe (Okabe and Ito), one per model in turn."""
STRATEGIES: dict[str, dict[str, Any]] = {
    TREAT_ALL: {"color": "0.45", "linestyle": "--"},
    TREAT_NONE: {"color": "0.25", "linestyle": ":"},
}
ROOM_BELOW = 0.15
"""Share of the height that shows negative net benefits."""


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurveDisplay:
    """A decision curve as a figure: net benefit by threshold, with intervals.

    Attributes
    ----------
    curve : DecisionCurve
        What is drawn; made by `decision_curve`.
    standardised : bool
        Whether net benefits are divided by the share of events.
    simultaneous : bool
        Whether bands hold the curves at all thresholds at once.

    See Also
    --------
    decision_curve : makes decision curves.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> display = cb.DecisionCurveDisplay.from_predictions(y, {"forest": p})
    >>> display.frame()["net_benefit"].size
    297
    """

    curve: DecisionCurve
    standardised: bool = False
    simultaneous: bool = False

    @classmethod
    def from_curve(
        cls,
        curve: DecisionCurve,
        *,
        standardised: bool = False,
        simultaneous: bool = False,
        ax: Axes | None = None,
    ) -> DecisionCurveDisplay:
        """Return the figure of a decision curve; drawn at once where `ax` is given.

        Parameters
        ----------
        curve : DecisionCurve
            What `decision_curve` returned, without groups.
        standardised : bool
            Whether to divide net benefits by the share of events.
        simultaneous : bool
            Whether bands hold the curves at all thresholds at once.
        ax : matplotlib Axes, optional
            Draw onto these axes now; otherwise call `plot`.

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
        >>> curve = cb.decision_curve(y, {"forest": p})
        >>> display = cb.DecisionCurveDisplay.from_curve(curve, standardised=True)
        >>> bool(display.frame()["net_benefit"].max() <= 1.0)
        True
        """
        if not isinstance(curve, DecisionCurve):
            raise OptionError(
                "curve must be what decision_curve returned; got "
                f"{type(curve).__name__}. Pass predictions to from_predictions."
            )
        if any(unit.group for unit in curve.units):
            raise OptionError(
                "a figure shows the decision curves of one group of rows; remove "
                "groups, or pass the rows of one group."
            )
        display = cls(curve, standardised, simultaneous)
        if ax is not None:
            display.plot(ax)
        return display

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
        """Compute decision curves; drawn at once where `ax` is given.

        Parameters
        ----------
        y_true : array-like of shape (n,) or Predictions
            Labels, as `decision_curve` takes them; or `Predictions`.
        y_prob : array-like of shape (n,) or dict
            Predictions, or those of each model by its name.
        standardised : bool
            Whether to divide net benefits by the share of events.
        simultaneous : bool
            Whether bands hold the curves at all thresholds at once.
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
        return cls.from_curve(
            curve, standardised=standardised, simultaneous=simultaneous, ax=ax
        )

    def frame(self) -> Frame:
        """Return one row per model and threshold: what is drawn."""
        return self.curve.frame(
            standardised=self.standardised, simultaneous=self.simultaneous
        )

    def figure(self) -> Figure:
        """Draw on a new figure and return it."""
        return cast("Figure", self.plot().figure)

    def plot(self, ax: Axes | None = None, **line_style: Any) -> Axes:
        """Draw the curves of all models, and of treating all and none.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **line_style
            Passed to the lines of the models, such as ``linewidth=2``.

        Returns
        -------
        matplotlib Axes
            ``ax.figure.savefig(...)`` writes it.
        """
        if ax is None:
            ax = new_figure(5.2, 4.0).add_subplot()
        frame = self.frame()
        names = list(dict.fromkeys(frame["model"].tolist()))
        models = [name for name in names if name not in STRATEGIES]
        for name in names:
            rows = frame["model"] == name
            columns = ("threshold", "net_benefit", "low", "high")
            own = [frame[column][rows] for column in columns]
            if name in STRATEGIES:
                style: dict[str, Any] = {
                    "linewidth": 1.0,
                    "zorder": 1.5,
                    **STRATEGIES[name],
                }
            else:
                colour = COLOURS[models.index(name) % len(COLOURS)]
                style = {"color": colour, "linewidth": 1.4, **line_style}
                ax.fill_between(
                    own[0], own[2], own[3], color=style["color"], alpha=0.15, lw=0.0
                )
            ax.plot(own[0], own[1], label=as_drawn(name), **style)
        self._describe(ax, frame["net_benefit"])
        return ax

    def _describe(self, ax: Axes, benefit: FloatVector) -> None:
        top = 1.05 * float(max(benefit.max(), 0.01))
        ax.set(
            xlim=(0.0, 1.0),
            ylim=(-ROOM_BELOW * top, top),
            xlabel="Threshold probability",
            ylabel="Standardised net benefit" if self.standardised else "Net benefit",
        )
        ax.grid(color="0.92", linewidth=0.8)
        ax.set_axisbelow(True)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        ax.legend(frameon=False, fontsize="small")

    def __repr__(self) -> str:
        models = [u.model for u in self.curve.units if u.model not in STRATEGIES]
        return f"<DecisionCurveDisplay of {len(models)} models>"

    def __str__(self) -> str:
        return str(self.curve)
