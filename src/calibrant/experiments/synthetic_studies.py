"""The synthetic studies as designs: the paper's grid, a quick part of it, fresh data.

The fresh study exists because anyone who develops a method looks at the paper's grid,
and its 15 draws of labels leave much to chance: methods are compared on draws that the
paper does not have, on shapes that no method was tuned on, and on predictions that are
concentrated at one end or at both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.options import check_count
from calibrant.experiments.contenders import THINNING, Contender
from calibrant.experiments.design import Design
from calibrant.experiments.shapes import OTHER_SHAPES, PAPER_SHAPES, square
from calibrant.experiments.synthetic import UNIFORM, Distribution, SyntheticTruth

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from calibrant.experiments.design import Truth

PAPER_ERRORS = tuple(np.arange(0.0, 0.1001, 0.005).round(3).tolist())
QUICK_ERRORS = (0.0, 0.05, 0.1)
PAPER_SIZES = (1000, 3000, 10_000)
PAPER_SEEDS = 5

PAPER_METHODS = (
    "es15", "es-sweep", "es-cv", "kce", "pl3", "pl3-mse", "pl", "pl-mse", "pl-de",
    "platt", "beta", "isotonic",
)  # fmt: skip
"""The methods of the paper's synthetic tables, in their order."""

CONTINUOUS_METHODS = ("pl3", "pl3-mse", "pl", "pl-mse", "pl-de", "platt", "beta")
"""Those whose maps are compared at every 20th row."""

PAPER_SETTINGS: dict[str, dict[str, Any]] = {
    "es-cv": {"random_state": 1},
    "ew-cv": {"random_state": 1},
    "platt": {"smoothing": True},
}
PRINTED_ENSEMBLES = {"pl": "folds", "pl-mse": "folds", "pl-de": "refit"}
"""How the paper chose numbers of pieces; this library averages over them instead."""

FRESH_SEEDS = 40
FIRST_FRESH_SEED = 200
"""The paper has seeds 0 to 4; methods of this library were developed looking at seeds
below 200 and from 500 on."""

FRESH_METHODS = (
    "smooth", "es15", "es-sweep", "es-cv", "pl3", "pl", "platt", "beta", "isotonic",
    "spline-natural", "kde",
)  # fmt: skip
"""Those of the paper's methods that are fast enough, and others."""


def paper_contenders(*, as_printed: bool = False) -> list[Contender]:
    """Return the twelve methods of the paper's synthetic tables, in their order.

    Folds, smoothing and the like are the paper's. ``pl``, ``pl-mse`` and ``pl-de``
    average over numbers of pieces, as is the default of this library; with
    `as_printed` the number is chosen as in the paper.
    """
    contenders = []
    for method in PAPER_METHODS:
        settings = dict(PAPER_SETTINGS.get(method, {}))
        if as_printed and method in PRINTED_ENSEMBLES:
            settings["ensemble"] = PRINTED_ENSEMBLES[method]
        every = THINNING if method in CONTINUOUS_METHODS else 1
        contenders.append(Contender.of(method, every=every, **settings))
    return contenders


def named_contenders(
    methods: Sequence[str], *, as_printed: bool = False
) -> list[Contender]:
    """Return methods by name: the paper's with its settings, others with defaults.

    Examples
    --------
    >>> [contender.every for contender in named_contenders(["platt", "kde"])]
    [20, 1]
    """
    paper = {c.name: c for c in paper_contenders(as_printed=as_printed)}
    return [paper.get(name) or Contender.of(name) for name in methods]


def paper_design(seeds: int = PAPER_SEEDS, *, as_printed: bool = False) -> Design:
    """Return the grid of the paper's synthetic study.

    Five shapes, 21 expected errors and three sizes. Labels depend only on size and
    seed, so that five seeds are just 15 independent draws of labels.

    Examples
    --------
    >>> paper_design().size
    18900
    """
    return Design(
        contenders=paper_contenders(as_printed=as_printed),
        truths=_synthetic_truths(PAPER_SHAPES, PAPER_ERRORS),
        sizes=PAPER_SIZES,
        seeds=range(check_count(seeds, name="seeds")),
    )


def quick_design(seeds: int = 2, *, as_printed: bool = False) -> Design:
    """Return a small part of the paper's grid: 1,000 rows, three errors."""
    truths = _synthetic_truths(PAPER_SHAPES, QUICK_ERRORS)
    design = paper_design(seeds, as_printed=as_printed)
    return replace(design, truths=truths, sizes=PAPER_SIZES[:1])


def is_paper_grid(design: Design) -> bool:
    """Return whether shapes, errors and sizes are the paper's, whatever the seeds."""
    paper = [truth.name for truth in _synthetic_truths(PAPER_SHAPES, PAPER_ERRORS)]
    names = [truth.name for truth in design.truths]
    return design.sizes == PAPER_SIZES and sorted(names) == sorted(paper)


def _synthetic_truths(
    shapes: Iterable[str], errors: Iterable[float], **options: Any
) -> list[Truth]:
    grid = product(shapes, errors)
    return [SyntheticTruth.of(shape, error, **options) for shape, error in grid]


@dataclass(frozen=True)
class FreshStudy:
    """One table of the fresh study."""

    title: str
    shapes: tuple[str, ...]  # rows of the table
    errors: tuple[float, ...]  # expected errors of each shape
    distribution: Distribution = UNIFORM  # of c
    sizes: tuple[int, ...] = PAPER_SIZES
    test_rows: int = 100_000  # unseen rows on which maps are compared with the truth

    def truths(self) -> list[Truth]:
        """Return calibrated predictions, and each shape with each error."""
        data: Any = {"distribution": self.distribution, "test_rows": self.test_rows}
        # All shapes are equal at error 0; the oracle gets the square.
        calibrated = SyntheticTruth("calibrated", 0.0, square, **data)
        return [calibrated, *_synthetic_truths(self.shapes, self.errors, **data)]

    def design(
        self, *, seeds: int = FRESH_SEEDS, methods: Sequence[str] = FRESH_METHODS
    ) -> Design:
        """Return the design of the study, with the oracle beside the methods.

        Examples
        --------
        >>> design = FRESH_STUDIES["paper"].design(seeds=40, methods=["smooth", "pl"])
        >>> len(design.truths), design.seeds[0], design.contenders[-1].name
        (11, 200, 'oracle')
        """
        last = FIRST_FRESH_SEED + check_count(seeds, name="seeds")
        return Design(
            contenders=[*named_contenders(methods), Contender.oracle()],
            truths=self.truths(),
            sizes=self.sizes,
            seeds=range(FIRST_FRESH_SEED, last),
        )


ALL_SHAPES, TWO_SIZES = PAPER_SHAPES + OTHER_SHAPES, PAPER_SIZES[::2]
SKEWED, POLARISED = (2.0, 5.0), (0.5, 0.5)

FRESH_STUDIES = {
    "paper": FreshStudy("The paper's shapes, c uniform", PAPER_SHAPES, (0.03, 0.08)),
    "other": FreshStudy("Five other shapes, c uniform", OTHER_SHAPES, (0.03, 0.08)),
    "skewed": FreshStudy(
        "All ten shapes, c from Beta(2, 5)", ALL_SHAPES, (0.05,), SKEWED, TWO_SIZES
    ),
    "polarised": FreshStudy(
        "All ten shapes, c from Beta(0.5, 0.5)",
        ALL_SHAPES,
        (0.05,),
        POLARISED,
        TWO_SIZES,
    ),
}
