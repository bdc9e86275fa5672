"""What is to be aggregated from a table, and what every engine's table can do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from calibrant.core.scales import MAX_DROPPED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import Scale
    from calibrant.engines.cells import AggregatedCells

BadRows: TypeAlias = Literal["error", "drop"]


@dataclass(frozen=True)
class WatchedModel:
    """The columns of a model, and the events that are evaluated.

    Attributes
    ----------
    name : str
        Name of the model.
    columns : tuple of str
        One column of probabilities, or one per class.
    labels : tuple
        The label of each column; empty where there is one column.
    watched : tuple of int or None
        Columns whose classes are the events; None stands for the top class.
    events : tuple of str
        Name of each event.
    scale : {"prob", "logit", "percent", "logprob"}
        What the columns contain.
    display_name : str
        What messages call the columns, where it differs from their names.
    """

    name: str
    columns: tuple[str, ...]
    labels: tuple[Any, ...] = ()
    watched: tuple[int | None, ...] = (0,)
    events: tuple[str, ...] = ("binary",)
    scale: Scale = "prob"
    display_name: str = ""

    def __str__(self) -> str:
        if self.display_name:
            return self.display_name
        if len(self.columns) == 1:
            return f"column {self.columns[0]!r}"
        return f"columns {self.columns[0]!r} .. {self.columns[-1]!r}"


@dataclass(frozen=True, kw_only=True)
class AggregationSpec:
    """What is to be aggregated.

    Attributes
    ----------
    models : tuple of WatchedModel
        Whose predictions; all or none have one column per class.
    y : str
        Column of labels.
    task : str
        Name of the task.
    pos_label : object
        For one column: the label of the event; None where labels are 0 and 1.
    against_rest : bool
        For one column: whether all other labels, however many, mean no event.
    weight : str or None
        Column of weights.
    by : tuple of str
        Columns of groups.
    bad_rows : {"error", "drop"}
        What to do with invalid rows.
    max_dropped : float
        The maximum share of rows that may be dropped.
    """

    models: tuple[WatchedModel, ...]
    y: str
    task: str = "binary"
    pos_label: Any = None
    against_rest: bool = False
    weight: str | None = None
    by: tuple[str, ...] = ()
    bad_rows: BadRows = "error"
    max_dropped: float = MAX_DROPPED

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


class Table(Protocol):
    """Rows somewhere, which an engine can aggregate."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns, in order."""
        ...

    @property
    def all_names(self) -> tuple[str, ...]:
        """Return the columns of all rows, for which all may have to be read."""
        ...

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column does not exist."""
        ...

    def dtype_example(self, name: str) -> Any:
        """Return an empty array of the type of a column of labels."""
        ...

    def contains(self, name: str, value: Any) -> bool:
        """Tell whether a column contains a value."""
        ...

    def aggregate(self, spec: AggregationSpec) -> AggregatedCells:
        """Go once through the rows and return their cells."""
        ...
