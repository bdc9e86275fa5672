"""Comparison of models whose predictions stand in columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant._validation.options import whole_seed
from calibrant._validation.sample import warn_if_small
from calibrant.engines.groups import group_columns, group_rows
from calibrant.engines.memory import open_table
from calibrant.exceptions import OptionError, TooFewRowsError, WeightError
from calibrant.measures.comparison import (
    DEFAULT_METHOD,
    FEWEST_MODELS,
    Comparison,
    compare_events,
    labels_by_model,
)
from calibrant.measures.estimate import Estimator
from calibrant.measures.events import Reading
from calibrant.measures.fitted import FittedEvents
from calibrant.measures.groups import LeftOut, result_key
from calibrant.measures.table_models import TableReader, models_of_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from calibrant._typing import Debias, Scale, Seed, Task
    from calibrant.measures.table_models import Columns, ModelColumns

PAIR_COLUMNS = ("model_a", "model_b", "difference", "probability", "distinct", "rank")


def compare_table(  # noqa: PLR0913
    source: Any,
    *,
    y: str | Mapping[str, str],
    p: Columns | Mapping[str, Columns],
    by: Columns | None = None,
    method: str = DEFAULT_METHOD,
    alpha: float = 1,
    debias: Debias = "auto",
    task: Task = None,
    confidence: float = 0.9,
    n_resamples: int = 1000,
    sample_weight: str | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale | Mapping[str, Scale] = "prob",
    random_state: Seed = 0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Comparison, ...]:
    """Compare models in a table, in each group of rows apart.

    Parameters
    ----------
    source, p, by, sample_weight, scale, progress
        As in `evaluate_table`; `p` names at least two models.
    y : str or dict
        Column of labels, the same for all models; or a dict with the column of each,
        where what happened depends on the model, as in `compare`.
    method, alpha, debias, task, confidence, n_resamples
        As in `compare`.
    pos_label, labels, random_state
        As in `compare`.

    Returns
    -------
    tuple of Comparison
        One per group. A group with fewer rows than the method needs is left out with
        a warning.

    Examples
    --------
    >>> from calibrant.datasets import BINARY_FILE
    >>> (found,) = compare_table(
    ...     BINARY_FILE, y="even", p=["forest", "network"], method="es15"
    ... )
    >>> print(found)
    1. network  es15 (binary): 0.0017 [0.0017, 0.0108], n = 1797
    2. forest  es15 (binary): 0.0819 [0.0819, 0.0999], n = 1797
    network - forest: -0.0802 [-0.0871, -0.0733], better with probability 1.000
    """
    estimator = Estimator(
        alpha=alpha,
        debias=debias,
        confidence=confidence,
        n_resamples=n_resamples,
        random_state=whole_seed(random_state),
    )
    table = open_table(source)
    reading = Reading(task=task, pos_label=pos_label, labels=labels, scale=scale)
    models = _several(models_of_table(table, p, reading))
    columns = labels_by_model(y, [model.name for model in models], name="y")
    readers = {
        name: TableReader(table, column, sample_weight, reading)
        for name, column in columns.items()
    }
    grouped_by = group_columns(by)
    groups = group_rows(table, grouped_by)
    for model in models:  # bad rows are named by their place in the whole table
        events = readers[model.name].events(model)
    if not grouped_by:
        warn_if_small(events.samples[0], stacklevel=3)
    found, left_out = [], LeftOut()
    for done, group in enumerate(groups):
        if progress is not None:
            progress(done, len(groups))
        try:
            of_models = {
                m.name: FittedEvents(readers[m.name].events(m, group.rows), estimator)
                for m in models
            }
            found.append(
                compare_events(of_models, method, result_key(group.key, PAIR_COLUMNS))
            )
        except (TooFewRowsError, WeightError) as error:
            if not grouped_by:
                raise
            left_out.add(str(group), error)
    left_out.warn(stacklevel=3)
    if not found:
        raise OptionError(left_out.nothing_left)
    return tuple(found)


def _several(models: list[ModelColumns]) -> list[ModelColumns]:
    if len(models) < FEWEST_MODELS:
        raise OptionError(
            f"p must name at least {FEWEST_MODELS} models to compare; it names "
            f"{len(models)}. For one model use evaluate. With a task, the columns of "
            f"all classes are one model."
        )
    names = [model.name for model in models]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise OptionError(f"p names the model {twice[0]!r} twice.")
    return models
