"""How a repair is made: the exact command and the Python call."""

from __future__ import annotations

import csv
import io
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.calibrators.registry import find_method

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import Scale
    from calibrant.predictions.columns import ModelColumns
    from calibrant.predictions.input_spec import InputSpec

HELD_OUT = "held_out.parquet"
"""What commands call very many files."""
MAX_FILES = 3


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the predictions of a model come from.

    Attributes
    ----------
    files : tuple of str
        The files; none where they came as arrays or a table in memory.
    label, weight : str or None
        Columns of labels and of weights.
    columns : tuple of str
        Columns of the predictions.
    several : bool
        Whether there is a column for each class.
    task : str
        "binary", "confidence", "classwise" or a class.
    pos_label : object
        The label of the event, None where it is 1 or True.
    labels : tuple or None
        The label of each class column.
    scale : {"prob", "logit", "percent", "logprob"}
        What the columns hold.
    fit_options : tuple of str
        Further options that the command which fits a map needs.
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
    fit_options: tuple[str, ...] = ()

    @property
    def commanded(self) -> bool:
        """Tell whether the command line can fit a map to these predictions.

        It takes files, and names that can be read and are not blank at their ends; one
        column of one class it does not take, as labels are of more than two kinds.
        """
        listed = [*self.columns, *map(str, self.labels or ())]
        shown = [*listed, *self.files, self.label, self.weight or "", self.pos_label]
        one_class = not self.several and self.task != "binary"
        return (
            bool(self.files)
            and not one_class
            and all(name and name == name.strip() for name in listed)
            and all(str(name).isprintable() for name in shown)
        )

    def column(self, method: str) -> int | None:
        """Return the column that a method takes, None where it takes all there are."""
        of_all = not self.several or self.task in ("binary", "confidence", "classwise")
        if of_all or find_method(method).kind == "multi-class":
            return None
        classes = [str(label) for label in self.labels or ()]
        return classes.index(self.task) if self.task in classes else int(self.task)


def origin_of(
    model: ModelColumns,
    spec: InputSpec,
    *,
    files: Sequence[str],
    label: str,
    weight: str | None,
    labels: Sequence[Any] | None,
    fit_options: Sequence[str] = (),
) -> Origin:
    """Return where the predictions in columns of a table come from."""
    several = len(model.columns) > 1
    one_class = not several and spec.task is not None
    return Origin(
        files=tuple(files) if len(files) <= MAX_FILES else (HELD_OUT,),
        label=label,
        weight=weight,
        columns=model.named,
        several=several,
        task="binary" if spec.task is None else str(spec.task),
        pos_label=spec.task if one_class else spec.pos_label,
        labels=None if labels is None else tuple(labels),
        scale=spec.scale_of(model.name),
        fit_options=tuple(fit_options),
    )


def command(origin: Origin, method: str) -> str:
    """Return the commands that fit a map and apply it; empty where none can.

    Examples
    --------
    >>> print(command(Origin(files=("a.csv",), columns=("my p",)), "smooth"))
    calibrant calibrate a.csv --y y --p 'my p' --method smooth --out map.json
    calibrant apply map.json new.csv --p 'my p' --out calibrated.csv
    """
    if not origin.commanded or origin.column(method) is not None:
        return ""
    files = [f"./{file}" if file.startswith("-") else file for file in origin.files]
    fit = ["calibrant", "calibrate", *files, "--y", origin.label]
    columns = ["--p", _listed(origin.columns)]
    fit += [*columns, "--method", method]
    if origin.weight is not None:
        fit += ["--weight", origin.weight]
    if origin.pos_label is not None:
        fit += ["--pos-label", str(origin.pos_label)]
    if origin.labels is not None and [*map(str, origin.labels)] != [*origin.columns]:
        fit += ["--labels", _listed([str(label) for label in origin.labels])]
    scale = [] if origin.scale == "prob" else ["--scale", origin.scale]
    suffix = _written_as(origin.files[0])
    apply = ["calibrant", "apply", "map.json", f"new{suffix}", *columns]
    apply += [] if origin.several else scale
    lines = (
        [*fit, *scale, *origin.fit_options, "--out", "map.json"],
        [*apply, "--out", f"calibrated{suffix}"],
    )
    return "\n".join(shlex.join(line) for line in lines)


def python(origin: Origin, method: str) -> str:
    """Return the Python call that does the same.

    Examples
    --------
    >>> print(python(Origin(), "smooth"))
    import calibrant as cb
    calibrator = cb.make_calibrator("smooth").fit(p, y)  # held-out rows
    calibrated = calibrator.transform(new_p)
    """
    lines = ["import calibrant as cb"]
    p, new, y, options = "p", "new_p", "y", ""
    column = origin.column(method)
    if column is not None:
        label = (origin.labels or range(column + 1))[column]
        p, new = f"p[:, {column}]", f"new_p[:, {column}]"
        y = f"y == {_plain(label)!r}"
    elif origin.pos_label is not None:
        y = f"y == {_plain(origin.pos_label)!r}"
    if find_method(method).kind == "multi-class":
        options = _class_options(origin)
    elif origin.scale == "logit":
        name, axis = ("softmax", ", axis=1") if origin.several else ("expit", "")
        rest = "" if column is None else f"[:, {column}]"
        lines.append(f"from scipy.special import {name}")
        p, new = (f"{name}({of}{axis}){rest}" for of in ("p", "new_p"))
    elif origin.scale == "percent":
        p, new = f"{p} / 100", f"{new} / 100"
    elif origin.scale == "logprob":
        lines.append("import numpy as np")
        p, new = f"np.exp({p})", f"np.exp({new})"
    weight = "" if origin.weight is None else ", sample_weight=weight"
    made = f'cb.make_calibrator("{method}"{options})'
    lines.append(f"calibrator = {made}.fit({p}, {y}{weight})  # held-out rows")
    lines.append(f"calibrated = calibrator.transform({new})")
    return "\n".join(lines)


def _class_options(origin: Origin) -> str:
    options = "" if origin.scale == "prob" else f', scale="{origin.scale}"'
    if origin.labels is not None:
        options += f", labels={[_plain(label) for label in origin.labels]!r}"
    return options


def _plain(value: Any) -> Any:
    """Return a number of an array as one of Python, so that it can be written."""
    return value.item() if hasattr(value, "item") else value


def _listed(names: Sequence[str]) -> str:
    """Return names as --p takes them: with commas between, in quotes where needed.

    Examples
    --------
    >>> print(_listed(["a", "b, c", "x=1"]))
    "a","b, c","x=1"
    """
    line = io.StringIO()
    # Before an equals sign would stand the name of a model, unless it is in quotes.
    writer = csv.writer(line, lineterminator="\r\n")
    if any("=" in name for name in names):
        writer = csv.writer(line, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    writer.writerow(names)
    return line.getvalue().removesuffix("\r\n")


def _written_as(file: str) -> str:
    """Return the ending of files that `apply` reads and writes."""
    ending = f".{file.rpartition('.')[2]}" if "." in file else ""
    known = (".csv", ".tsv", ".parquet", ".jsonl", ".npz")
    return ending if ending in known else ".parquet"
