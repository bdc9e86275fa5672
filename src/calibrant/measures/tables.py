"""Evaluation of columns of a table: several models, group by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from calibrant._threads import one_blas_thread
from calibrant._validation.options import check_choice, check_share
from calibrant._validation.sample import warn_if_small
from calibrant._validation.scales import MAX_DROPPED
from calibrant.engines.gathering import BadRows
from calibrant.engines.groups import group_columns
from calibrant.engines.opening import Engine, open_cells, open_source
from calibrant.exceptions import OptionError, TooFewRowsError, WeightError
from calibrant.measures.estimate import Estimator
from calibrant.measures.evaluation import (
    DEFAULT_METHODS,
    Evaluation,
    assess,
    check_methods,
)
from calibrant.measures.events import Reading
from calibrant.measures.few_rows import work_ahead
from calibrant.measures.fitted import FittedEvents
from calibrant.measures.groups import LeftOut
from calibrant.measures.named_events import (
    cell_sets,
    refuse_with_cells,
    rows_wanted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from calibrant._typing import Debias, Scale, Seed, Task
    from calibrant.measures.estimate import Interval
    from calibrant.measures.evaluation import Assessment
    from calibrant.measures.named_events import NamedEvents
    from calibrant.measures.table_models import Columns

SETS_AT_ONCE, ROWS_AT_ONCE = 1024, 65_536
"""Most sets that are read before any is evaluated, and most of their rows."""


def evaluate_table(  # noqa: PLR0913
    source: Any,
    *,
    y: str | None = None,
    p: Columns | Mapping[str, Columns] | None = None,
    by: Columns | None = None,
    engine: Engine = "auto",
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
    scale: Scale | Mapping[str, Scale] = "prob",
    bad_rows: BadRows = "raise",
    max_dropped: float = MAX_DROPPED,
    random_state: Seed = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Evaluate predictions that stand in columns of a table.

    Parameters
    ----------
    source : path, pattern, data frame, dict of columns, relation or cells
        CSV, TSV, Parquet, JSON lines or npz file; several of them by a pattern such as
        ``"lake/*.parquet"``, a folder or a list; pandas, polars or pyarrow table;
        DuckDB relation; Spark data frame; or cells by `gather_table`, or files of them.
    y : str
        Column of labels. Cells know theirs, as all about columns, labels and scale:
        to name it again is an error.
    p : str, list of str or dict
        Columns of probabilities. Without a task each column is a model; with one
        the columns are the classes of one model. A dict gives the column or columns
        of each model by its name. ``"forest_*"`` stands for all columns that match,
        and what ``*`` stands for is the class; among classes, columns that
        ``calibrant apply`` added to others which match do not count. Without it, labels
        that are text are the names of the columns, and whole numbers count them from 0.
        An array of shape (n, k), as npz files and dicts may hold, has a column a class.
    by : str or list of str, optional
        Evaluate each group of rows with the same values apart. A column called like a
        result, such as "model", is "by_model" in the results. For cells: some of the
        columns that they were gathered by; by default all.
    engine : {"auto", "memory", "duckdb", "spark"}
        "memory" works on the rows themselves. "duckdb" and "spark" go through them
        where they live and gather them: up to 65,536 rows of a group, or 2,097,152 of
        the table, without loss; more into fine cells, whose errors differ by less than
        0.0001. Everything else comes from what was gathered. "auto" takes "spark" for a
        Spark data frame; "duckdb" for a relation, a pattern, a folder, several files,
        or one larger than 256 MiB; else "memory".
    sample_weight : str, optional
        Column of weights.
    bad_rows : {"raise", "drop"}
        What to do where a prediction is missing or outside [0, 1], a label is missing
        or unknown, or a weight is missing or negative. "drop" leaves such rows out,
        with a warning that counts them by reason.
    max_dropped : float
        The largest share of rows that may be dropped; more end in an error. So do, as
        long as nothing else is said by `scale`, predictions that look like percentages.
    progress : callable, optional
        Called with the number of finished and of all sets of predictions.
    methods, alpha, debias, task, confidence, interval, n_resamples
        As in `evaluate`.
    pos_label, labels, random_state
        As in `evaluate`.
    scale : {"prob", "logit", "percent", "logprob"} or dict
        What the columns hold, as in `evaluate`; a dict says it of each model by name.

    Returns
    -------
    Evaluation
        One row per model, group and method. A method that needs more rows than a
        group has is left out of that group, with a warning.

    Examples
    --------
    >>> import calibrant as cb
    >>> found = cb.evaluate_table(
    ...     cb.datasets.BINARY_FILE, y="even", p=["forest", "bayes"], methods="es15"
    ... )
    >>> print(found)
    forest  es15 (binary): 0.0819 [0.0819, 0.0999], n = 1797
    bayes  es15 (binary): 0.0876 [0.0769, 0.1015], n = 1797
    """
    check_choice(engine, get_args(Engine), name="engine")
    check_choice(bad_rows, get_args(BadRows), name="bad_rows")
    estimator = Estimator(
        alpha=alpha,
        debias=debias,
        confidence=confidence,
        interval=interval,
        n_resamples=n_resamples,
        random_state=random_state,
    )
    chosen = check_methods(methods)
    lenient = methods is DEFAULT_METHODS
    grouped_by = group_columns(by)
    cells = open_cells(source)
    if cells is not None:
        refuse_with_cells(
            y=y,
            p=p,
            task=task,
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=labels,
            scale=None if scale == "prob" else scale,
            engine=None if engine == "auto" else engine,
            bad_rows=None if bad_rows == "raise" else bad_rows,
            max_dropped=None if max_dropped == MAX_DROPPED else max_dropped,
        )
        sets = cell_sets(cells, None if by is None else grouped_by)
    else:
        reading = Reading(task=task, pos_label=pos_label, labels=labels, scale=scale)
        wanted = rows_wanted(
            y,
            p,
            reading,
            grouped_by,
            sample_weight,
            bad_rows=bad_rows,
            max_dropped=check_share(max_dropped, name="max_dropped"),
        )
        table = open_source(source, engine, bad_rows=bad_rows)
        sets = wanted.sets(table, stacklevel=3)
    found = _assessed(sets, chosen, estimator, progress, lenient=lenient)
    return Evaluation(tuple(found), float(alpha), confidence)


def _assessed(
    sets: list[NamedEvents],
    methods: tuple[str, ...],
    estimator: Estimator,
    progress: Callable[[int, int], None] | None,
    *,
    lenient: bool,
) -> list[Assessment]:
    """Apply every method to every set, but for groups that are too small for it."""
    found: list[Assessment] = []
    left_out = LeftOut()
    with one_blas_thread():  # taking the limit costs as much as a small fit
        for done, (one, fitted) in enumerate(
            _fitted_sets(sets, methods, estimator, left_out)
        ):
            if progress is not None:
                progress(done, len(sets))
            if not one.group:
                warn_if_small(fitted.events.samples[0], stacklevel=4)
                found.append(assess(fitted, methods, one.key, lenient=lenient))
                continue
            try:
                possible = _possible(fitted, methods, one.group, left_out)
                found.append(assess(fitted, possible, one.key))
            except (TooFewRowsError, WeightError) as error:
                left_out.add(one.group, error)
    left_out.warn(stacklevel=4)
    if not found:
        raise OptionError(left_out.nothing_left)
    return found


def _fitted_sets(
    sets: list[NamedEvents],
    methods: tuple[str, ...],
    estimator: Estimator,
    left_out: LeftOut,
) -> Iterator[tuple[NamedEvents, FittedEvents]]:
    """Read sets, as many at once as are small together; leave out what cannot be."""
    batch: list[tuple[NamedEvents, FittedEvents]] = []
    rows = 0
    for one in sets:
        try:
            fitted = FittedEvents(one.events(), estimator)
        except (TooFewRowsError, WeightError) as error:
            if not one.group:
                raise
            left_out.add(one.group, error)
            continue
        batch.append((one, fitted))
        rows += fitted.events.samples[0].n
        if len(batch) == SETS_AT_ONCE or rows > ROWS_AT_ONCE:
            work_ahead([fitted for _, fitted in batch], methods)
            yield from batch
            batch, rows = [], 0
    work_ahead([fitted for _, fitted in batch], methods)
    yield from batch


def _possible(
    fitted: FittedEvents, methods: tuple[str, ...], group: str, left_out: LeftOut
) -> list[str]:
    """Return the methods that a group has enough rows for; raise where none is."""
    failed: dict[str, TooFewRowsError] = {}
    for method in methods:
        try:
            fitted.estimates(method)
        except TooFewRowsError as error:
            failed[method] = error
    possible = [method for method in methods if method not in failed]
    if not possible:
        raise failed[methods[0]]
    for method, reason in failed.items():
        left_out.add(group, reason, method)
    return possible
