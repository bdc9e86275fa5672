"""``calibrant apply``: a map and a file of predictions to calibrated ones."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from calibrant.calibrators.map_warnings import (
    usual_range,
    warn_if_many_outside,
    warn_if_outside,
)
from calibrant.cli.data_options import check_not_source
from calibrant.cli.options import split_list
from calibrant.core.array_types import Scale
from calibrant.core.output_files import ROWS, check_named
from calibrant.core.parameters import check_choice
from calibrant.core.probabilities import check_class_scores, check_probabilities
from calibrant.core.tasks import InputSpec
from calibrant.core.wording import CALIBRATOR_WORDING, CLASS_CALIBRATOR_WORDING, visible
from calibrant.engines.file_formats import APPLIED
from calibrant.exceptions import MissingValueError, OptionError
from calibrant.maps.grouped import GroupedMap, group_keys
from calibrant.maps.multiclass import MulticlassMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import FloatMatrix
    from calibrant.engines.aggregation_spec import ModelColumns
    from calibrant.engines.files import FileSet
    from calibrant.engines.memory import MemoryTable

MAX_NAMED = 5
"""How many new columns are named one by one."""


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
            help="Column of predictions, or the columns of all classes, a,b,c or "
            "'forest_*', in the order used for fitting unless the names are the "
            "same.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="File to write: .csv, .tsv, .parquet or .jsonl; for npz and npy "
            "input .npz.",
        ),
    ],
    suffix: Annotated[
        str,
        typer.Option(help="Suffix for the names of the new columns."),
    ] = APPLIED,
    scale: Annotated[
        Scale | None,
        typer.Option(
            help="What a single column contains.",
            show_default="what the map was fitted to",
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(help="memory or duckdb; auto chooses by file size."),
    ] = "auto",
    allow_missing: Annotated[
        bool,
        typer.Option(
            "--allow-missing",
            help="Leave the new columns empty in rows without a prediction; otherwise "
            "such rows raise an error.",
        ),
    ] = False,
) -> None:
    """Add calibrated probabilities to files, keeping all rows and columns.

    Whatever the scale of the predictions, probabilities from 0 to 1 are written.
    """
    from calibrant.engines.files import check_writable, find_files
    from calibrant.engines.opening import check_engine
    from calibrant.maps.stored import load_columns, load_map, load_range, load_scale

    chosen: Any = check_choice(engine, ("auto", "memory", "duckdb"), name="--engine")
    if out.suffix.lower() == ".npz":
        check_named(out, ROWS)
    else:
        check_writable(out)
    files = find_files(source)
    if files.kind == "arrays":
        _check_npz(files, out)
    else:
        check_writable(out)
    if chosen == "duckdb":
        check_engine(files, chosen)
    check_not_source(files, out)
    if out.exists() and out.samefile(map_file):
        raise OptionError("--out must not be the map itself; choose another name.")
    job = Application(
        map_=load_map(map_file),
        fitted=load_columns(map_file),
        fitted_range=load_range(map_file),
        columns=split_list(p),
        out=out,
        suffix=suffix,
        scale=scale or load_scale(map_file),
        allow_missing=allow_missing,
    )
    if files.kind == "arrays":
        job.to_npz(files)
    else:
        if engine == "auto":
            engine = job.engine_for(files)
        (job.in_duckdb if engine == "duckdb" else job.in_memory)(files)
    job.say_what_was_fitted()


def _check_npz(files: FileSet, out: Path) -> None:
    """Raise an error unless one file is read and an npz file is written."""
    if len(files.paths) > 1:
        raise OptionError(
            f"a map is applied to one npz file at a time; got {len(files.paths)} files."
        )
    if out.suffix.lower() != ".npz":
        raise OptionError(
            f"--out must end in .npz, since {files} contains arrays; got {str(out)!r}."
        )


@dataclass(frozen=True, kw_only=True)
class Application:
    """A map, the columns that it is applied to, and where the result goes."""

    map_: Any
    fitted: list[str] | None
    fitted_range: tuple[float, float] | None
    columns: list[str]
    out: Path
    suffix: str
    scale: str | None
    allow_missing: bool

    @property
    def memory_only(self) -> str:
        """Return what only the memory engine does, or nothing."""
        if isinstance(self.map_, MulticlassMap):
            return "multi-class maps are"
        if isinstance(self.map_, GroupedMap):
            return "maps of groups are"
        return "" if self.scale in (None, "prob") else f"--scale {self.scale} is"

    def engine_for(self, files: FileSet) -> str:
        """Return the engine that applies the map, where the user names none."""
        from calibrant.engines.memory import MAX_FILES_IN_MEMORY
        from calibrant.engines.opening import engine_of_files

        usual = engine_of_files(files)
        small = usual == "memory" or files.size <= MAX_FILES_IN_MEMORY
        return "memory" if self.memory_only and small else usual

    def in_duckdb(self, files: FileSet) -> None:
        """Write the rows of files without reading them into memory."""
        from calibrant.engines.duckdb_apply import apply_in_duckdb

        if self.memory_only:
            raise OptionError(
                f"{self.memory_only} applied in memory; pass --engine memory."
            )
        if len(self.columns) != 1:
            raise OptionError(
                f"this map needs one column in --p; got {len(self.columns)}: "
                f"{', '.join(self.columns)}."
            )
        (column,) = self.columns
        name = f"{column}{self.suffix}"
        to_sql = partial(self.map_.to_sql, dialect="duckdb", accuracy=0.0, scale="prob")
        limits = None if self.fitted_range is None else usual_range(self.fitted_range)
        with self._hinting():
            done = apply_in_duckdb(
                to_sql,
                files,
                column,
                name,
                self.out,
                limits=limits,
                allow_missing=self.allow_missing,
            )
        if self.fitted_range is not None:
            warn_if_many_outside(done.outside, done.rows, self.fitted_range)
        self._say_written(done.rows, [name], done.empty)

    def in_memory(self, files: FileSet) -> None:
        """Write the rows of files, several of them with a column of their names."""
        import polars as pl

        from calibrant.engines.file_formats import write_frame
        from calibrant.engines.files import FILE_COLUMN, SEPARATORS
        from calibrant.engines.memory import read_files
        from calibrant.engines.text_files import typed_frame

        frame, table = read_files(files)
        model, calibrated = self._calibrated(table)
        # From text to text, numbers are neither parsed nor rewritten.
        if files.is_text and self.out.suffix.lower() not in SEPARATORS:
            frame = typed_frame(frame)
        if len(files.paths) > 1 and FILE_COLUMN not in frame.columns:
            names = pl.Series(FILE_COLUMN, table.column(FILE_COLUMN))
            frame = frame.with_columns(names)
        new = self._new_columns(model, calibrated)
        _check_names_free(files, new, frame.columns)
        columns = (pl.Series(n, values).fill_nan(None) for n, values in new.items())
        write_frame(frame.with_columns(*columns), self.out)
        self._say_written(frame.height, list(new), _count_empty(calibrated))

    def to_npz(self, files: FileSet) -> None:
        """Write the arrays of an npz or npy file, and the calibrated ones."""
        from calibrant.engines.file_formats import add_arrays
        from calibrant.engines.memory import open_table

        (source,) = files.paths
        table = open_table(files)
        model, calibrated = self._calibrated(table)
        named = [f"{name}{self.suffix}" for name in model.named]
        arrays = [calibrated] if model.matrix else list(calibrated.T)
        _check_names_free(source, named, table.names)
        add_arrays(Path(source), dict(zip(named, arrays, strict=True)), self.out)
        self._say_written(len(calibrated), named, _count_empty(calibrated))

    def _calibrated(self, table: MemoryTable) -> tuple[ModelColumns, FloatMatrix]:
        """Return the columns that the map is applied to, and their new values."""
        from calibrant.predictions.columns import models_of_table

        (model,) = models_of_table(table, {"": self.columns}, InputSpec())
        if self.fitted is not None and set(self.fitted) == set(model.columns):
            model = replace(model, columns=tuple(self.fitted))  # in order of the fit
        values, missing = self._filled(model.read(table))
        with self._hinting():
            if isinstance(self.map_, MulticlassMap):
                calibrated = self._calibrated_classes(model, values)
            else:
                calibrated = self._calibrated_events(model, values, missing, table)
        calibrated[missing] = np.nan
        return model, calibrated

    def _filled(self, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return predictions, missing ones filled if allowed, and which these are.

        They are filled rather than left out, so that errors count rows as files do.
        """
        missing = np.zeros(len(values), dtype=bool)
        if self.allow_missing and values.dtype.kind == "f":
            missing = np.isnan(values.reshape(len(values), -1)).any(axis=1)
        if missing.any() and not missing.all():
            values = np.array(values)
            values[missing] = values[np.argmin(missing)]
        return values, missing

    @contextmanager
    def _hinting(self) -> Iterator[None]:
        """Name the way to leave rows without a prediction empty."""
        try:
            yield
        except MissingValueError as error:
            if self.allow_missing or error.value in (np.inf, -np.inf):
                raise
            remedy = "Repair these rows, or leave the new columns empty there: "
            raise error.with_remedy(remedy, "--allow-missing.") from None

    def _calibrated_events(
        self,
        model: ModelColumns,
        values: NDArray[Any],
        missing: NDArray[np.bool_],
        table: MemoryTable,
    ) -> FloatMatrix:
        map_ = self.map_
        if values.ndim > 1:
            raise OptionError(_needed("one column", model))
        words = replace(CALIBRATOR_WORDING, prob=str(model), takes_scale=True)
        scale: Any = self.scale or "prob"
        p = check_probabilities(values, scale=scale, wording=words)
        if self.fitted_range is not None:
            warn_if_outside(p[~missing], self.fitted_range)
        if isinstance(map_, GroupedMap):
            map_ = _of_rows(map_, table.with_rows_of(model.columns[0]))
        return np.array(map_.transform(p))[:, np.newaxis]

    def _calibrated_classes(
        self, model: ModelColumns, values: NDArray[Any]
    ) -> FloatMatrix:
        if len(model.columns) != self.map_.n_classes:
            classes = f"the columns of all {self.map_.n_classes} classes"
            raise OptionError(_needed(classes, model))
        if self.scale not in (None, self.map_.scale):
            raise OptionError(
                f"this map was fitted to columns of scale {self.map_.scale}; remove "
                "--scale."
            )
        words = replace(CLASS_CALIBRATOR_WORDING, prob=str(model))
        scores = check_class_scores(values, scale=self.map_.scale, wording=words)
        return np.array(self.map_.calibrated(scores))

    def _new_columns(
        self, model: ModelColumns, calibrated: FloatMatrix
    ) -> dict[str, NDArray[Any]]:
        """Return the calibrated columns by name; those of a matrix are numbered."""
        matrix = (f"{model.matrix}_{k}" for k in range(calibrated.shape[1]))
        names = (
            f"{n}{self.suffix}" for n in (matrix if model.matrix else model.columns)
        )
        return dict(zip(names, calibrated.T, strict=True))

    def say_what_was_fitted(self) -> None:
        """Print the certificate, and the column of the fit if it is another one."""
        fitted = self.fitted or []
        if len(fitted) == len(self.columns) == 1 and fitted != self.columns:
            names = visible(f"{fitted[0]}, and was applied to {self.columns[0]}")
            typer.echo(f"The map was fitted to column {names}.")
        if hasattr(self.map_, "certificate"):
            typer.echo(f"Certificate of the map: {self.map_.certificate}")

    def _say_written(self, n_rows: int, names: list[str], n_empty: int) -> None:
        few = len(names) <= MAX_NAMED
        added = ", ".join(names) if few else f"{names[0]} .. {names[-1]}"
        usual = getattr(self.map_, "scale", self.scale) in (None, "prob")
        unit = "" if usual else " (probabilities from 0 to 1)"
        left = f"; {n_empty:,} without a prediction stay empty" if n_empty else ""
        typer.echo(f"wrote {self.out}: {n_rows:,} rows, new {added}{unit}{left}")


def _count_empty(calibrated: FloatMatrix) -> int:
    """Return how many rows had no prediction."""
    return int(np.isnan(calibrated).any(axis=1).sum())


def _needed(what: str, model: ModelColumns) -> str:
    return (
        f"this map needs {what} in --p; got {len(model.columns)}: "
        f"{', '.join(model.columns)}."
    )


def _check_names_free(source: Any, new: Iterable[str], names: Sequence[str]) -> None:
    for name in new:
        if name in names:
            raise OptionError(
                f"{source} already has a column {name!r}; choose another --suffix."
            )


def _of_rows(map_: GroupedMap, table: MemoryTable) -> Any:
    """Return a map that differs by group as that of the rows at hand."""
    from calibrant.engines.files import FILE_COLUMN

    for name in map_.by:
        if name not in (*table.names, FILE_COLUMN):
            raise OptionError(
                f"this map depends on column {name!r}, which is missing. Columns are: "
                f"{', '.join(table.names)}."
            )
    keys = group_keys([table.keys(name) for name in map_.by])
    numbers = map_.numbers(keys)
    if (unseen := numbers < 0).any():
        first = ", ".join(map(str, keys[int(np.argmax(unseen))]))
        typer.echo(
            f"{unseen.sum():,} of {unseen.size:,} rows belong to groups without a map, "
            f"such as {visible(first)}; they get the common map."
        )
    return SimpleNamespace(transform=partial(map_.values, numbers=numbers))
