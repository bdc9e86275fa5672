"""Reports of arrays and of tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.arrays import as_array, refuse_different_lengths
from calibrant._validation.class_sample import ClassSample, check_class_sample
from calibrant._validation.options import whole_seed
from calibrant.checks.diagnosis import check_muted
from calibrant.engines.cells import CellTable
from calibrant.engines.groups import Group, group_rows
from calibrant.engines.memory import open_table
from calibrant.exceptions import OptionError
from calibrant.measures.comparison import check_models
from calibrant.measures.estimate import Estimator
from calibrant.measures.evaluation import check_methods
from calibrant.measures.events import Reading
from calibrant.measures.table_models import (
    Columns,
    ModelColumns,
    TableReader,
    models_of_table,
)
from calibrant.report.commands import Origin, origin_of
from calibrant.report.models import ModelRows, Plan
from calibrant.report.of_cells import report_cells
from calibrant.report.report import Report
from calibrant.report.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from calibrant._typing import ArrayLike, Scale, Seed, Task

REPORT_METHODS = ("smooth", "pl", "es15", "ew15")
MOST_GROUPS = 200


def report_table(  # noqa: PLR0913
    source: Any,
    *,
    y: str | None = None,
    p: Columns | Mapping[str, Columns] | None = None,
    by: Columns | None = None,
    methods: Sequence[str] | str = REPORT_METHODS,
    alpha: float = 1,
    task: Task = None,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    sample_weight: str | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale | Mapping[str, Scale] = "prob",
    mute: Sequence[str] | str = (),
    random_state: Seed = 0,
    title: str = "",
    file: str | Sequence[str] = "",
    fit_options: Sequence[str] = (),
    created: datetime | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Make a report of predictions that stand in columns of a table.

    Parameters
    ----------
    source, y, p, by, alpha, task, sample_weight, pos_label, labels, scale
        As in `evaluate_table`, but for engines: a source is read into memory, or is a
        table of cells. All rows are judged together, and each group beside.
    methods : sequence of str
        Estimates of the error; the verdict is about the first that is no squared norm
        ("kce" is one, and has no grades). Of the default ones, those that have more
        bins than there are rows are left out with a warning.
    confidence : float
        Level of intervals and bands.
    n_resamples : int
        Number of bootstrap resamples, or of draws from a posterior.
    mute : sequence of str
        Codes of checks to leave out; see `diagnose`.
    random_state : int, generator or None
        Seeds folds and resamples, the same for all models.
    title : str, optional
        What the report is about; the name of the file, without.
    file : str or sequence of str, optional
        The files that commands on the page name; that of the source, without.
    fit_options : sequence of str, optional
        Options that the command which fits a map repeats, as "--bad-rows", "drop".
    created : datetime, optional
        The time that the report names; now, without.
    progress : callable, optional
        Called with the number of finished and of all parts.

    Returns
    -------
    Report
        ``save("report.html")`` writes it; ``summary`` is all that it shows, as data.

    Examples
    --------
    >>> import calibrant as cb
    >>> report = cb.report_table(cb.datasets.BINARY_FILE, y="even", p="forest")
    >>> print(report)
    forest: probabilities are clearly off. Probabilities are too ... Calibration error
    0.096, 95 % interval ...
    """
    plan = _plan(methods, alpha, confidence, n_resamples, mute, random_state)
    if isinstance(source, CellTable):
        return report_cells(
            source, plan, by=by, title=title, created=created, progress=progress
        )
    if y is None or p is None:
        raise OptionError("y and p must name columns, of labels and probabilities.")
    table = open_table(source)
    reading = Reading(task=task, pos_label=pos_label, labels=labels, scale=scale)
    reader = TableReader(table, y, sample_weight, reading)
    columns = [by] if isinstance(by, str) else list(by or [])
    groups, notes = _largest(group_rows(table, columns) if columns else [])
    named = task is None or isinstance(p, Mapping)
    models = {
        model.name if named else "": ModelRows(
            reader.events(model),
            {group.name: reader.events(model, group.rows) for group in groups},
            _classes(reader, model),
            origin_of(
                model,
                reading,
                files=_files(file or _source_name(source)),
                fit_options=fit_options,
                label=y,
                weight=sample_weight,
                labels=model.labels(table.column(y)) if labels is None else labels,
            ),
        )
        for model in models_of_table(table, p, reading)
    }
    data = {
        "source": title or _source_name(source),
        "rows": int(table.column(y).size),
        "label": y,
        "task": "binary" if task is None else str(task),
        "weight": sample_weight,
        "by": columns,
    }
    return Report(
        summarise(models, plan, data, notes=notes, created=created, progress=progress)
    )


def report_predictions(  # noqa: PLR0913
    y_true: ArrayLike,
    y_prob: ArrayLike | Mapping[str, ArrayLike],
    *,
    groups: ArrayLike | None = None,
    task: Task = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale | Mapping[str, Scale] = "prob",
    methods: Sequence[str] | str = REPORT_METHODS,
    alpha: float = 1,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    mute: Sequence[str] | str = (),
    random_state: Seed = 0,
    title: str = "",
    created: datetime | None = None,
) -> Report:
    """Make a report of predictions.

    Parameters
    ----------
    y_true, task, sample_weight, pos_label, labels, scale
        As in `calibration_error`.
    y_prob : array-like or dict
        Predictions as in `calibration_error`, or those of several models by name.
    groups : array-like of shape (n,), optional
        A group for each row.
    methods, alpha, confidence, n_resamples, mute, random_state, title, created
        As in `report_table`.

    Returns
    -------
    Report
        ``save("report.html")`` writes it; ``summary`` is all that it shows, as data.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> report = cb.report_predictions(y, {"forest": p}, methods="es15")
    >>> report.summary["models"][0]["verdict"]["grade"]
    'poor'
    """
    plan = _plan(methods, alpha, confidence, n_resamples, mute, random_state)
    reading = Reading(task=task, pos_label=pos_label, labels=labels, scale=scale)
    models_of = y_prob if isinstance(y_prob, Mapping) else {"": y_prob}
    named = check_models(models_of, least=1, name="y_prob")
    reading.check_scales(list(named))
    column = {} if groups is None else {"group": as_array(groups, name="groups")}
    found = group_rows(open_table(column), ["group"]) if column else []
    kept, notes = _largest(found)
    models = {}
    for name, prob in named.items():
        own = reading.of_model(name)
        events = own.events(y_true, prob, sample_weight)
        arrays = [as_array(y_true, name="y_true"), as_array(prob, name="y_prob")]
        if sample_weight is not None:
            arrays.append(as_array(sample_weight, name="sample_weight"))
        refuse_different_lengths(y_true=arrays[0], **column)
        parts = {
            group.name: own.events(*(array[group.rows] for array in arrays))
            for group in kept
        }
        classes = None
        if task is not None:
            classes = check_class_sample(
                prob,
                y_true,
                scale=reading.scale_of(name),
                labels=labels,
                sample_weight=sample_weight,
            )
        origin = Origin(
            weight=None if sample_weight is None else "sample_weight",
            several=task is not None,
            task=events.task,
            pos_label=pos_label,
            labels=None if labels is None else tuple(labels),
            scale=reading.scale_of(name),
        )
        models[name] = ModelRows(events, parts, classes, origin)
    data = {
        "source": title,
        "rows": len(as_array(y_true, name="y_true")),
        "label": "y_true",
        "task": "binary" if task is None else str(task),
        "weight": None if sample_weight is None else "sample_weight",
        "by": list(column),
    }
    return Report(summarise(models, plan, data, notes=notes, created=created))


def _plan(
    methods: Sequence[str] | str,
    alpha: float,
    confidence: float,
    n_resamples: int,
    mute: Sequence[str] | str,
    random_state: Seed,
) -> Plan:
    return Plan(
        methods=check_methods(methods),
        estimator=Estimator(
            alpha=alpha,
            confidence=confidence,
            n_resamples=n_resamples,
            random_state=whole_seed(random_state),
        ),
        confidence=confidence,
        mute=check_muted(mute),
        lenient=methods is REPORT_METHODS,  # nobody asked for so many bins
    )


def _classes(reader: TableReader, model: ModelColumns) -> ClassSample | None:
    """Return the predictions of all classes, where a model has several columns."""
    if reader.reading.task is None or len(model.columns) == 1:
        return None
    label = reader.table.column(reader.y)
    given = reader.reading.labels
    return check_class_sample(
        model.probabilities(reader.table),
        label,
        scale=reader.reading.scale_of(model.name),
        labels=model.labels(label) if given is None else given,
        sample_weight=reader.weight and reader.table.column(reader.weight),
    )


def _largest(groups: list[Group]) -> tuple[list[Group], list[str]]:
    """Return the groups to show, and a note where there are more."""
    if len(groups) <= MOST_GROUPS:
        return groups, []
    by_size = sorted(groups, key=lambda group: -len(np.asarray(group.rows)))
    note = f"Of {len(groups)} groups the {MOST_GROUPS} largest are shown."
    return by_size[:MOST_GROUPS], [note]


def _files(file: str | Sequence[str]) -> list[str]:
    return [file] if isinstance(file, str) and file else list(file)


def _source_name(source: Any) -> str:
    """Return the name of a file without its folders, which are nobody's business."""
    return Path(source).name if isinstance(source, str | os.PathLike) else ""
