"""What is made of a sample and kept with it, so that it is made once."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.sample import BinarySample

Made = TypeVar("Made")


def kept_on_sample(
    name: str,
) -> Callable[[Callable[[BinarySample], Made]], Callable[[BinarySample], Made]]:
    """Keep what a function makes of a sample under a name; it must be small.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.core.sample import BinarySample
    >>> @kept_on_sample("mean prediction")
    ... def mean_prediction(sample):
    ...     print("made")
    ...     return float(sample.p.mean())
    >>> sample = BinarySample(np.array([0.25, 0.5]), np.array([0.0, 1.0]))
    >>> mean_prediction(sample), mean_prediction(sample)
    made
    (0.375, 0.375)
    """

    def keeping(make: Callable[[BinarySample], Made]) -> Callable[[BinarySample], Made]:
        @wraps(make)
        def once(sample: BinarySample) -> Made:
            if name not in sample.made:
                sample.made[name] = make(sample)
            made: Made = sample.made[name]
            return made

        return once

    return keeping
