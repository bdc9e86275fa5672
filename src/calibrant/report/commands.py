"""How a repair is made: the exact command and the Python call."""

from __future__ import annotations

import csv
import io
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant._typing import Scale


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the predictions of a model come from.

    Attributes
    ----------
    file : str
        The file, empty where they came as arrays or a table in memory.
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
    labels : sequence or None
        The label of each class column.
    scale : {"prob", "logit"}
        What the columns hold.
    """

    file: str = ""
    label: str = "y"
    weight: str | None = None
    columns: tuple[str, ...] = ("p",)
    several: bool = False
    task: str = "binary"
    pos_label: Any = None
    labels: Sequence[Any] | None = None
    scale: Scale = "prob"

    @property
    def one_class(self) -> bool:
        """Tell whether one class of several is looked at."""
        return self.several and self.task not in ("confidence", "classwise")


def command(origin: Origin, method: str) -> str:
    """Return the commands that fit a map and apply it; empty without a file.

    Examples
    --------
    >>> print(command(Origin(file="a.csv", columns=("my p",)), "smooth"))
    calibrant calibrate a.csv --y y --p 'my p' --method smooth --out map.json
    calibrant apply map.json new.csv --p 'my p' --out calibrated.csv
    """
    if not origin.file or origin.one_class:
        return ""
    fit = ["calibrant", "calibrate", origin.file, "--y", origin.label]
    columns = ["--p", _listed(origin.columns)]
    fit += [*columns, "--method", method]
    if origin.weight is not None:
        fit += ["--weight", origin.weight]
    if origin.pos_label is not None:
        fit += ["--pos-label", str(origin.pos_label)]
    if origin.labels is not None:
        fit += ["--labels", _listed([str(label) for label in origin.labels])]
    logits = ["--scale", "logit"] if origin.scale == "logit" else []
    suffix = _written_as(origin.file)
    apply = ["calibrant", "apply", "map.json", f"new{suffix}", *columns]
    apply += [] if origin.several else logits
    lines = (
        [*fit, *logits, "--out", "map.json"],
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
    several = origin.several and not origin.one_class
    p, new, y = "p", "new_p", "y"
    options = ""
    lines = ["import calibrant as cb"]
    if origin.one_class:
        p, new = "p[:, k]", "new_p[:, k]"
        y = f"y == {_literal(origin.task)}"
        lines.append(f"k = ...  # the column of class {_one_line(origin.task)}")
    if several:
        if origin.scale == "logit":
            options += ', scale="logit"'
        if origin.labels is not None:
            options += f", labels={[_plain(label) for label in origin.labels]!r}"
    elif origin.scale == "logit":
        lines.append("from scipy.special import expit")
        p, new = f"expit({p})", f"expit({new})"
    if origin.pos_label is not None:
        y = f"y == {_plain(origin.pos_label)!r}"
    weight = "" if origin.weight is None else ", sample_weight=weight"
    lines += [
        f'calibrator = cb.make_calibrator("{method}"{options}).fit({p}, {y}{weight})'
        f"  # held-out rows",
        f"calibrated = calibrator.transform({new})",
    ]
    return "\n".join(lines)


def _plain(value: Any) -> Any:
    """Return a number of an array as one of Python, so that it can be written."""
    return value.item() if hasattr(value, "item") else value


def _literal(task: str) -> str:
    """Return the label of a class as Python writes it."""
    return task if task.lstrip("-").isdigit() else repr(task)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _listed(names: Sequence[str]) -> str:
    """Return names as --p takes them: with commas between, in quotes where needed."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def _written_as(file: str) -> str:
    """Return the ending of files that `apply` reads and writes."""
    ending = f".{file.rpartition('.')[2]}" if "." in file else ""
    known = (".csv", ".tsv", ".parquet", ".jsonl")
    return ending if ending in known else ".parquet"
