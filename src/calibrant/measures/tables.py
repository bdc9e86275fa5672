"""Evaluation of columns of a table: several models, group by group."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.options import check_choice
from calibrant._validation.sample import warn_if_small
from calibrant.engines.memory import MemoryTable, open_table
from calibrant.exceptions import OptionError, SmallSampleWarning, TooFewRowsError
from calibrant.measures.estimate import Estimator
from calibrant.measures.evaluation import (
    DEFAULT_METHODS,
    Assessment,
    Evaluation,
    assess,
    check_methods,
)
from calibrant.measures.events import Events, Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from calibrant._typing import BoolVector, Debias, Scale, Seed, Task
    from calibrant.numerics.resampling import IntervalKind

ENGINES = ("auto", "memory")

Columns = str | Sequence[str]


@dataclass(frozen=True)
class ModelColumns:
    """The probability columns of one model, and the classes that they stand for.

    Attributes
    ----------
    name : str
        Name of the model.
    columns : tuple of str
        One column, or one per class.
    classes : tuple of str
        What names the class of each column: what ``*`` stood for, or the column's
        own name.
    """

    name: str
    columns: tuple[str, ...]
    classes: tuple[str, ...]

    def probabilities(self, table: MemoryTable) -> NDArray[Any]:
        """Read the columns: a vector, or one column per class."""
        arrays = [table.column(name) for name in self.columns]
        return arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=1)

    def labels(self, label: NDArray[Any], *, named: bool) -> list[Any] | None:
        """Return the label of each column, None where it is the column's number.

        Whole-number labels are column numbers, unless a pattern named the classes.
        """
        if len(self.columns) == 1 or (label.dtype.kind in "biu" and not named):
            return None
        return [typed_like(label, name) for name in self.classes]


def typed_like(column: NDArray[Any], text: str) -> Any:
    """Return a value written as text in the type that a column holds.

    Examples
    --------
    >>> typed_like(np.array([1, 2]), "2"), typed_like(np.array(["a", "b"]), "2")
    (2, '2')
    """
    kinds: dict[str, Callable[[str], Any]] = {"i": int, "u": int, "f": float}
    if column.dtype.kind == "b":
        return {"true": True, "1": True, "false": False, "0": False}.get(
            text.lower(), text
        )
    try:
        return kinds.get(column.dtype.kind, str)(text)
    except ValueError:
        return text


def model_columns(
    p: Columns | Mapping[str, Columns], *, task: Task, names: Sequence[str]
) -> list[ModelColumns]:
    """Return the columns of each model.

    A mapping names the models itself. Otherwise, with a multi-class task all columns
    belong to one model, one column a class; without one each column is a model. An
    entry with ``*`` stands for all columns of the table that match it, in order.

    Examples
    --------
    >>> there = ["y", "forest_0", "forest_1"]
    >>> model_columns("forest_*", task="confidence", names=there)[0].classes
    ('0', '1')
    >>> len(model_columns("forest_*", task=None, names=there))
    2
    """
    if isinstance(p, Mapping):
        return [_one_model(str(name), cols, names) for name, cols in p.items()]
    if task is None:
        found = _one_model("", p, names).columns
        return [ModelColumns(column, (column,), (column,)) for column in found]
    label = p if isinstance(p, str) else ",".join(p)
    return [_one_model(label, p, names)]


def _one_model(name: str, columns: Columns, names: Sequence[str]) -> ModelColumns:
    wanted = [columns] if isinstance(columns, str) else list(columns)
    if not wanted:
        raise OptionError("p must name at least one column.")
    found: list[tuple[str, str]] = []
    for column in wanted:
        before, star, after = column.partition("*")
        matching = [
            (there, there[len(before) : len(there) - len(after)])
            for there in names
            if star and there.startswith(before) and there.endswith(after)
        ]
        found += matching or [(column, column)]
    return ModelColumns(name, *map(tuple, zip(*found, strict=True)))


@dataclass(frozen=True, eq=False)
class _Group:
    key: dict[str, Any]
    rows: BoolVector | slice

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.key.items())


def _groups(table: MemoryTable, by: Sequence[str]) -> Iterator[_Group]:
    if not by:
        yield _Group({}, slice(None))
        return
    columns = [table.column(name) for name in by]
    keys = list(zip(*(column.tolist() for column in columns), strict=True))
    for key in sorted(
        set(keys), key=lambda k: [(v is None, str(type(v)), v) for v in k]
    ):
        rows = np.array([k == key for k in keys])
        yield _Group(dict(zip(by, key, strict=True)), rows)


def evaluate_table(  # noqa: PLR0913
    source: Any,
    *,
    y: str,
    p: Columns | Mapping[str, Columns],
    by: Columns | None = None,
    engine: str = "auto",
    methods: Sequence[str] | str = DEFAULT_METHODS,
    alpha: float = 1,
    debias: Debias = "auto",
    task: Task = None,
    confidence: float | None = 0.9,
    interval: IntervalKind = "basic",
    n_resamples: int = 1000,
    sample_weight: str | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale = "prob",
    random_state: Seed = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Evaluate predictions that stand in columns of a table.

    Parameters
    ----------
    source : path, data frame or dict of columns
        CSV, TSV, Parquet, JSON lines or npz file; pandas, polars or pyarrow table.
    y : str
        Column of labels.
    p : str, list of str or dict
        Columns of probabilities. Without a task each column is a model; with one
        the columns are the classes of one model. A dict gives the column or columns
        of each model by its name. ``"forest_*"`` stands for all columns that match,
        and what ``*`` stands for is the class. Without it, labels that are text are
        the names of the columns, and whole numbers count them from 0.
    by : str or list of str, optional
        Evaluate each group of rows with the same values apart.
    engine : {"auto", "memory"}
        Where the work is done.
    sample_weight : str, optional
        Column of weights.
    progress : callable, optional
        Called with the number of finished and of all sets of predictions.
    methods, alpha, debias, task, confidence, interval, n_resamples
        As in `evaluate`.
    pos_label, labels, scale, random_state
        As in `evaluate`.

    Returns
    -------
    Evaluation
        One row per model, group and method. A group with fewer rows than a method
        needs is left out with a warning.

    Examples
    --------
    >>> import calibrant as cb
    >>> found = cb.evaluate_table(
    ...     cb.datasets.BINARY_FILE, y="even", p=["forest", "bayes"], methods="es15"
    ... )
    >>> print(found)
    forest  es15 (binary): 0.0819 [0.0765, 0.0869], n = 1797
    bayes  es15 (binary): 0.0876 [0.0753, 0.1014], n = 1797
    """
    check_choice(engine, ENGINES, name="engine")
    estimator = Estimator(
        alpha=alpha,
        debias=debias,
        confidence=confidence,
        interval=interval,
        n_resamples=n_resamples,
        random_state=random_state,
    )
    table = open_table(source)
    models = model_columns(p, task=task, names=table.names)
    grouping = _Grouped(
        table=table,
        label=table.column(y),
        weight=None if sample_weight is None else table.column(sample_weight),
        reading=Reading(task=task, pos_label=pos_label, labels=labels, scale=scale),
        named="*" in p,
        groups=list(_groups(table, [by] if isinstance(by, str) else list(by or []))),
    )
    found = grouping.assess(models, check_methods(methods), estimator, progress)
    return Evaluation(tuple(found), float(alpha), confidence)


@dataclass(frozen=True, eq=False)
class _Grouped:
    """The columns that all models share, and the groups of rows."""

    table: MemoryTable
    label: NDArray[Any]
    weight: NDArray[Any] | None
    reading: Reading
    named: bool
    groups: list[_Group]

    def assess(
        self,
        models: list[ModelColumns],
        methods: tuple[str, ...],
        estimator: Estimator,
        progress: Callable[[int, int], None] | None,
    ) -> list[Assessment]:
        found = []
        pairs = [(model, group) for model in models for group in self.groups]
        for done, (model, group) in enumerate(pairs):
            if progress is not None:
                progress(done, len(pairs))
            key = {"model": model.name} if len(models) > 1 else {}
            events = self._events(model, group)
            result = _assess_group(events, group, methods, estimator, key)
            found += [] if result is None else [result]
        if not found:
            raise OptionError(
                "no group has as many rows as the methods need; use fewer bins, or "
                "larger groups."
            )
        return found

    def _events(self, model: ModelColumns, group: _Group) -> Events:
        reading = self.reading
        if reading.task is not None and reading.labels is None:
            reading = replace(
                reading, labels=model.labels(self.label, named=self.named)
            )
        weight = None if self.weight is None else self.weight[group.rows]
        prob = model.probabilities(self.table)[group.rows]
        return reading.events(self.label[group.rows], prob, weight)


def _assess_group(
    events: Events,
    group: _Group,
    methods: tuple[str, ...],
    estimator: Estimator,
    key: dict[str, Any],
) -> Assessment | None:
    if not group.key:
        warn_if_small(events.samples[0])
        return assess(events, methods, estimator, key)
    try:
        return assess(events, methods, estimator, key | group.key)
    except TooFewRowsError as error:
        warnings.warn(
            f"group {group} is left out: {error}", SmallSampleWarning, stacklevel=4
        )
        return None
