"""What sets of few rows need, made for many sets at once.

Each of ten thousand groups of ten rows is nothing to compute, but going through them
one by one costs a millisecond of calls each.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from calibrant.calibrators.smooth import Smooth
from calibrant.measures.proper import isotonic_splits
from calibrant.numerics.isotonic import SortedTogether
from calibrant.numerics.smooth_test import least_tails

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.sample import BinarySample
    from calibrant.measures.fitted import FittedTasks

FEW_ROWS = 64
"""Sets with more rows are worked on one by one."""


def work_ahead(fitted: Sequence[FittedTasks], methods: Sequence[str]) -> None:
    """Make for all sets of few rows at once what estimates and scores start from.

    Everything is kept where it is looked for first, so that nothing else changes.
    """
    few = [one for one in fitted if _has_few_rows(one)]
    if not few:
        return
    samples = [one.events.samples[0] for one in few]
    rows = SortedTogether.of(samples)
    _keep("few cells", samples, rows.cells)
    _keep("isotonic splits", samples, isotonic_splits(rows))
    if "smooth" in methods or few[0].estimator.confidence is not None:
        _keep("smooth test", samples, least_tails(rows.cells))
        _keep("smooth fit", samples, Smooth().fit_many(samples))


def _has_few_rows(one: FittedTasks) -> bool:
    samples = one.events.samples
    return len(samples) == 1 and 0 < samples[0].n <= FEW_ROWS


def _keep(name: str, samples: Sequence[BinarySample], made: Sequence[Any]) -> None:
    for sample, one in zip(samples, made, strict=True):
        sample.cached(name, partial(_same, one))


def _same(made: Any) -> Any:
    return made
