"""A cache on each sample: what functions compute from it is computed once."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from calibrant.core.sample import BinarySample

Result = TypeVar("Result")


def cached_on_sample(
    name: str,
) -> Callable[[Callable[[BinarySample], Result]], Callable[[BinarySample], Result]]:
    """Cache what a function computes from a sample, by name; it must be small.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.core.sample import BinarySample
    >>> @cached_on_sample("mean prediction")
    ... def mean_prediction(sample):
    ...     print("computed")
    ...     return float(sample.p.mean())
    >>> sample = BinarySample(np.array([0.25, 0.5]), np.array([0.0, 1.0]))
    >>> mean_prediction(sample), mean_prediction(sample)
    computed
    (0.375, 0.375)
    """

    def cached(
        compute: Callable[[BinarySample], Result],
    ) -> Callable[[BinarySample], Result]:
        @wraps(compute)
        def once(sample: BinarySample) -> Result:
            if name not in sample.cache:
                sample.cache[name] = compute(sample)
            result: Result = sample.cache[name]
            return result

        return once

    return cached


def fill_cache(
    name: str, samples: Iterable[BinarySample], results: Iterable[object]
) -> None:
    """Cache results that were computed for many samples at once."""
    for sample, result in zip(samples, results, strict=True):
        sample.cache.setdefault(name, result)
