"""Studies on synthetic data: the paper's grid, and a fresh one.

The fresh study exists because anyone who develops a method looks at the paper's grid,
and its 15 draws of labels leave much to chance: methods are compared on draws that the
paper does not have, on shapes that no method was tuned on, and on predictions that are
concentrated at one end or at both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.parameters import check_choice, check_count
from calibrant.experiments.assessment import THINNING, Contender
from calibrant.experiments.runner import Design
from calibrant.experiments.synthetic import (
    OTHER_SHAPES,
    PAPER_SHAPES,
    UNIFORM,
    Distribution,
    Oracle,
    SyntheticTruth,
    square,
)
from calibrant.experiments.tables import (
    KINDS,
    ResultTable,
    build_table,
    concatenate,
    method_names,
    result_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from calibrant.core.array_types import Frame
    from calibrant.experiments.assessment import Truth

PAPER_ERRORS = tuple(np.arange(0.0, 0.1001, 0.005).round(3).tolist())
QUICK_ERRORS = (0.0, 0.05, 0.1)
PAPER_SIZES = (1000, 3000, 10_000)
PAPER_SEEDS, QUICK_SEEDS = 5, 2

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

FRESH_TABLES = ("calmap", "ece", "bias")
FRESH_TEST_ROWS = 100_000
ALL_SHAPES = PAPER_SHAPES + OTHER_SHAPES
FRESH_DATA: dict[str, tuple[str, tuple[str, ...], tuple[float, ...], Distribution]] = {
    "paper": ("The paper's shapes, c uniform", PAPER_SHAPES, (0.03, 0.08), UNIFORM),
    "other": ("Five other shapes, c uniform", OTHER_SHAPES, (0.03, 0.08), UNIFORM),
    "skewed": ("All ten shapes, c from Beta(2, 5)", ALL_SHAPES, (0.05,), (2.0, 5.0)),
    "polarised": (
        "All ten shapes, c from Beta(0.5, 0.5)", ALL_SHAPES, (0.05,), (0.5, 0.5)
    ),
}  # fmt: skip
"""Title, shapes, expected errors, and the distribution of c of each part."""


@dataclass(frozen=True)
class Study:
    """What is run, and how results become tables.

    Parameters
    ----------
    title : str
        Heading of the tables.
    designs : dict of Design
        All of them are run into one folder.
    tables : callable
        Returns the tables of the results of `run`, by the names of the designs.
    notes : tuple of str
        Remarks to show above the tables.

    Examples
    --------
    >>> study = synthetic_study(quick=True)
    >>> study.title, study.designs["synthetic"].size
    ('Synthetic experiments', 360)
    """

    title: str
    designs: Mapping[str, Design]
    tables: Callable[[Mapping[str, Frame]], list[ResultTable]]
    notes: tuple[str, ...] = ()


def with_paper_settings(
    method: str, every: int, *, as_printed: bool = False
) -> Contender:
    """Return a method with the paper's folds, smoothing and the like."""
    settings = dict(PAPER_SETTINGS.get(method, {}))
    if as_printed and method in PRINTED_ENSEMBLES:
        settings["ensemble"] = PRINTED_ENSEMBLES[method]
    return Contender.of(method, every=every, **settings)


def paper_contenders(
    methods: Sequence[str] = PAPER_METHODS, *, as_printed: bool = False
) -> list[Contender]:
    """Return methods, by default the twelve of the paper's synthetic tables.

    Folds, smoothing and the like are the paper's. ``pl``, ``pl-mse`` and ``pl-de``
    average over numbers of pieces, as is the default of this library; with
    `as_printed` the number is chosen as in the paper.
    """
    every = dict.fromkeys(CONTINUOUS_METHODS, THINNING)
    return [
        with_paper_settings(name, every.get(name, 1), as_printed=as_printed)
        for name in methods
    ]


def paper_design(
    seeds: int | None = None,
    *,
    quick: bool = False,
    methods: Sequence[str] = PAPER_METHODS,
    as_printed: bool = False,
) -> Design:
    """Return the grid of the paper's synthetic study.

    Five shapes, 21 expected errors and three sizes. Labels depend only on size and
    seed, so that five seeds are just 15 independent draws of labels. With `quick` only
    three errors, 1,000 rows and two seeds.

    Examples
    --------
    >>> paper_design().size
    18900
    """
    seeds = seeds if seeds is not None else QUICK_SEEDS if quick else PAPER_SEEDS
    return Design(
        contenders=paper_contenders(methods, as_printed=as_printed),
        truths=_synthetic(PAPER_SHAPES, QUICK_ERRORS if quick else PAPER_ERRORS),
        sizes=PAPER_SIZES[: 1 if quick else None],
        seeds=range(check_count(seeds, name="seeds")),
    )


def _synthetic(
    shapes: Iterable[str], errors: Iterable[float], **options: Any
) -> list[Truth]:
    grid = product(shapes, errors)
    return [SyntheticTruth(shape, error, **options) for shape, error in grid]


def synthetic_study(seeds: int | None = None, **options: Any) -> Study:
    """Return the paper's synthetic study; options are those of `paper_design`."""
    design = paper_design(seeds, **options)

    def tables(results: Mapping[str, Frame]) -> list[ResultTable]:
        (rows,), printed = results.values(), not options.get("quick")
        return [result_table(rows, design, name, printed=printed) for name in KINDS]

    return Study("Synthetic experiments", {"synthetic": design}, tables)


def fresh_study(
    seeds: int = FRESH_SEEDS,
    methods: Sequence[str] = FRESH_METHODS,
    parts: Sequence[str] = tuple(FRESH_DATA),
) -> Study:
    """Return the fresh study: methods and the oracle on several kinds of data."""
    designs = {
        check_choice(name, FRESH_DATA, name="study"): fresh_design(name, seeds, methods)
        for name in parts
    }
    return Study("Fresh experiments", designs, partial(_fresh_tables, designs=designs))


def fresh_design(part: str, seeds: int, methods: Sequence[str]) -> Design:
    """Return calibrated predictions, and each shape with each error."""
    _, shapes, errors, distribution = FRESH_DATA[part]
    data: Any = {"distribution": distribution, "test_rows": FRESH_TEST_ROWS}
    # All shapes are equal at error 0; the oracle gets the square.
    calibrated = SyntheticTruth("calibrated", 0.0, square, **data)
    last = FIRST_FRESH_SEED + check_count(seeds, name="seeds")
    return Design(
        contenders=[*paper_contenders(methods), Oracle()],
        truths=[calibrated, *_synthetic(shapes, errors, **data)],
        sizes=PAPER_SIZES[:: 1 if distribution == UNIFORM else 2],
        seeds=range(FIRST_FRESH_SEED, last),
    )


def _fresh_tables(
    results: Mapping[str, Frame], designs: Mapping[str, Design]
) -> list[ResultTable]:
    """Return tables of all parts together, then those of each."""
    overall = [overall_table(results, designs, kind) for kind in FRESH_TABLES]
    each = [
        replace(
            result_table(results[name], designs[name], kind), study=FRESH_DATA[name][0]
        )
        for name, kind in product(designs, FRESH_TABLES)
    ]
    return overall + each


def overall_table(
    results: Mapping[str, Frame], designs: Mapping[str, Design], name: str
) -> ResultTable:
    """Return a table with one row per design, over all its truths.

    Methods are the same in all designs.
    """
    design = np.repeat(list(results), [rows["n"].size for rows in results.values()])
    lines = [(label, design == label) for label in results]
    methods = method_names(next(iter(designs.values())), KINDS[name])
    rows = concatenate(results.values())
    draws = min(len(design.sizes) * len(design.seeds) for design in designs.values())
    return replace(build_table(KINDS[name], rows, lines, methods, {}), draws=draws)
