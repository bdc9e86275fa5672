"""Calibrators of all classes as contenders, beside those of one event."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.options import check_count
from calibrant.calibrators.fitting import fit_family
from calibrant.calibrators.registry import find_method
from calibrant.exceptions import OptionError
from calibrant.experiments.cells import compared, thinned_rows
from calibrant.experiments.design import Contender
from calibrant.experiments.pseudo_real import EventSample, class_sample
from calibrant.numerics.softmax import class_probabilities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.experiments.truths import KnownSample, Truth


@dataclass(frozen=True)
class ClassContender(Contender):
    """A calibrator of all classes that is judged by one event.

    Its value for an event is the calibrated probability of the class that the event
    is about; for the top class, of the class that was on top before.

    Examples
    --------
    >>> ClassContender.of("vector").name
    'vector'
    """

    @classmethod
    def of(
        cls, method: str, *, name: str | None = None, every: int = 1, **params: Any
    ) -> ClassContender:
        """Return a multi-class method of the library, with hyper-parameters."""
        check_count(every, name="every")
        return cls(name or method, find_method(method).build(**params), every)

    def measured(
        self, data: KnownSample, unseen: KnownSample, _truth: Truth
    ) -> dict[str, float]:
        """Fit on a data set and return what can be measured, by name."""
        if not (isinstance(data, EventSample) and isinstance(unseen, EventSample)):
            raise OptionError(
                f"{self.name!r} calibrates all classes at once: it needs predictions "
                f"of all classes, which this truth has not."
            )
        family: Any = self.family
        map_ = _fitted(family, _Rows(data))
        rows = thinned_rows(unseen, self.every)
        scores = unseen.split.some(unseen.rows[rows])
        before = class_probabilities(scores, unseen.split.scale)
        column = unseen.event.columns(before)
        c_hat = map_(scores)[np.arange(column.size), column]
        return compared(c_hat, unseen, rows)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows to fit on, which count as the same if their keys are."""

    data: EventSample

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Rows) and self.data.key == other.data.key

    def __hash__(self) -> int:
        return hash(self.data.key)


@lru_cache(maxsize=512)
def _fitted(family: Any, rows: _Rows) -> Any:
    """Return the map of some rows, which all events share."""
    sample = class_sample(rows.data.split, rows.data.rows)
    return fit_family(family, sample).map


def calibrator_contenders(
    methods: Sequence[str], *, every: int = 1
) -> list[Contender | ClassContender]:
    """Return calibrators of one event or of all classes by name.

    Examples
    --------
    >>> [type(c).__name__ for c in calibrator_contenders(["pl3", "vector"])]
    ['Contender', 'ClassContender']
    """
    kinds = {"binary": Contender, "multi-class": ClassContender}
    return [
        kinds[find_method(method).kind].of(method, every=every) for method in methods
    ]
