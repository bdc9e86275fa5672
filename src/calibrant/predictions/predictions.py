"""Predictions with their labels, from arrays, tables or files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, get_args

import numpy as np

from calibrant.core.arrays import as_array, as_vector
from calibrant.core.defaults import MAX_DROPPED
from calibrant.core.parameters import check_choice, check_share
from calibrant.core.tasks import InputSpec
from calibrant.engines.aggregation_spec import BadRows
from calibrant.engines.cell_files import load_cells, save_cells
from calibrant.engines.cells import merge_cells
from calibrant.engines.groups import group_columns
from calibrant.engines.memory import MemoryTable
from calibrant.engines.opening import Engine, needs_memory, open_cells, open_source
from calibrant.exceptions import Argument, OptionError, UnknownNameError
from calibrant.predictions.aggregates import (
    CLUSTERS,
    AggregatedPredictions,
    aggregate_table,
    warn_if_dropped,
)
from calibrant.predictions.columns import TableRequest
from calibrant.predictions.in_memory import GROUP, RowPredictions

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from calibrant.core.array_types import ArrayLike, Scale, Task
    from calibrant.engines.cells import AggregatedCells
    from calibrant.predictions.columns import Columns


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """Predictions with their labels: one object that every function accepts.

    Made by `from_arrays`, `from_table` or `load`. They contain one or several
    models, with or without groups of rows, and are either rows in memory or
    aggregated: sums over rows that can be combined and stored.

    Attributes
    ----------
    store : RowPredictions or AggregatedPredictions
        Where the predictions are stored.

    See Also
    --------
    evaluate : calibration errors of predictions.
    compare : which model is better calibrated.

    Examples
    --------
    >>> import calibrant as cb
    >>> preds = cb.Predictions.from_table(
    ...     cb.datasets.BINARY_FILE, y="even", p=["forest", "bayes"]
    ... )
    >>> preds
    <Predictions: 1,797 rows, 2 models, task binary>
    >>> cb.evaluate(preds, methods="smooth").frame()["model"].tolist()
    ['forest', 'bayes']
    """

    store: RowPredictions | AggregatedPredictions

    @classmethod
    def from_arrays(  # noqa: PLR0913
        cls,
        y_true: ArrayLike | Mapping[str, ArrayLike],
        y_prob: ArrayLike | Mapping[str, ArrayLike],
        *,
        task: Task = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        pos_label: Any = None,
        labels: Sequence[Any] | None = None,
        scale: Scale | Mapping[str, Scale] = "prob",
    ) -> Self:
        """Return the predictions in arrays.

        Parameters
        ----------
        y_true : array-like of shape (n,) or dict
            Labels: 0 and 1, booleans, or with `pos_label` any two values; classes for
            multi-class tasks. If the event depends on the model, such as whether its
            own answer is right, pass a dict with the labels of each model.
        y_prob : array-like of shape (n,) or (n, k), or dict
            Predicted probability of the event, or of each class; a dict has those of
            each model. With `task` None, two columns are those of `predict_proba`.
        task : None, "confidence", "classwise", "canonical", "multilabel", or a class
            None: binary. "confidence" or "top-label": the top class and whether it is
            right. A class, by label or column number: that class against the rest.
            "classwise": the mean over classes. "canonical": the whole vector of class
            probabilities. "multilabel": the mean over labels of which a row can have
            several, with a matrix of 0 and 1 as `y_true`.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of 2 counts the row twice.
        groups : array-like of shape (n,), optional
            The group of each row; groups are evaluated separately.
        clusters : array-like of shape (n,), optional
            Which rows belong together, such as those of one patient.
        pos_label : object, optional
            The label that counts as the event.
        labels : sequence, optional
            The label of each column of `y_prob`, in order; by default 0 .. k-1.
        scale : {"prob", "logit", "percent", "logprob"} or dict
            Whether `y_prob` holds probabilities, logits, percentages from 0 to 100, or
            natural logarithms of probabilities; for all models, or for each by name.

        Returns
        -------
        Predictions
            Validated.

        See Also
        --------
        Predictions.from_table : predictions in files, data frames and databases.

        Examples
        --------
        >>> import calibrant as cb
        >>> p, y = cb.datasets.load_binary("forest")
        >>> cb.Predictions.from_arrays(y, {"forest": p, "half": p / 2})
        <Predictions: 1,797 rows, 2 models, task binary>
        """
        label, given = _columns_by_model("y_true", y_true)
        prob, predicted = _columns_by_model("y_prob", y_prob)
        if isinstance(prob, str) and not isinstance(label, str):
            prob = dict.fromkeys(label, prob)
        if isinstance(groups, Mapping):
            raise OptionError(
                Argument("groups"),
                " must be a vector with one value per row; got a dict. For groups by "
                "several columns, pass the table to Predictions.from_table with "
                f"by={list(groups)}.",
            )
        vectors = {GROUP: groups, "sample_weight": sample_weight, CLUSTERS: clusters}
        # Copies: results are computed on demand, also after the user's arrays changed.
        arrays = {
            name: np.array(as_array(values, name=name))
            for name, values in (given | predicted).items()
        } | {
            name: np.array(as_vector(values, name="groups" if name == GROUP else name))
            for name, values in vectors.items()
            if values is not None
        }
        request = TableRequest(
            y=label,
            p=prob,
            spec=InputSpec(task=task, pos_label=pos_label, labels=labels, scale=scale),
            by=() if groups is None else (GROUP,),
            weight=None if sample_weight is None else "sample_weight",
            cluster=None if clusters is None else CLUSTERS,
        )
        return cls(RowPredictions.of_columns(arrays, request))

    @classmethod
    def from_table(  # noqa: PLR0913
        cls,
        source: Any,
        *,
        y: str | Mapping[str, str],
        p: Columns | Mapping[str, Columns],
        by: Columns | None = None,
        model: str | None = None,
        id: Columns | None = None,  # noqa: A002
        weight: str | None = None,
        cluster: str | None = None,
        time: str | None = None,
        task: Task = None,
        pos_label: Any = None,
        labels: Sequence[Any] | None = None,
        scale: Scale | Mapping[str, Scale] = "prob",
        engine: Engine = "auto",
        bad_rows: BadRows = "error",
        max_dropped: float = MAX_DROPPED,
    ) -> Self:
        """Return the predictions in columns of a table.

        Parameters
        ----------
        source : path, pattern, data frame, dict of columns, or relation
            CSV, TSV, Parquet, JSON (lines or an array of records), npz or npy file (an
            array called like the file); several of them by a pattern such as
            ``"lake/*.parquet"``, a folder or a list; pandas, polars or pyarrow table;
            DuckDB relation; Spark data frame.
        y : str or dict
            Column of labels, or the column of each model. ``"truth==answer"`` tests
            whether two columns are equal, such as the true and the predicted class.
        p : str, list of str or dict
            Columns of predictions. Without a task each column is a model; with one the
            columns are the classes of one model. A dict names the models itself.
            ``"forest_*"`` stands for all columns that match; the text matched by ``*``
            names the class.
        by : str or list of str, optional
            Columns that define groups, which are evaluated separately. Of files,
            ``"filename"`` is the name of the file of each row, without its extension.
        model : str, optional
            Column that names the model of each row, in a long table; ``"filename"``
            where each model has a file.
        id : str or list of str, optional
            Column that identifies the same case across models, such as the question;
            `compare` uses it to pair the models of a long table. Several columns
            identify it together, such as the question and the sample of its answers.
            ``"row"`` pairs rows by their number if each model has a file with the
            same labels in the same order.
        weight : str, optional
            Column of weights.
        cluster : str, optional
            Column of clusters: rows that belong together, such as those of one patient.
        time : str, optional
            Column that says when a row was recorded. It is reserved for later use:
            at present every function raises an error if it is given.
        task : None, "confidence", "classwise", "canonical", "multilabel", or a class
            None: binary. "confidence" or "top-label": the top class and whether it is
            right. A class, by label or column number: that class against the rest.
            "classwise": the mean over classes. "canonical": the whole vector of class
            probabilities, read into memory. "multilabel": the mean over labels of which
            a row can have several, from npz matrices.
        pos_label : object, optional
            The label that counts as the event.
        labels : sequence, optional
            The label of each class column, in order.
        scale : {"prob", "logit", "percent", "logprob"} or dict
            Whether columns hold probabilities, logits, percentages from 0 to 100, or
            natural logarithms of probabilities; for all models, or for each by name.
        engine : {"auto", "memory", "duckdb", "spark"}
            "memory" keeps the rows. "duckdb" and "spark" aggregate them in place: up
            to 65,536 rows of a group, or 2,097,152 of the
            table, without loss; more into fine cells, whose errors differ by less than
            0.0001. "auto" takes "spark" for a Spark data frame; "duckdb" for a
            relation, a pattern, a folder, several files, or one larger than 256 MiB;
            else "memory", which alone reads JSON, npz and npy files.
        bad_rows : {"error", "drop"}
            What to do with invalid rows: a prediction is missing or outside [0, 1], a
            label is missing or unknown, a weight is missing or negative, or a cluster
            is missing. "drop" drops them, with a warning that counts them by reason.
        max_dropped : float
            The maximum share of rows that may be dropped; above it, an error is raised.

        Returns
        -------
        Predictions
            Rows in memory, or aggregated where the engine is not "memory".

        See Also
        --------
        Predictions.load : aggregated predictions that were saved.

        Examples
        --------
        A long table has one row per model and question:

        >>> import calibrant as cb
        >>> answers = {
        ...     "model": ["a", "a", "b", "b"],
        ...     "question": [1, 2, 1, 2],
        ...     "confidence": [90, 60, 70, 80],
        ...     "correct": [1, 0, 1, 1],
        ... }
        >>> preds = cb.Predictions.from_table(
        ...     answers,
        ...     y="correct",
        ...     p="confidence",
        ...     model="model",
        ...     id="question",
        ...     scale="percent",
        ... )
        >>> preds.models
        ('a', 'b')
        """
        check_choice(engine, get_args(Engine), name="engine")
        check_choice(bad_rows, get_args(BadRows), name="bad_rows")
        request = TableRequest(
            y=y,
            p=p,
            spec=InputSpec(task=task, pos_label=pos_label, labels=labels, scale=scale),
            by=group_columns(by),
            model=model,
            id=group_columns(id, name="id"),
            weight=weight,
            cluster=cluster,
            time=time,
            bad_rows=bad_rows,
            max_dropped=check_share(max_dropped, name="max_dropped"),
        )
        return cls(read_table(source, engine, request))

    @classmethod
    def load(cls, *paths: str | os.PathLike[str]) -> Self:
        """Return aggregated predictions from files.

        Parameters
        ----------
        *paths : path
            What `save` or ``calibrant aggregate`` wrote; a pattern such as
            ``"cells*.parquet"`` stands for all files that match. Several files, such as
            those of several days, are added.

        Returns
        -------
        Predictions
            The sum of all files.

        See Also
        --------
        Predictions.save : the file of aggregated predictions.

        Examples
        --------
        >>> import tempfile
        >>> import calibrant as cb
        >>> preds = cb.Predictions.from_arrays([0, 1, 1], [0.2, 0.7, 0.7])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     preds.aggregate().save(f"{folder}/cells.parquet")
        ...     cb.Predictions.load(f"{folder}/cells*.parquet")
        <Predictions: 3 rows, task binary, aggregated>
        """
        cells = open_cells(list(paths)) if paths else None
        return cls(AggregatedPredictions(cells or load_cells(*paths)))

    def grouped_by(self, by: str | Sequence[str]) -> Predictions:
        """Return aggregated predictions with larger groups, by some of the columns.

        Parameters
        ----------
        by : str or sequence of str
            Columns of groups to keep; none for all rows together.

        Returns
        -------
        Predictions
            Aggregated, with the sums of the groups that became one.

        Examples
        --------
        >>> import calibrant as cb
        >>> preds = cb.Predictions.from_arrays(
        ...     [0, 1, 1], [0.2, 0.7, 0.7], groups=["a", "a", "b"]
        ... )
        >>> preds.aggregate().grouped_by([])
        <Predictions: 3 rows, task binary, aggregated>
        """
        by = group_columns(by)
        cells = _cells(self, "regrouped")
        column = cells.origin.model_column
        kept = [column, *by] if column else list(by)
        return Predictions(AggregatedPredictions(cells.grouped_by(kept)))

    @cached_property
    def task(self) -> str:
        """Return the name of the task: "binary", "confidence", a class or such."""
        request = self.store.request
        return self.store.origin.task if request is None else request.spec.task_name

    @property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models; none where a single one has no name."""
        return self.store.models if self.store.named else ()

    def model(self, name: str) -> Predictions:
        """Return the predictions of one of several models.

        Parameters
        ----------
        name : str
            One of `models`.

        Returns
        -------
        Predictions
            The rows of this model, with their groups, weights and clusters.

        Examples
        --------
        >>> import calibrant as cb
        >>> preds = cb.Predictions.from_arrays(
        ...     [0, 1, 1, 0], {"a": [0.2, 0.9, 0.7, 0.4], "b": [0.1, 0.8, 0.9, 0.6]}
        ... )
        >>> preds.model("a")
        <Predictions: 4 rows, task binary>
        """
        if isinstance(self.store, AggregatedPredictions):
            raise OptionError(
                "aggregated predictions cannot be divided by model; aggregate the rows "
                "of one model."
            )
        if name not in self.models:
            raise UnknownNameError.among("model", name, self.models)
        return Predictions(self.store.of_model(name))

    @property
    def by(self) -> tuple[str, ...]:
        """Return the columns of groups."""
        return self.store.by

    @property
    def n(self) -> int:
        """Return the number of rows."""
        return self.store.n

    @property
    def aggregated(self) -> bool:
        """Tell whether these are sums over rows instead of rows."""
        return isinstance(self.store, AggregatedPredictions)

    def aggregate(self) -> Predictions:
        """Return the predictions as sums over rows, which can be added and stored.

        Up to 65,536 rows of a group, or 2,097,152 in all, are kept without loss; of
        more, errors differ by less than 0.0001 from those of the rows.

        Returns
        -------
        Predictions
            Aggregated.

        See Also
        --------
        Predictions.save : the file of aggregated predictions.

        Examples
        --------
        >>> import calibrant as cb
        >>> monday = cb.Predictions.from_arrays([0, 1, 1], [0.2, 0.7, 0.7])
        >>> tuesday = cb.Predictions.from_arrays([0, 1], [0.2, 0.9])
        >>> sum(day.aggregate() for day in (monday, tuesday))
        <Predictions: 5 rows, task binary, aggregated>
        """
        return Predictions(AggregatedPredictions(self.store.aggregate()))

    def __add__(self, other: Predictions | int) -> Predictions:
        if isinstance(other, int) and other == 0:  # where `sum` begins
            return self
        if not isinstance(other, Predictions):
            return NotImplemented
        parts = [_cells(one, "added") for one in (self, other)]
        return Predictions(AggregatedPredictions(merge_cells(parts)))

    __radd__ = __add__

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write aggregated predictions to a Parquet file, atomically.

        Parameters
        ----------
        path : path
            A name that ends in ``.parquet``.

        See Also
        --------
        Predictions.load : the predictions in such files.

        Examples
        --------
        >>> import tempfile
        >>> import calibrant as cb
        >>> preds = cb.Predictions.from_arrays([0, 1], [0.25, 0.5]).aggregate()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     preds.save(f"{folder}/monday.parquet")
        """
        save_cells(_cells(self, "saved"), path)

    def __repr__(self) -> str:
        parts = [f"{self.n:,} rows"]
        if len(self.models) > 1:
            parts.append(f"{len(self.models)} models")
        parts.append(f"task {self.task}")
        if self.by:
            parts.append(f"by {', '.join(self.by)}")
        if self.aggregated:
            parts.append("aggregated")
        return f"<Predictions: {', '.join(parts)}>"


def as_predictions(
    y_true: Any, y_prob: Any, *, scale: Any = "prob", **options: Any
) -> Predictions:
    """Return the predictions that a function was given, or those in arrays.

    Options of arrays, such as `task`, are part of predictions already.
    """
    if not isinstance(y_true, Predictions):
        if y_prob is None:
            raise OptionError(
                "y_prob is missing: pass labels and predicted probabilities, or "
                "Predictions alone."
            )
        return Predictions.from_arrays(y_true, y_prob, scale=scale, **options)
    options = {"y_prob": y_prob, **options, "scale": None if scale == "prob" else scale}
    for name, value in options.items():
        if value is not None:
            raise OptionError(
                "Predictions already have their labels, groups and scale; remove "
                f"{name}, or pass it when creating them."
            )
    request = y_true.store.request
    if request is not None and request.time is not None:
        raise OptionError("no function uses time yet; create Predictions without it.")
    return y_true


def read_table(
    source: Any, engine: Engine, request: TableRequest
) -> RowPredictions | AggregatedPredictions:
    """Return the predictions in a table: rows in memory, else aggregated."""
    if isinstance(source, Predictions):
        raise OptionError(
            "source must be a table; these are already Predictions, which "
            "functions accept directly."
        )
    if isinstance(source, MemoryTable):
        return RowPredictions.of_table(source, request)
    if open_cells(source) is not None:
        raise OptionError(
            f"{source} contains aggregated predictions, which already have their "
            "columns, labels and scale; read them with Predictions.load."
        )
    labels = [request.y] if isinstance(request.y, str) else request.y.values()
    if engine == "auto" and needs_memory([*labels, *request.all_groups, *request.id]):
        engine = "memory"
    table = open_source(source, engine, bad_rows=request.bad_rows)
    if isinstance(table, MemoryTable):
        return RowPredictions.of_table(table, request)
    cells = aggregate_table(table, request)
    warn_if_dropped(cells.reasons, cells.n_read)
    return AggregatedPredictions(cells)


def _cells(preds: Predictions, action: str) -> AggregatedCells:
    """Return the cells of aggregated predictions, or raise."""
    if not isinstance(preds.store, AggregatedPredictions):
        raise OptionError(
            f"only aggregated predictions can be {action}; call aggregate() first."
        )
    return preds.store.cells


def _columns_by_model(
    word: str, values: Any
) -> tuple[str | dict[str, str], dict[str, Any]]:
    """Return the column of an argument, or that of each model, and their values."""
    if not isinstance(values, Mapping):
        return word, {word: values}
    models = list(map(str, values))
    if len(set(models)) < max(len(models), 1):
        raise OptionError(
            f"{word} must have at least one model, and a different name for each; the "
            f"names are {', '.join(map(repr, models)) or 'none'}."
        )
    columns = {str(model): f"{word}[{model!r}]" for model in values}
    return columns, dict(zip(columns.values(), values.values(), strict=True))
