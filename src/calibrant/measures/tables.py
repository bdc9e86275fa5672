"""Evaluation of columns of a table: several models, group by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from calibrant._validation.options import check_choice
from calibrant._validation.sample import warn_if_small
from calibrant.engines.memory import open_table
from calibrant.exceptions import OptionError, TooFewRowsError, WeightError
from calibrant.measures.estimate import Estimator
from calibrant.measures.evaluation import (
    DEFAULT_METHODS,
    Evaluation,
    assess,
    check_methods,
)
from calibrant.measures.events import Reading
from calibrant.measures.groups import LeftOut, group_rows, refuse_reserved
from calibrant.measures.table_models import (
    Columns,
    TableReader,
    model_columns,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant._typing import Debias, Scale, Seed, Task
    from calibrant.measures.estimate import Interval

ENGINES = ("auto", "memory")


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
    interval: Interval = "auto",
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
    reading = Reading(task=task, pos_label=pos_label, labels=labels, scale=scale)
    reader = TableReader(table, y, sample_weight, reading)
    models = model_columns(p, task=task, names=table.names)
    named = isinstance(p, Mapping) or len(models) > 1
    grouped_by = [by] if isinstance(by, str) else list(by or [])
    refuse_reserved(grouped_by)
    groups = group_rows(table, grouped_by)
    sets = [(model, group) for model in models for group in groups]
    if by:
        for model in models:  # bad rows are named by their place in the whole table
            reader.events(model)
    chosen = check_methods(methods)
    found, left_out = [], LeftOut()
    for done, (model, group) in enumerate(sets):
        if progress is not None:
            progress(done, len(sets))
        key = {"model": model.name} if named else {}
        if not group.key:
            events = reader.events(model)
            warn_if_small(events.samples[0], stacklevel=3)
            lenient = methods is DEFAULT_METHODS
            found.append(assess(events, chosen, estimator, key, lenient=lenient))
            continue
        try:
            events = reader.events(model, group.rows)
            found.append(assess(events, chosen, estimator, key | group.key))
        except (TooFewRowsError, WeightError) as error:
            left_out.add(group, error)
    left_out.warn(stacklevel=3)
    if not found:
        raise OptionError(left_out.nothing_left)
    return Evaluation(tuple(found), float(alpha), confidence)
