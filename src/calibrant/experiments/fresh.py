"""A fresh study: other seeds, other shapes and other predictions than the paper's.

Whoever makes methods looks at the paper's grid, and its 15 draws of labels leave much
to chance. So all are compared once more, on draws that the paper does not have, on
shapes that no method was made for, and on predictions that crowd at one end or at both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrant._validation.options import check_count
from calibrant.exceptions import UnknownNameError
from calibrant.experiments.design import (
    PAPER_SIZES,
    Contender,
    Design,
    chosen_contenders,
)
from calibrant.experiments.shapes import OTHER_SHAPES, PAPER_SHAPES, square
from calibrant.experiments.synthetic import UNIFORM, Distribution
from calibrant.experiments.truths import SyntheticTruth

if TYPE_CHECKING:
    from collections.abc import Sequence

FRESH_SEEDS = 40
FIRST_SEED = 200
"""The paper has seeds 0 to 4, and methods of this library were made looking at seeds
below 200 and from 500 on."""

TEST_ROWS = 100_000
CALIBRATED = "calibrated"
SKEWED: Distribution = (2.0, 5.0)
POLARISED: Distribution = (0.5, 0.5)

FRESH_METHODS = (
    "smooth",
    "es15",
    "es-sweep",
    "es-cv",
    "pl3",
    "pl",
    "platt",
    "beta",
    "isotonic",
    "spline-natural",
    "kde",
)
"""Those of the paper's methods that are quick enough, and others."""


@dataclass(frozen=True)
class Study:
    """One table of the fresh study.

    Attributes
    ----------
    name : str
        One word.
    title : str
        What is drawn, for people.
    shapes : tuple of str
        Rows of the table.
    errors : tuple of float
        Expected errors of each shape.
    distribution : tuple of two floats
        Parameters of the Beta distribution of c.
    sizes : tuple of int
        Numbers of rows.
    """

    name: str
    title: str
    shapes: tuple[str, ...]
    errors: tuple[float, ...]
    distribution: Distribution = UNIFORM
    sizes: tuple[int, ...] = PAPER_SIZES

    def truths(self) -> list[SyntheticTruth]:
        """Return calibrated predictions, and each shape with each error."""
        # Without error all shapes are the same; the oracle is told a square.
        found = [SyntheticTruth(CALIBRATED, 0.0, square, self.distribution, TEST_ROWS)]
        for shape in self.shapes:
            found += [
                SyntheticTruth.of(
                    shape, error, distribution=self.distribution, test_rows=TEST_ROWS
                )
                for error in self.errors
            ]
        return found


STUDIES = (
    Study("paper", "The paper's shapes, c uniform", PAPER_SHAPES, (0.03, 0.08)),
    Study("other", "Five other shapes, c uniform", OTHER_SHAPES, (0.03, 0.08)),
    Study(
        "skewed",
        "All ten shapes, c from Beta(2, 5)",
        PAPER_SHAPES + OTHER_SHAPES,
        (0.05,),
        SKEWED,
        PAPER_SIZES[::2],
    ),
    Study(
        "polarised",
        "All ten shapes, c from Beta(0.5, 0.5)",
        PAPER_SHAPES + OTHER_SHAPES,
        (0.05,),
        POLARISED,
        PAPER_SIZES[::2],
    ),
)


def chosen_studies(names: Sequence[str] | None = None) -> list[Study]:
    """Return studies by name, or all.

    Examples
    --------
    >>> [study.title for study in chosen_studies(["other"])]
    ['Five other shapes, c uniform']
    """
    known = {study.name: study for study in STUDIES}
    for name in names or ():
        if name not in known:
            raise UnknownNameError.among("study", name, known)
    return [known[name] for name in names or known]


def fresh_design(
    study: Study,
    *,
    seeds: int = FRESH_SEEDS,
    methods: Sequence[str] = FRESH_METHODS,
) -> Design:
    """Return what is to be compared in one study, the oracle beside the methods.

    Examples
    --------
    >>> design = fresh_design(STUDIES[0], seeds=40, methods=["smooth", "pl"])
    >>> len(design.truths), design.seeds[0], design.contenders[-1].name
    (11, 200, 'oracle')
    """
    return Design(
        contenders=[*chosen_contenders(methods), Contender.oracle()],
        truths=study.truths(),
        sizes=study.sizes,
        seeds=range(FIRST_SEED, FIRST_SEED + check_count(seeds, name="seeds")),
    )
