"""``calibrant apply``: a map and a file of predictions to calibrated ones."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from calibrant.cli.data_options import check_not_source, split_list
from calibrant.core.output_files import ROWS, check_named
from calibrant.core.parameters import check_choice
from calibrant.core.probabilities import check_class_scores, check_probabilities
from calibrant.core.wording import CALIBRATOR_WORDING, CLASS_CALIBRATOR_WORDING, visible
from calibrant.engines.file_formats import APPLIED
from calibrant.exceptions import InputError, OptionError, UnknownNameError
from calibrant.maps.grouped import GroupedMap, group_keys
from calibrant.maps.multiclass import MulticlassMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import FloatMatrix
    from calibrant.engines.aggregation_spec import ModelColumns
    from calibrant.engines.files import FileSet
    from calibrant.engines.memory import MemoryTable

NPZ = ".npz"
MAX_NAMED = 5
"""How many new columns are named one by one."""


class ScaleChoice(StrEnum):
    """What a column of predictions contains."""

    prob = "prob"
    logit = "logit"
    percent = "percent"
    logprob = "logprob"


def apply(
    map_file: Annotated[
        Path,
        typer.Argument(help="Map written by 'calibrant calibrate'.", metavar="MAP"),
    ],
    source: Annotated[
        list[str],
        typer.Argument(
            help="New predictions: CSV, TSV, Parquet, JSON, npz or npy files, a "
            "folder, or a pattern such as 'lake/*.parquet'.",
            metavar="FILE...",
        ),
    ],
    p: Annotated[
        str,
        typer.Option(
            "--p",
            help="Column of probabilities, or the columns of all classes, a,b,c or "
            "'forest_*', in the order used for fitting unless the names are the "
            "same.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            help="File to write: .csv, .tsv, .parquet or .jsonl; for npz input also "
            ".npz.",
        ),
    ],
    suffix: Annotated[
        str,
        typer.Option("--suffix", help="Suffix for the names of the new columns."),
    ] = APPLIED,
    scale: Annotated[
        ScaleChoice | None,
        typer.Option("--scale", help="What a single column contains; usually prob."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option("--engine", help="memory or duckdb; auto chooses by file size."),
    ] = "auto",
) -> None:
    """Add calibrated probabilities to files, keeping all rows and columns."""
    from calibrant.engines.files import check_writable, find_files, is_arrays
    from calibrant.engines.opening import engine_of_files
    from calibrant.maps.stored import load_columns, load_map

    of_arrays = any(is_arrays(name) for name in source)
    if source[0].endswith(NPZ) and out.suffix.lower() == NPZ:
        check_named(out, ROWS)
    else:
        check_writable(out)
    check_choice(engine, ("auto", "memory", "duckdb"), name="--engine")
    if of_arrays:
        _check_one_npz(source, engine)
    check_not_source(source, out)
    if out.exists() and out.samefile(map_file):
        raise OptionError("--out must not be the map itself; choose another name.")
    map_ = load_map(map_file)
    if of_arrays:
        _apply_to_npz(map_, load_columns(map_file), source[0], p, out, suffix, scale)
    else:
        files = find_files(source)
        given = source[0] if len(source) == 1 else source
        if engine == "duckdb" or (
            engine == "auto" and engine_of_files(given, files) == "duckdb"
        ):
            _apply_in_duckdb(map_, files, split_list(p), out, suffix, scale)
        elif len(files.paths) > 1:
            raise OptionError(
                f"the memory engine applies a map to one file at a time, but {files} "
                f"is {len(files.paths)} files; pass one, or remove --engine."
            )
        else:
            path = Path(files.paths[0])
            _apply_in_memory(map_, load_columns(map_file), path, p, out, suffix, scale)
    if hasattr(map_, "certificate"):
        typer.echo(map_.certificate)


def _apply_in_duckdb(
    map_: Any,
    files: FileSet,
    columns: list[str],
    out: Path,
    suffix: str,
    scale: ScaleChoice | None,
) -> None:
    from calibrant.engines.duckdb import apply_in_duckdb

    if isinstance(map_, MulticlassMap | GroupedMap):
        kind = (
            "multi-class maps" if isinstance(map_, MulticlassMap) else "maps of groups"
        )
        raise OptionError(
            f"{kind} are applied in memory; use --engine memory, one file at a time."
        )
    if len(columns) != 1:
        raise OptionError(
            f"this map needs one column in --p; got {len(columns)}: "
            f"{', '.join(columns)}."
        )
    if scale not in (None, ScaleChoice.prob):
        raise OptionError(
            f"--scale {scale} is applied in memory; use --engine memory, one file "
            "at a time."
        )
    name = f"{columns[0]}{suffix}"
    to_sql = partial(map_.to_sql, dialect="duckdb", accuracy=0.0)
    rows = apply_in_duckdb(to_sql, files, columns[0], name, out)
    _say_written(out, rows, [name])


def _check_one_npz(source: list[str], engine: str) -> None:
    if len(source) > 1:
        raise OptionError(
            f"a map is applied to one npz file at a time; got {len(source)} files "
            "are named."
        )
    if engine == "duckdb":
        raise OptionError("npz files are read in memory; remove --engine.")


def _apply_to_npz(
    map_: Any,
    fitted: list[str] | None,
    source: str,
    p: str,
    out: Path,
    suffix: str,
    scale: ScaleChoice | None,
) -> None:
    from calibrant.core.tasks import InputSpec
    from calibrant.engines.file_formats import add_arrays
    from calibrant.engines.memory import open_table
    from calibrant.predictions.columns import models_of_table

    table = open_table(source)
    (model,) = models_of_table(table, {"": split_list(p)}, InputSpec())
    model = _in_order_of_fit(model, fitted)
    map_ = _of_rows(map_, table.keys, table.names)
    calibrated = _calibrated(map_, model.read(table), model, scale)
    new = {f"{name}{suffix}": calibrated for name in model.named}
    if not model.matrix:
        new = dict(zip(new, calibrated.T, strict=True))
    _check_names_free(source, new, table.names)
    names = list(new)
    if out.suffix.lower() == NPZ:
        add_arrays(Path(source), new, out)
    else:
        names = _write_columns(table, model, calibrated, out, suffix)
    _say_written(out, len(calibrated), names)


def _say_written(out: Path, n_rows: int, names: list[str]) -> None:
    few = len(names) <= MAX_NAMED
    added = ", ".join(names) if few else f"{names[0]} .. {names[-1]}"
    typer.echo(f"wrote {out}: {n_rows:,} rows, new {added}")


def _write_columns(
    table: MemoryTable,
    model: ModelColumns,
    calibrated: FloatMatrix,
    out: Path,
    suffix: str,
) -> list[str]:
    """Write the arrays of an npz file as columns of a table; name the new ones."""
    from calibrant.engines.file_formats import split_matrix, write_frame
    from calibrant.engines.files import load_polars

    columns: dict[str, Any] = {}
    others = []
    for name in table.names:
        array = table.read(name)
        if array.ndim not in (1, 2) or len(array) != len(calibrated):
            others.append(name)
        else:
            columns |= split_matrix(name, array)
    parts = [calibrated] if model.matrix else list(calibrated.T)
    new: dict[str, Any] = {}
    for name, values in zip(model.named, parts, strict=True):
        new |= split_matrix(name, values, suffix)
    _check_names_free(out, new, list(columns))
    polars = load_polars(f"writing {out.suffix} files")
    write_frame(polars.DataFrame(columns | new), out)
    if others:
        typer.echo(
            "not copied, because they have a different number of rows: "
            f"{visible(', '.join(others))}",
            err=True,
        )
    return list(new)


def _in_order_of_fit(model: ModelColumns, fitted: list[str] | None) -> ModelColumns:
    """Return the columns as they were fitted, whatever their order here."""
    if fitted is None or set(fitted) != set(model.columns):
        return model
    return replace(model, columns=tuple(fitted))


def _check_names_free(source: Any, new: Iterable[str], names: Sequence[str]) -> None:
    for name in new:
        if name in names:
            raise OptionError(
                f"{source} already has a column {name!r}; choose another --suffix."
            )


def _apply_in_memory(
    map_: Any,
    fitted: list[str] | None,
    source: Path,
    p: str,
    out: Path,
    suffix: str,
    scale: ScaleChoice | None,
) -> None:
    from calibrant.engines.file_formats import read_rows, write_frame
    from calibrant.engines.files import SEPARATORS, suffix_of
    from calibrant.engines.text_files import typed_frame
    from calibrant.predictions.columns import model_columns

    # From text to text, numbers are neither parsed nor rewritten.
    frame, _ = read_rows(source)
    if suffix_of(source) in SEPARATORS and out.suffix.lower() not in SEPARATORS:
        frame = typed_frame(frame)
    (model,) = model_columns({"": split_list(p)}, task=None, names=frame.columns)
    model = _in_order_of_fit(model, fitted)
    names = [f"{column}{suffix}" for column in model.columns]
    _check_names_free(source, names, frame.columns)
    values = _numbers(frame, model)
    map_ = _of_rows(map_, lambda name: frame[name].to_numpy(), frame.columns)
    calibrated = _calibrated(map_, values, model, scale)
    write_frame(_with_columns(frame, names, calibrated), out)
    _say_written(out, frame.height, names)


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
                    f"column {name!r} must contain numbers; row {row} is {text[row]!r}."
                )
        columns.append(column.to_numpy())
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


def _of_rows(
    map_: Any, read: Callable[[str], NDArray[Any]], names: Sequence[str]
) -> Any:
    """Return a map that differs by group as that of the rows at hand."""
    if not isinstance(map_, GroupedMap):
        return map_
    for name in map_.by:
        if name not in names:
            raise OptionError(
                f"this map differs by column {name!r}, which is missing. Columns are: "
                f"{', '.join(names)}."
            )
    keys = group_keys([read(name) for name in map_.by])
    numbers = map_.numbers(keys)
    if (unseen := numbers < 0).any():
        first = ", ".join(map(str, keys[int(np.argmax(unseen))]))
        typer.echo(
            f"{unseen.sum():,} of {unseen.size:,} rows belong to groups without a map, "
            f"such as {visible(first)}; they get the common map."
        )
    return SimpleNamespace(transform=partial(map_.values, numbers=numbers))


def _calibrated(
    map_: Any,
    values: NDArray[Any],
    model: ModelColumns,
    scale: ScaleChoice | None,
) -> FloatMatrix:
    """Return the calibrated columns, (n, k)."""
    several = isinstance(map_, MulticlassMap)
    if several != (values.ndim > 1):
        raise OptionError(_needed(map_, model))
    if not several:
        words = replace(CALIBRATOR_WORDING, prob=str(model), takes_scale=True)
        held: Any = (scale or ScaleChoice.prob).value
        p = check_probabilities(values, scale=held, wording=words)
        return np.asarray(map_.transform(p))[:, np.newaxis]
    if scale not in (None, map_.scale):
        raise OptionError(
            f"this map was fitted to columns of scale {map_.scale}; remove --scale."
        )
    if len(model.columns) != map_.n_classes:
        raise OptionError(_needed(map_, model))
    words = replace(CLASS_CALIBRATOR_WORDING, prob=str(model))
    return np.asarray(
        map_.calibrated(check_class_scores(values, scale=map_.scale, wording=words))
    )


def _needed(map_: Any, model: ModelColumns) -> str:
    several = isinstance(map_, MulticlassMap)
    needed = f"the columns of all {map_.n_classes} classes" if several else "one column"
    return (
        f"this map needs {needed} in --p; got {len(model.columns)}: "
        f"{', '.join(model.columns)}."
    )


def _with_columns(frame: Any, names: list[str], values: FloatMatrix) -> Any:
    import polars as pl

    new = (
        pl.Series(name, column) for name, column in zip(names, values.T, strict=True)
    )
    return frame.with_columns(*new)
