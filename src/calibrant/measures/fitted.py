"""BinaryTasks and what was fitted to them, so that nothing is fitted twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrant.calibrators.base import ErrorFit
    from calibrant.measures.estimate import Estimate, Estimator
    from calibrant.predictions.input_spec import BinaryTasks


@dataclass(frozen=True, eq=False)
class FittedTasks:
    """BinaryTasks, with fits and estimates that are made when asked for and then kept.

    Attributes
    ----------
    events : BinaryTasks
        The events of a task.
    estimator : Estimator
        How errors are estimated.

    Examples
    --------
    >>> import calibrant as cb
    >>> from calibrant.measures.estimate import Estimator
    >>> from calibrant.predictions.input_spec import InputSpec
    >>> p, y = cb.datasets.load_binary("forest")
    >>> fitted = FittedTasks(InputSpec().tasks(y, p), Estimator())
    >>> fitted.fit("es15") is fitted.fit("es15")
    True
    """

    events: BinaryTasks
    estimator: Estimator
    _fits: dict[tuple[str, int], ErrorFit] = field(
        default_factory=dict, init=False, repr=False
    )
    _estimates: dict[str, tuple[Estimate, ...]] = field(
        default_factory=dict, init=False, repr=False
    )

    def fit(self, method: str, place: int = 0) -> ErrorFit:
        """Return the fit of a method to one of the events."""
        key = method, place
        if key not in self._fits:
            sample = self.events.samples[place]
            self._fits[key] = self.estimator.fit_one(sample, method)
        return self._fits[key]

    def fits(self, method: str) -> list[ErrorFit]:
        """Return the fits of a method to all events."""
        return [self.fit(method, place) for place in range(len(self.events.samples))]

    def estimates(self, method: str) -> tuple[Estimate, ...]:
        """Return the estimate for the task, then one for each class if it has any."""
        if method not in self._estimates:
            self._estimates[method] = self.estimator.estimate_by(
                self.fits(method), self.events, method
            )
        return self._estimates[method]
