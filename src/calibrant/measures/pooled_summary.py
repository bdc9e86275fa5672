"""Summaries of groups, such as hospitals, pooled by random-effects meta-analysis."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from calibrant.core.formatting import fixed
from calibrant.core.text_tables import text_table
from calibrant.exceptions import OptionError
from calibrant.numerics.random_effects import MIN_CENTRES, pool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calibrant.core.array_types import Frame
    from calibrant.core.text_tables import TextFormat
    from calibrant.measures.summary import UnitSummary


class Link(NamedTuple):
    """The scale on which a measure is pooled: there, back, and its derivative."""

    there: Callable[[Any], Any]
    back: Callable[[Any], Any]
    slope: Callable[[Any], Any]


IDENTITY = Link(np.asarray, np.asarray, np.ones_like)
LINKS = {
    "in-the-large": IDENTITY,
    "intercept": IDENTITY,
    "slope": IDENTITY,
    "O:E": Link(np.log, np.exp, lambda value: 1.0 / value),
    "AUROC": Link(logit, expit, lambda value: 1.0 / (value * (1.0 - value))),
}
"""The measures that are pooled."""
DIGITS = 3
"""Decimals of printed values."""
ON_SCALE = ("value", "low", "high", "prediction_low", "prediction_high")


def pool_units(units: Sequence[UnitSummary], confidence: float) -> list[dict[str, Any]]:
    """Return one row per model and measure."""
    if not any(set(unit.key) - {"model"} for unit in units):
        raise OptionError(
            "pooling needs groups, such as hospitals; pass them to summary as groups."
        )
    models = dict.fromkeys(unit.key.get("model") for unit in units)
    return [
        ({} if model is None else {"model": model})
        | _pool_measure(
            name, [u for u in units if u.key.get("model") == model], confidence
        )
        for model in models
        for name in LINKS
    ]


def pooled_table(
    frame: Frame,
    level: str,
    format: TextFormat = "text",  # noqa: A002
) -> str:
    """Return what `pool_units` gave as a table for readers."""
    named = {"model": frame["model"].tolist()} if "model" in frame else {}
    columns = named | {
        "measure": frame["measure"].tolist(),
        "value": [fixed(value, DIGITS) for value in frame["value"].tolist()],
        level: _ranges(frame["low"], frame["high"]),
        "prediction interval": _ranges(
            frame["prediction_low"], frame["prediction_high"]
        ),
        "tau": [fixed(value, DIGITS) for value in frame["tau"].tolist()],
        "groups": [f"{count}" for count in frame["groups"]],
        "n": [f"{count:,}" for count in frame["n"]],
    }
    rows = list(zip(*columns.values(), strict=True))
    right = [name not in ("model", "measure") for name in columns]
    return text_table(list(columns), rows, right, format)


def _ranges(low: Any, high: Any) -> list[str]:
    ends = zip(low.tolist(), high.tolist(), strict=True)
    return [f"{fixed(a, DIGITS)} to {fixed(b, DIGITS)}" for a, b in ends]


def _pool_measure(
    name: str, units: Sequence[UnitSummary], confidence: float
) -> dict[str, Any]:
    """Return one measure over the groups that have a value and a standard error."""
    link = LINKS[name]
    used = [unit for unit in units if unit[name].error > 0.0]
    if len(used) < MIN_CENTRES:
        raise OptionError(
            f"pooling needs at least {MIN_CENTRES} groups with a standard error; "
            f"{name} has {len(used)} of {len(units)}."
        )
    values = np.array([unit[name].value for unit in used])
    errors = np.array([unit[name].error for unit in used]) * link.slope(values)
    pooled = asdict(pool(link.there(values), errors, confidence))
    row = {one: float(link.back(pooled[one])) for one in ON_SCALE}
    rows = sum(unit.n for unit in used)
    return {
        "measure": name,
        **row,
        "tau": pooled["tau"],
        "groups": len(used),
        "n": rows,
    }
