"""``calibrant apply``: a map and a file of predictions to calibrated ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from calibrant._validation.probabilities import check_class_scores, check_probabilities
from calibrant._validation.wording import CALIBRATORS, CLASS_CALIBRATORS
from calibrant.cli import options
from calibrant.cli.columns import listed
from calibrant.exceptions import InputError, OptionError, UnknownNameError
from calibrant.maps.multiclass import MulticlassMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant._typing import FloatMatrix
    from calibrant.measures.table_models import ModelColumns


def apply(
    map_file: Annotated[
        Path, typer.Argument(help="What 'calibrant calibrate' wrote.", metavar="MAP")
    ],
    source: Annotated[
        Path,
        typer.Argument(
            help="New predictions: CSV, TSV, Parquet or JSON lines.", metavar="FILE"
        ),
    ],
    p: Annotated[
        str,
        typer.Option(
            "--p",
            help="Column of probabilities; or the columns of all classes, a,b,c or "
            "'forest_*', in the order of the fit unless they have the same names.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", help="Where to write: .csv, .tsv, .parquet, .jsonl."),
    ],
    suffix: Annotated[
        str,
        typer.Option("--suffix", help="What new columns are called after their p."),
    ] = "_calibrated",
    scale: Annotated[
        options.Holds | None,
        typer.Option("--scale", help="What a single column holds; usually prob."),
    ] = None,
) -> None:
    """Add calibrated probabilities to a file; all its rows and columns stay."""
    from calibrant.engines.files import (
        SEPARATORS,
        check_writable,
        read_frame,
        write_frame,
    )
    from calibrant.maps.stored import load_columns, load_map
    from calibrant.measures.table_models import model_columns

    check_writable(out)
    if out.exists() and source.exists() and out.samefile(source):
        raise OptionError("--out is the file that is read; choose another name.")
    map_, fitted = load_map(map_file), load_columns(map_file)
    # From text to text nothing is read into numbers and written anew.
    frame = read_frame(source, as_text=out.suffix.lower() in SEPARATORS)
    model = model_columns({"": listed(p)}, task=None, names=frame.columns)[0]
    if fitted is not None and set(fitted) == set(model.columns):
        model = replace(model, columns=tuple(fitted))  # whatever their order here
    names = [f"{column}{suffix}" for column in model.columns]
    for name in names:
        if name in frame.columns:
            raise OptionError(
                f"{source} has a column {name!r} already; choose another --suffix."
            )
    values = _numbers(frame, model)
    calibrated = _calibrated(map_, values, model, scale)
    write_frame(_with_columns(frame, names, calibrated), out)
    typer.echo(f"wrote {out}: {frame.height:,} rows, new {', '.join(names)}")


def _numbers(frame: Any, model: ModelColumns) -> NDArray[Any]:
    """Return the columns as numbers, (n,) or (n, k)."""
    import polars as pl

    columns = []
    for name in model.columns:
        if name not in frame.columns:
            raise UnknownNameError.among("column", name, frame.columns)
        column = frame[name]
        if column.dtype == pl.String:
            text = column.fill_null("").str.strip_chars()
            column = text.cast(pl.Float64, strict=False)
            wrong = (column.is_null() & (text != "")).to_numpy()
            if wrong.any():
                row = int(np.argmax(wrong))
                raise InputError(
                    f"column {name!r} must hold numbers; row {row} is {text[row]!r}."
                )
        columns.append(column.to_numpy())
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


def _calibrated(
    map_: Any,
    values: NDArray[Any],
    model: ModelColumns,
    scale: options.Holds | None,
) -> FloatMatrix:
    """Return the calibrated columns, (n, k)."""
    several = isinstance(map_, MulticlassMap)
    if several != (values.ndim > 1):
        raise OptionError(_needed(map_, model))
    logits = "If these are logits, pass --scale logit."
    if not several:
        words = replace(CALIBRATORS, prob=str(model), logits=logits)
        held: Any = (scale or options.Holds.prob).value
        p = check_probabilities(values, scale=held, wording=words)
        return np.asarray(map_.transform(p))[:, np.newaxis]
    if scale not in (None, map_.scale):
        raise OptionError(
            f"this map was fitted to columns of scale {map_.scale}; leave out --scale."
        )
    if len(model.columns) != map_.n_classes:
        raise OptionError(_needed(map_, model))
    words = replace(CLASS_CALIBRATORS, prob=str(model))
    return np.asarray(
        map_.transform(check_class_scores(values, scale=map_.scale, wording=words))
    )


def _needed(map_: Any, model: ModelColumns) -> str:
    several = isinstance(map_, MulticlassMap)
    needed = f"all {map_.n_classes} columns of classes" if several else "one column"
    return (
        f"this map needs {needed} by --p; it names {len(model.columns)}: "
        f"{', '.join(model.columns)}."
    )


def _with_columns(frame: Any, names: list[str], values: FloatMatrix) -> Any:
    import polars as pl

    new = (
        pl.Series(name, column) for name, column in zip(names, values.T, strict=True)
    )
    return frame.with_columns(*new)
