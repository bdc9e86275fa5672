"""Aggregated predictions: sums over rows, which can be added and stored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from calibrant.core.weights import warn_if_fractional
from calibrant.engines.groups import Group, format_group_value
from calibrant.exceptions import OptionError
from calibrant.predictions.input_spec import BinaryTasks
from calibrant.predictions.store import Store
from calibrant.predictions.units import Unit

if TYPE_CHECKING:
    from calibrant.core.sample import BinarySample
    from calibrant.engines.cells import AggregatedCells


@dataclass(frozen=True, eq=False)
class AggregatedPredictions(Store):
    """Cells, read by model and group.

    Attributes
    ----------
    cells : AggregatedCells
        Sums over the rows of each cell.
    """

    cells: AggregatedCells

    @property
    def paired(self) -> bool:
        """Tell that nobody knows which rows of models belong together."""
        return False

    @property
    def task(self) -> str:
        """Return the name of the task."""
        return self.cells.origin.task

    @property
    def n(self) -> int:
        """Return the number of rows."""
        return self.cells.n

    @property
    def by(self) -> tuple[str, ...]:
        """Return the columns of groups."""
        column = self.cells.origin.model_column
        return tuple(name for name in self.cells.origin.by if name != column)

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models, in order."""
        if self.cells.origin.model_column:
            return tuple(dict.fromkeys(unit.model for unit in self._all_units))
        return tuple(dict.fromkeys(name for name, _ in self.cells.origin.events))

    @property
    def named(self) -> bool:
        """Tell whether results name their model."""
        return len(self.models) > 1 or bool(self.cells.origin.model_column)

    def units(self) -> list[Unit]:
        """Return each model in each group of rows."""
        return [u for name in self.models for u in self._all_units if u.model == name]

    def whole(self, model: str) -> BinaryTasks:
        """Return all rows of a model."""
        column = self.cells.origin.model_column
        cells = self.cells.grouped_by([column] if column else [])
        units = AggregatedPredictions(cells).units()
        return next(unit.read() for unit in units if unit.model == model)

    def all_rows(self) -> BinarySample:
        """Raise: there are no rows."""
        raise OptionError(
            "the true map of aggregated predictions cannot be drawn; pass the rows."
        )

    def paired_tasks(self) -> list[tuple[Group, dict[str, BinaryTasks]]]:
        """Raise: nothing pairs the rows of cells."""
        raise OptionError(
            "models of aggregated predictions cannot be compared, since it is not "
            "known which of their rows belong together; pass the rows."
        )

    def aggregate(self) -> AggregatedCells:
        """Return the cells themselves."""
        return self.cells

    @cached_property
    def _all_units(self) -> list[Unit]:
        origin = self.cells.origin
        units = []
        for place, values in enumerate(self.cells.groups):
            key = dict(zip(origin.by, values, strict=True))
            own = key.pop(origin.model_column, None) if origin.model_column else None
            for name in dict.fromkeys(name for name, _ in origin.events):
                model = format_group_value(own) if origin.model_column else name
                read = partial(self._tasks, name, place)
                units.append(Unit(model, Group(key, slice(None)), read))
        return units

    def _tasks(self, model: str, group: int) -> BinaryTasks:
        cells = self.cells
        own = [i for i, (name, _) in enumerate(cells.origin.events) if name == model]
        samples = tuple(cells.sample(group, event) for event in own)
        if cells.origin.weighted and samples[0].n:
            first = samples[0]
            weight = np.asarray(first.weight)
            average = weight.sum() / first.n_data
            if average >= 1.0:
                warn_if_fractional(weight, average, name="column of weights")
        names = tuple(cells.origin.events[event][1] for event in own)
        return BinaryTasks(cells.origin.task, names, samples, same_rows=False)
