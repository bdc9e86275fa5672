"""Whether a file of cells can be what it says it is."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.engines.cells import COUNTS, CellOrigin, few_groups
from calibrant.engines.files import load_polars
from calibrant.exceptions import CalibrantError, SourceError
from calibrant.numerics.cell_grid import ROOTS, WIDTHS, cell_numbers

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

VERSION = 2
GRID = f"{WIDTHS} widths, {ROOTS} fourth roots"
"""Only cells of the same grid add up."""
ROUNDING = 1e-9
"""Sums of many rows may differ by so much of themselves."""


@contextmanager
def damaged(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever is wrong with a file into one clear error."""
    pl = load_polars("reading .parquet files")
    try:
        yield
    except SourceError as error:
        raise SourceError(f"{path} {error}") from None
    except (
        CalibrantError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        OSError,
        LookupError,
        TypeError,
        ValueError,
        OverflowError,
        RecursionError,
    ) as error:
        what = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise SourceError(
            f"{path} is a damaged file of cells: {what}. Aggregate the rows again."
        ) from None


def read_origin(told: Any) -> tuple[CellOrigin, int]:
    """Return what cells were gathered from, and the rows that could not be used."""
    if (told["version"], told["grid"]) != (VERSION, GRID):
        raise SourceError(
            "holds cells of another version of calibrant; aggregate the rows again."
        )
    events = [(model, event) for model, event in told["events"]]
    model = told.get("model_column", "")
    names = [told["task"], *(name for event in events for name in event), *told["by"]]
    names.append(model)
    _refuse(not events, "it names no events")
    _refuse(not all(isinstance(name, str) for name in names), "names must be text")
    _refuse(not isinstance(told["weighted"], bool), "weighted must be true or false")
    dropped = told["dropped"]
    _refuse(type(dropped) is not int or dropped < 0, "dropped must be a count")
    by = tuple(told["by"])
    _refuse(bool(model) and model not in by, "the column of models is no group")
    return CellOrigin(told["task"], tuple(events), by, told["weighted"], model), dropped


def check_sums(columns: dict[str, NDArray[Any]], events: int) -> None:
    """Raise unless columns can be sums over rows of cells of the grid."""
    for name, values in columns.items():
        whole = name in COUNTS
        kinds = "iu" if whole else "f"
        _refuse(values.dtype.kind not in kinds, f"column {name!r} has a wrong type")
        _refuse(not np.isfinite(values).all(), f"column {name!r} has values missing")
    _refuse(columns["cell"].size == 0, "there are no cells")
    _refuse(
        not np.isin(columns["event"], np.arange(events)).all(),
        "column 'event' names none",
    )
    rows, happened = columns["rows"], columns["happened"]
    low, high = columns["low"], columns["high"]
    _refuse(rows < 1, "column 'rows' must hold counts")
    _refuse((happened < 0) | (happened > rows), "more happened than there are rows")
    _refuse((low < 0.0) | (low > high) | (high > 1.0), "predictions leave [0, 1]")
    apart = (cell_numbers(low) != columns["cell"]) | (
        cell_numbers(high) != columns["cell"]
    )
    _refuse(apart, "predictions are outside their cells")
    weight = rows
    if "weight" in columns:
        weight = columns["weight"]
        _check_weights(columns)
    ends = np.sort([np.minimum(low, 1.0 - low), np.minimum(high, 1.0 - high)], axis=0)
    slack = ROUNDING * weight * ends[1]
    apart = columns["near"] < weight * ends[0] - slack
    apart |= columns["near"] > weight * ends[1] + slack
    _refuse(apart, "mean predictions are outside their cells")


def _check_weights(columns: dict[str, NDArray[Any]]) -> None:
    weight, happened = columns["weight"], columns["weight_happened"]
    most = weight * (1.0 + ROUNDING)
    _refuse(weight <= 0.0, "weights must be above 0")
    _refuse((happened < 0.0) | (happened > most), "weights of events are impossible")
    least = weight * weight / columns["rows"] * (1.0 - ROUNDING)
    _refuse(columns["weight_squared"] < least, "squared weights are impossible")


def check_groups(
    columns: dict[str, NDArray[Any]], groups: Sequence[tuple[Any, ...]]
) -> None:
    """Raise unless every event has the rows of its group, few of them one by one."""
    events = int(columns["event"].max()) + 1
    code = columns["group"] * events + columns["event"]
    own = np.bincount(code, columns["rows"], minlength=len(groups) * events)
    own = own.reshape(-1, events)
    _refuse(own != own[:, :1], "events of a group have different rows")
    few = few_groups(columns, len(groups))[columns["group"]]
    _refuse(few & (columns["low"] != columns["high"]), "few rows are not kept")


def _refuse(wrong: Any, what: str) -> None:
    """Raise where something is wrong, be it one thing or one of many."""
    if np.any(wrong):
        raise ValueError(what)
