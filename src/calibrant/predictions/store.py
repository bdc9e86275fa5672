"""Where predictions live: what rows in memory and aggregates have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calibrant.core.sample import ClassSample
    from calibrant.core.tasks import BinaryTasks
    from calibrant.engines.aggregation_spec import ModelColumns
    from calibrant.engines.groups import Group
    from calibrant.predictions.columns import TableRequest


@dataclass(frozen=True, eq=False)
class Unit:
    """The predictions of one model in one group of rows, evaluated by themselves.

    Attributes
    ----------
    model : str
        Name of the model; empty where there is one without a name.
    group : Group
        Which rows; one without values stands for all rows.
    read : callable
        Returns the binary tasks of these rows.
    """

    model: str
    group: Group
    read: Callable[[], BinaryTasks]


class Store(ABC):
    """What public functions read from rows in memory and from aggregates alike.

    The methods here are those of aggregates; rows know more.
    """

    @property
    @abstractmethod
    def by(self) -> tuple[str, ...]:
        """Return the columns of groups."""

    @abstractmethod
    def units(self) -> list[Unit]:
        """Return each model in each group of rows."""

    @property
    def table_request(self) -> TableRequest | None:
        """Return which columns hold what; None where that is not known."""
        return None

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files that rows were read from, as they were named."""
        return ()

    def class_sample(self, model: str) -> ClassSample | None:  # noqa: ARG002
        """Return the predictions of all classes; None where there are no rows."""
        return None

    def columns_of(self, model: str) -> ModelColumns | None:  # noqa: ARG002
        """Return the columns of a model; None where that is not known."""
        return None

    def class_labels(self, model: str) -> Sequence[Any] | None:  # noqa: ARG002
        """Return the label of each class column, None where it is its number."""
        return None

    def class_counts(self) -> dict[str, int]:
        """Return the number of classes of each model that has one column per class."""
        return {}

    def display_name(self, model: str) -> str:
        """Return what a page calls a model: empty where it was given no name."""
        return model

    def groups_of(self, model: str) -> dict[str, BinaryTasks]:
        """Return the groups of rows of a model by their name, empty without groups."""
        own = [unit for unit in self.units() if unit.model == model]
        return {unit.group.name: unit.read() for unit in own if unit.group.key}

    def single_tasks(self, verb: str) -> BinaryTasks:
        """Return all rows of the only model; raise where there are several units."""
        units = self.units()
        if len(units) > 1 or self.by:
            raise OptionError(
                f"{verb} takes one model without groups; got {len(units)} models "
                "or groups. Pass one of them."
            )
        return units[0].read()

    def check_fields(self, verb: str, *, uses_clusters: bool = False) -> None:
        """Raise where rows have clusters or times, which a function cannot use."""
        request = self.table_request
        if request is not None and request.time is not None:
            raise OptionError(f"{verb} does not use time yet; remove it.")
        if uses_clusters or request is None or request.cluster is None:
            return
        raise OptionError(
            f"{verb} does not use clusters yet: intervals and tests would "
            "treat rows of a cluster as independent. Remove clusters if you "
            "accept that."
        )
