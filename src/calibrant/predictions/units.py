"""One model in one group of rows: what is evaluated by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.engines.groups import Group
    from calibrant.predictions.input_spec import BinaryTasks


@dataclass(frozen=True, eq=False)
class Unit:
    """The predictions of one model in one group of rows.

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
