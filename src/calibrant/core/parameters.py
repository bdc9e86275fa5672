"""Checks of parameters that are not data: choices, counts, shares and seeds."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from calibrant.exceptions import Argument, OptionError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calibrant.core.array_types import Seed

Choice = TypeVar("Choice")


def check_choice(value: Choice, choices: Iterable[Any], *, name: str) -> Choice:
    """Return `value` where it is one of `choices`."""
    known = list(choices)
    if value not in known:
        raise UnknownNameError.among(name, value, known)
    return value


def check_positive(value: float, *, name: str) -> float:
    """Return a finite number above 0."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and value > 0):
        raise OptionError(Argument(name), f" must be a number above 0; got {value!r}.")
    return float(value)


def check_fraction(value: float, *, name: str) -> float:
    """Return a number strictly between 0 and 1."""
    if not (isinstance(value, Real) and 0.0 < value < 1.0):
        raise OptionError(
            Argument(name),
            f" must lie strictly between 0 and 1; got {value!r}.",
        )
    return float(value)


def check_share(value: float, *, name: str) -> float:
    """Return a number from 0 to 1."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and 0.0 <= value <= 1.0):
        raise OptionError(
            Argument(name), f" must be a share from 0 to 1; got {value!r}."
        )
    return float(value)


def check_count(value: int, *, name: str, least: int = 1) -> int:
    """Return a whole number of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise OptionError(
            Argument(name),
            f" must be a whole number of at least {least}; got {value!r}.",
        )
    return int(value)


def check_flag(value: bool, *, name: str) -> bool:  # noqa: FBT001
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise OptionError(Argument(name), f" must be True or False; got {value!r}.")
    return bool(value)


def check_penalties(value: Any, *, name: str) -> tuple[float, ...]:
    """Return one or several finite numbers of at least 0 as a tuple."""
    values = (value,) if isinstance(value, Real) else value
    wrong = not isinstance(values, list | tuple) or not values
    if wrong or not all(
        isinstance(v, int | float | np.number) and 0.0 <= v < math.inf for v in values
    ):
        raise OptionError(
            Argument(name),
            " must be a number of at least 0, or a tuple of such numbers; "
            f"got {value!r}.",
        )
    return tuple(float(v) for v in values)


def legacy_generator(seed: Seed) -> np.random.RandomState | np.random.Generator:
    """Return what shuffles folds: for an int, as scikit-learn's KFold does."""
    if isinstance(seed, np.random.RandomState | np.random.Generator):
        return seed
    _check_seed(seed)
    return np.random.RandomState(seed)


def generator(seed: Seed) -> np.random.Generator:
    """Return what draws bootstrap samples."""
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, np.random.RandomState):
        return np.random.default_rng(seed.randint(2**31))
    _check_seed(seed)
    return np.random.default_rng(seed)


def whole_seed(seed: Seed) -> int:
    """Return a whole number that gives the same draws wherever it is used."""
    if isinstance(seed, Integral):
        _check_seed(int(seed))
        return int(seed)
    return int(generator(seed).integers(2**32))


def _check_seed(seed: int | None) -> None:
    if seed is not None and not (isinstance(seed, Integral) and 0 <= seed < 2**32):
        others = "" if isinstance(seed, Integral) else ", a NumPy generator or None"
        raise OptionError(
            Argument("random_state"),
            f" must be a whole number from 0 to 2**32 - 1{others}; got {seed!r}.",
        )
