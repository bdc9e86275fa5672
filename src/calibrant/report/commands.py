"""How a repair is made: the exact command and the Python call."""

from __future__ import annotations

import csv
import io
import shlex
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from calibrant.calibrators.registry import find_method
from calibrant.core.defaults import MAX_DROPPED
from calibrant.engines.files import FILE_COLUMN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import Scale
    from calibrant.predictions.predictions import Predictions

HELD_OUT = "held_out.parquet"
"""What commands call very many files."""
MAX_FILES = 3


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the predictions of a model come from, as commands and calls name it.

    There are no `files` where predictions came as arrays or a table in memory;
    `several` tells whether there is a column for each class; `max_dropped` is None
    where invalid rows are errors; `by` is the column of the models of a long table.
    """

    files: tuple[str, ...] = ()
    label: str = "y"
    weight: str | None = None
    columns: tuple[str, ...] = ("p",)
    several: bool = False
    task: str = "binary"
    pos_label: Any = None
    labels: tuple[Any, ...] | None = None
    scale: Scale = "prob"
    max_dropped: float | None = None
    by: str | None = None

    @classmethod
    def of(cls, preds: Predictions, model: str) -> Origin | None:
        """Return where a model comes from; None for aggregated predictions."""
        request, columns = preds.store.request, preds.store.columns_of(model)
        if request is None or columns is None:
            return None
        files, labels = preds.store.files, preds.store.class_labels(model)
        spec, several = request.spec, len(columns.columns) > 1
        one_class = not several and spec.task is not None
        return cls(
            files=files if len(files) <= MAX_FILES else (HELD_OUT,),
            label=request.label_of(model),
            weight=request.weight,
            columns=columns.named,
            several=several,
            task=preds.task,
            pos_label=spec.task if one_class else spec.pos_label,
            labels=None if labels is None else tuple(labels),
            scale=spec.scale_of(columns.name),
            max_dropped=request.max_dropped if request.bad_rows == "drop" else None,
            by=request.model,
        )

    @property
    def has_command(self) -> bool:
        """Tell whether the command line can fit a map to these predictions.

        It takes files, and names that can be read and are not blank at their ends; it
        does not take one column of one class, as labels are of more than two kinds.
        Maps of groups are of one column, and of a column that new files have, too.
        """
        listed = [*self.columns, *map(str, self.labels or ()), self.by or "-"]
        grouped = self.by is not None and (self.several or self.by == FILE_COLUMN)
        shown = [*listed, *self.files, self.label, self.weight or "", self.pos_label]
        one_class = not self.several and self.task != "binary"
        return (
            bool(self.files)
            and not one_class
            and not grouped
            and all(name and name == name.strip() for name in listed)
            and all(str(name).isprintable() for name in shown)
        )

    def is_of_classes(self, method: str) -> bool:
        """Tell whether a method calibrates all classes here, rather than one event."""
        kinds = find_method(method).kinds
        either = self.several and self.task in ("confidence", "classwise")
        return kinds == ("multi-class",) or (either and "multi-class" in kinds)

    def column(self, method: str) -> int | None:
        """Return the column that a method takes, None where it takes all there are."""
        of_all = not self.several or self.task in ("binary", "confidence", "classwise")
        if of_all or self.is_of_classes(method):
            return None
        classes = [str(label) for label in self.labels or ()]
        return classes.index(self.task) if self.task in classes else int(self.task)


def command(origin: Origin, method: str) -> str:
    """Return the commands that fit a map and apply it; empty where none can.

    >>> print(command(Origin(files=("a.csv",), columns=("my p",)), "smooth"))
    calibrant calibrate a.csv --y y --p 'my p' --method smooth --out map.json
    calibrant apply map.json new.csv --p 'my p' --out calibrated.csv
    """
    if not origin.has_command or origin.column(method) is not None:
        return ""
    files = [f"./{file}" if file.startswith("-") else file for file in origin.files]
    columns = ["--p", _list_names(origin.columns)]
    fit = ["calibrant", "calibrate", *files, "--y", origin.label, *columns]
    fit += ["--method", method]
    if origin.by is not None:
        fit += ["--by", _list_names([origin.by])]
    if origin.weight is not None:
        fit += ["--weight", origin.weight]
    if origin.pos_label is not None:
        fit += ["--pos-label", str(origin.pos_label)]
    labels = [*map(str, origin.labels or origin.columns)]
    if labels != [*origin.columns]:
        fit += ["--labels", _list_names(labels)]
    scale = [] if origin.scale == "prob" else ["--scale", origin.scale]
    fit += scale
    if origin.max_dropped is not None:
        fit += ["--bad-rows", "drop"]
        if origin.max_dropped != MAX_DROPPED:
            fit += ["--max-dropped", f"{origin.max_dropped:g}"]
    suffix = PurePath(origin.files[0]).suffix
    if suffix not in (".csv", ".tsv", ".parquet", ".jsonl", ".npz"):
        suffix = ".parquet"
    apply = ["calibrant", "apply", "map.json", f"new{suffix}", *columns]
    apply += [] if origin.several else scale
    if origin.max_dropped is not None:  # new files may lack predictions as well
        apply.append("--allow-missing")
    lines = [*fit, "--out", "map.json"], [*apply, "--out", f"calibrated{suffix}"]
    return "\n".join(shlex.join(line) for line in lines)


def python(origin: Origin, method: str) -> str:
    """Return the Python call that does the same.

    >>> print(python(Origin(scale="percent"), "auto"))
    import calibrant as cb
    calibrator = cb.make_calibrator("auto", scale="percent").fit(p, y)  # held-out rows
    calibrated = calibrator.transform(new_p)
    """
    imports, p, y, options = ["import calibrant as cb"], "{}", "y", []
    column, scale = origin.column(method), origin.scale
    if column is not None:
        p, y = f"{{}}[:, {column}]", f"y == {_label(origin, column)!r}"
        if scale == "logit":  # those of one class say nothing without the others
            imports.append("from scipy.special import softmax")
            p, scale = f"softmax({{}}, axis=1)[:, {column}]", "prob"
    elif origin.several and origin.labels is not None:
        options = [f"labels={[_literal(label) for label in origin.labels]!r}"]
    elif origin.pos_label is not None:
        y = f"y == {_literal(origin.pos_label)!r}"  # there may be more than two labels
    if scale != "prob":
        options = [f'scale="{scale}"', *options]
    weight = "" if origin.weight is None else ", sample_weight=weight"
    made = ", ".join([f'cb.make_calibrator("{method}"', *options])
    return "\n".join(
        [
            *imports,
            f"calibrator = {made}).fit({p.format('p')}, {y}{weight})  # held-out rows",
            f"calibrated = calibrator.transform({p.format('new_p')})",
        ]
    )


def _label(origin: Origin, column: int) -> Any:
    """Return the label of a column."""
    return _literal((origin.labels or range(column + 1))[column])


def _literal(value: Any) -> Any:
    """Return a number of an array as one of Python, so that it can be written."""
    return value.item() if hasattr(value, "item") else value


def _list_names(names: Sequence[str]) -> str:
    """Return names as --p takes them: with commas between, in quotes where needed.

    >>> print(_list_names(["a", "b, c", "x=1"]))
    "a","b, c","x=1"
    """
    line = io.StringIO()
    # Before an equals sign would stand the name of a model, unless it is in quotes.
    if any("=" in name for name in names):
        csv.writer(line, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerow(names)
    else:
        csv.writer(line, lineterminator="\r\n").writerow(names)
    return line.getvalue().removesuffix("\r\n")
