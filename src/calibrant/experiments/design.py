"""The design of a study: which methods on which truths, of which sizes, how often."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from itertools import product
from math import nan
from typing import TYPE_CHECKING, Any, Protocol

from calibrant.core.options import check_count
from calibrant.exceptions import OptionError
from calibrant.experiments.assessment import MEASURES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calibrant.experiments.assessment import KnownSample
    from calibrant.experiments.contenders import Contender


class Truth(Protocol):
    """A source of data with a known calibration map.

    Anything with these members can be part of a design: a shape of the bench, or a
    data set of your own for which c is known.
    """

    @property
    def shape(self) -> str:
        """Return the name of the row in tables."""
        ...

    @property
    def error(self) -> float:
        """Return the expected error, which distinguishes truths of one shape."""
        ...

    @property
    def name(self) -> str:
        """Return a name that depends on everything the data depend on."""
        ...

    def draw(self, n: int, seed: int) -> KnownSample:
        """Draw rows to fit on; the same for the same size and seed."""
        ...

    def unseen(self) -> KnownSample:
        """Return rows to compare maps on, in ascending order of p."""
        ...


@dataclass(frozen=True, kw_only=True)
class Design:
    """A study: every contender on every truth, size and seed.

    Parameters
    ----------
    contenders : sequence of Contender
        Columns of the tables.
    truths : sequence of Truth
        Where data come from.
    sizes : sequence of int
        Numbers of rows.
    seeds : sequence of int
        One draw of labels each.
    truths_per_task : int
        How many consecutive truths one worker processes together, because calibrators
        of all classes share their fits between them.

    Examples
    --------
    >>> from calibrant.experiments import Contender, SyntheticTruth
    >>> design = Design(
    ...     contenders=[Contender.of("es15"), Contender.of("platt")],
    ...     truths=[SyntheticTruth.of("square", 0.05)],
    ...     sizes=[1000],
    ...     seeds=range(3),
    ... )
    >>> design.size
    6
    """

    contenders: Sequence[Contender]
    truths: Sequence[Truth]
    sizes: Sequence[int]
    seeds: Sequence[int]
    truths_per_task: int = 1

    def __post_init__(self) -> None:
        check_count(self.truths_per_task, name="truths_per_task")
        for name in ("contenders", "truths", "sizes", "seeds"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, values in (
            ("contenders", [contender.name for contender in self.contenders]),
            ("truths", [truth.name for truth in self.truths]),
            ("sizes", [check_count(n, name="sizes") for n in self.sizes]),
            ("seeds", [check_count(s, name="seeds", least=0) for s in self.seeds]),
        ):
            if not values or len(set(values)) < len(values):
                raise OptionError(
                    f"{name} must have at least one entry and no duplicates; got "
                    f"{values!r}."
                )

    @property
    def size(self) -> int:
        """Return the number of cells."""
        data_sets = len(self.truths) * len(self.sizes) * len(self.seeds)
        return data_sets * len(self.contenders)

    def cells(self) -> Iterator[Cell]:
        """Yield all cells, those of one truth and size together."""
        grid = product(self.truths, self.sizes, self.seeds, self.contenders)
        for truth, n, seed, contender in grid:
            yield Cell(contender, truth, n, seed)


@dataclass(frozen=True)
class Cell:
    """One contender on one data set: the smallest unit of work."""

    contender: Contender
    truth: Truth
    n: int
    seed: int

    @property
    def key(self) -> str:
        """Return a hash of everything the result depends on."""
        who = self.contender
        content = (who.name, repr(who.family), who.every, self.truth.name)
        text = repr((*content, self.n, self.seed))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def assess(self, data: KnownSample, unseen: KnownSample) -> dict[str, Any]:
        """Return the row of results; an error of the method is in ``failure``."""
        started = time.thread_time()
        measures: dict[str, float] = {}
        failure = ""
        try:
            measures = self.contender.measure(data, unseen, self.truth)
        except Exception as error:  # noqa: BLE001 (one method must not stop the others)
            failure = f"{type(error).__name__}: {error}"
        return {
            "key": self.key,
            "method": self.contender.name,
            "shape": self.truth.shape,
            "error": float(self.truth.error),
            "n": self.n,
            "seed": self.seed,
            **{name: float(measures.get(name, nan)) for name in MEASURES},
            "failure": failure,
            "seconds": time.thread_time() - started,
        }
