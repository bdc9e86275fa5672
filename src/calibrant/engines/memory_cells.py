"""Cells of tables in memory, gathered by NumPy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.arrays import as_vector, check_same_length
from calibrant.core.labels import check_binary_labels, check_class_labels
from calibrant.core.probabilities import (
    check_probabilities,
    check_probability_matrix,
)
from calibrant.core.weights import check_raw_weights, check_total
from calibrant.core.wording import MEASURES
from calibrant.engines.cells import AggregatedCells, CellOrigin, cell_table
from calibrant.engines.few_rows import are_few, kept_columns
from calibrant.engines.groups import group_rows
from calibrant.numerics.cell_grid import sum_cells
from calibrant.numerics.class_probabilities import event_of_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant.core.array_types import FloatVector, IntVector
    from calibrant.core.wording import Wording
    from calibrant.engines.aggregation_spec import AggregationSpec, WatchedModel
    from calibrant.engines.memory import MemoryTable


@dataclass(frozen=True, eq=False)
class MemoryRows:
    """The rows of a table in memory, read as a gathering wants them.

    Attributes
    ----------
    table : MemoryTable
        The columns.
    wanted : AggregationSpec
        What is to be gathered.
    """

    table: MemoryTable
    wanted: AggregationSpec

    def cells(self) -> AggregatedCells:
        """Return the cells of all groups and events."""
        wanted = self.wanted
        groups = group_rows(self.table, wanted.by)
        group = np.zeros(self.label.size, dtype=np.int64)
        for number, found in enumerate(groups):
            group[found.rows] = number
        weight = self._weight
        used = np.ones(group.size, bool) if weight is None else weight > 0.0
        events = [event for model in wanted.models for event in self._events(model)]
        own = np.bincount(group[used], minlength=len(groups))
        few = are_few(own, int(own.sum()) * len(events))[group]
        parts = []
        for number, (p, happened) in enumerate(events):
            for chosen, columns_of in ((used & few, _kept), (used & ~few, _sums)):
                if chosen.any():
                    own_weight = None if weight is None else weight[chosen]
                    part = columns_of(
                        p[chosen], happened[chosen], own_weight, group[chosen]
                    )
                    parts.append(part | {"event": np.full(part["cell"].size, number)})
        columns = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
        keys = tuple(tuple(found.key.values()) for found in groups)
        origin = CellOrigin(
            wanted.task, wanted.events, wanted.by, wanted.weight is not None
        )
        return cell_table(origin, keys, columns)

    @cached_property
    def label(self) -> NDArray[Any]:
        """Return the column of labels."""
        return as_vector(self.table.column(self.wanted.y), name=self._wording().label)

    @cached_property
    def _weight(self) -> FloatVector | None:
        if self.wanted.weight is None:
            return None
        name = f"column {self.wanted.weight!r}"
        weight = check_raw_weights(self.table.column(self.wanted.weight), name=name)
        with np.errstate(over="ignore"):
            check_total(float(weight.sum()), float(weight.max()), name=name)
        return weight

    def _wording(self, prob: str = "") -> Wording:
        return replace(MEASURES, label=f"column {self.wanted.y!r}", prob=prob)

    def _events(self, model: WatchedModel) -> list[tuple[FloatVector, FloatVector]]:
        """Return predictions and outcomes of each event of a model."""
        words = self._wording(str(model))
        columns = [self.table.column(name) for name in model.columns]
        check_same_length(**dict(zip(model.columns, columns, strict=True)))
        if not model.labels:
            p = check_probabilities(columns[0], scale=model.scale, wording=words)
            return [(p, self._happened(words))]
        matrix = np.stack(columns, axis=1)
        prob = check_probability_matrix(matrix, scale=model.scale, wording=words)
        column = check_class_labels(
            self.label,
            n_classes=len(columns),
            labels=list(model.labels),
            wording=words,
        )
        return [event_of_class(prob, column, which) for which in model.watched]

    def _happened(self, words: Wording) -> FloatVector:
        pos_label = self.wanted.pos_label
        if self.wanted.against_rest:
            return np.asarray(self.label == pos_label, dtype=np.float64)
        return check_binary_labels(self.label, pos_label=pos_label, wording=words)


def _kept(
    p: FloatVector,
    happened: FloatVector,
    weight: FloatVector | None,
    group: IntVector,
) -> dict[str, NDArray[Any]]:
    """Return a cell for each row."""
    one = np.ones(p.size, dtype=np.int64)
    kept = kept_columns(p, one, happened.astype(np.int64), weight)
    return kept | {"group": group}


def _sums(
    p: FloatVector,
    happened: FloatVector,
    weight: FloatVector | None,
    group: IntVector,
) -> dict[str, NDArray[Any]]:
    """Return the sums over the rows of each group and cell, as columns."""
    sums = vars(sum_cells(p, happened, weight, group))
    return {name: values for name, values in sums.items() if values is not None}
