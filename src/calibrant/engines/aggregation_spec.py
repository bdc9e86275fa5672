"""What is to be aggregated from a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from calibrant.core.arrays import check_same_length
from calibrant.core.defaults import MAX_DROPPED
from calibrant.engines.cells import USUAL_LIMITS, ExactLimits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant.core.array_types import Scale
    from calibrant.engines.memory import MemoryTable

BadRows: TypeAlias = Literal["error", "drop"]


@dataclass(frozen=True)
class ModelColumns:
    """The columns of a model, their classes, and the events that are evaluated."""

    name: str
    columns: tuple[str, ...]  # one column of predictions, or one per class
    # what names the class of each column: what ``*`` stood for, or the column's own
    # name
    classes: tuple[str, ...] = ()
    by_pattern: bool = False  # whether a ``*`` named the classes
    matrix: str = ""  # the array that has all classes, where it is one, as in npz files
    # the label of each column; empty where there is one column
    labels: tuple[Any, ...] = ()
    # columns whose classes are the events; None stands for the top class
    watched: tuple[int | None, ...] = (0,)
    events: tuple[str, ...] = ("binary",)  # name of each event
    scale: Scale = "prob"  # what the columns contain

    @property
    def named(self) -> tuple[str, ...]:
        """Return the columns, or the one array, as the user names them."""
        return (self.matrix,) if self.matrix else self.columns

    def read(self, table: MemoryTable) -> NDArray[Any]:
        """Return the predictions: a vector, or one column per class."""
        if self.matrix:
            return table.column(self.matrix)
        if len(self.columns) == 1:
            return table.column(self.columns[0])
        columns = {f"column {name!r}": table.column(name) for name in self.columns}
        check_same_length(**columns)
        return np.stack(list(columns.values()), axis=1)

    def __str__(self) -> str:
        if len(self.named) == 1:
            return f"column {self.named[0]!r}"
        return f"columns {self.columns[0]!r} .. {self.columns[-1]!r}"


@dataclass(frozen=True, kw_only=True)
class AggregationSpec:
    """What is to be aggregated."""

    # whose predictions; all or none have one column per class
    models: tuple[ModelColumns, ...]
    y: str  # column of labels
    task: str = "binary"
    # for one column: the label of the event; None where labels are 0 and 1
    pos_label: Any = None
    # for one column: whether all other labels, however many, mean no event
    against_rest: bool = False
    weight: str | None = None  # column of weights
    by: tuple[str, ...] = ()  # columns of groups
    cluster: str | None = None  # the last of them, if it names clusters
    bad_rows: BadRows = "error"
    max_dropped: float = MAX_DROPPED  # the maximum share of rows that may be dropped
    limits: ExactLimits = USUAL_LIMITS  # how many rows are kept exactly

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Return all columns of probabilities, each once."""
        every = (column for model in self.models for column in model.columns)
        return tuple(dict.fromkeys(every))

    @cached_property
    def place(self) -> dict[str, int]:
        """Return the place of each column of probabilities."""
        return {name: place for place, name in enumerate(self.columns)}

    @property
    def numbers(self) -> tuple[str, ...]:
        """Return the columns that must contain numbers: predictions and weights."""
        return (*self.columns, *([] if self.weight is None else [self.weight]))

    @property
    def events(self) -> tuple[tuple[str, str], ...]:
        """Return model and name of each event, in order."""
        return tuple((m.name, event) for m in self.models for event in m.events)

    @property
    def compares_labels(self) -> bool:
        """Tell whether all labels other than the event's must be one and the same."""
        return self.pos_label is not None and not self.against_rest
