"""Commands for maps: ``calibrate`` fits one, ``export`` prints it as SQL or Python."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

import typer

from calibrant.calibrators.map_warnings import warn_if_upside_down
from calibrant.cli import options
from calibrant.cli.data_options import DataOptions, check_not_source, takes_predictions
from calibrant.cli.options import split_list
from calibrant.cli.process import progress_bar
from calibrant.core.array_types import Scale
from calibrant.core.defaults import DEFAULT_REPAIR
from calibrant.core.output_files import MAP, check_named
from calibrant.core.sample import warn_if_small
from calibrant.core.warn import warn
from calibrant.exceptions import OptionError, RowSumError, SmallSampleWarning
from calibrant.maps.dialects import DIALECTS
from calibrant.maps.grouped import GroupedMap
from calibrant.maps.multiclass import MulticlassMap
from calibrant.maps.sql_and_python import ACCURACY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calibrant.calibrators.base import Calibrator, Kind
    from calibrant.core.sample import BinarySample, ClassSample
    from calibrant.engines.opening import Table
    from calibrant.predictions.predictions import Predictions


Fitted: TypeAlias = tuple[str, Any, tuple[float, float] | None]
"""What the fit changed, the map, and the range of predictions of an event."""
BINARY = 2
"""Number of columns of a binary classifier."""


@takes_predictions("task", "model", "id_", "engine")
def calibrate(
    data: DataOptions,
    out: Annotated[Path, typer.Option(help="File to write the map to, .json.")],
    method: Annotated[
        str,
        typer.Option(
            help="See 'calibrant methods'. The default combines the methods that "
            "improve held-out rows, or leaves predictions unchanged if there is "
            "little evidence of miscalibration.",
        ),
    ] = DEFAULT_REPAIR,
    keep_order: Annotated[
        bool,
        typer.Option(
            "--keep-order",
            help="For several classes and the default method: never change the order "
            "of the classes in a row, and so not the predicted class.",
        ),
    ] = False,
    seed: options.RandomSeed = 0,
    model: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Fit a calibration map on held-out predictions, for use by 'calibrant apply'.

    Pass one column of probabilities, or the columns of all classes. With --by, each
    group gets its own map if that is better on held-out rows. Maps of small groups stay
    close to the map of all rows, and groups without rows get that map. With --cluster,
    rows that belong together, such as repetitions of a question, are held out together
    and do not count as independent evidence.
    """
    from calibrant.calibrators.registry import find_method
    from calibrant.maps.stored import save_map

    if model is not None:
        raise OptionError(
            f"calibrate fits a map for each group; pass --by {model} instead of "
            f"--model {model} to fit one for each model of the column."
        )
    if out.suffix.lower() != ".json":
        raise OptionError(f"--out must end in .json; got {str(out)!r}.")
    check_named(out, MAP)
    check_not_source(data.files, out)
    data.aggregated(rows_for="a map")
    table = data.open_rows(in_memory=True)
    columns = _columns(table, data)
    several = len(columns) > 1
    chosen = find_method(method)
    kind = chosen.kinds[-1 if len(columns) > BINARY else 0]
    if len(columns) == BINARY and kind == "binary" and data.scale != ["logit"]:
        # The two columns of `predict_proba`, of which the second is the event.
        *_, event = [data.pos_label, *split_list(data.labels)]
        data = replace(data, p=[f"event={(data.p or [''])[0]}"], pos_label=event)
        columns, several = columns[1:], False
    _check_kind(method, kind, several=several)
    calibrator = chosen.seeded(seed)
    if keep_order:
        if not several or "keep_order" not in chosen.parameters:
            raise OptionError(
                "--keep-order is for several classes and the method auto; temperature "
                "and iop-* never change the order of classes."
            )
        calibrator.set_params(keep_order=True)
    if several:
        _check_options_of_classes(data)
        typed = replace(data, task="confidence", pos_label=None)
    else:
        typed = replace(data, labels=None)
    fit = _fit_classes if several else _fit_event
    with _naming_one_of(() if several else columns):
        preds = typed.predictions_in(table)
        with progress_bar("fitting"):
            said, map_, fitted_range = fit(calibrator, preds)
    given = "prob" if several or not data.scale else data.scale[0]
    scale: Any = given.rpartition("=")[2].strip()  # of the one model, named or not
    save_map(map_, out, columns=columns, fitted_range=fitted_range, scale=scale)
    hint = "" if scale == "prob" else f"; apply expects the same scale, {scale}"
    if hasattr(map_, "certificate"):
        said = str(map_.certificate)
    else:
        classes = f" of {len(columns)} classes" if several else ""
        if coefficients := _coefficients(map_):
            said = f"{coefficients}; {said}"
        said = f"{chosen.name} fitted to {preds.n:,} rows{classes}: {said}"
    typer.echo(said)
    typer.echo(f"wrote {out}{hint}")


def _coefficients(map_: Any) -> str:
    """Return the coefficients of maps that have few, in words."""
    from calibrant.maps.parametric import BetaMap

    if isinstance(map_, BetaMap) and (map_.a != map_.b or map_.intercept):
        same = map_.a == map_.b
        slope = f"slope {map_.a:.4g}" if same else f"a {map_.a:.4g}, b {map_.b:.4g}"
        return f"{slope}, intercept {map_.intercept:.4g}"
    known = hasattr(map_, "temperature")
    return f"temperature {map_.temperature:.4g}" if known else ""


def _check_options_of_classes(data: DataOptions) -> None:
    """Raise where options are given that are for one event."""
    if data.by:
        raise OptionError(
            "--by fits maps of groups for one event, but --p names several classes. "
            "Pass the column of one class, or remove --by."
        )
    if data.cluster:
        raise OptionError(
            "--cluster is for maps of one event, but --p names several classes. Pass "
            "the column of one class, or remove --cluster."
        )


@contextmanager
def _naming_one_of(columns: Sequence[str]) -> Iterator[None]:
    """Say that two columns may be two models, where they are no probabilities."""
    try:
        yield
    except RowSumError as error:
        if not columns:
            raise
        one = f" If these are two models, calibrate takes one: --p {columns[0]}."
        raise error.with_remedy(*error.remedy, one) from None


def _columns(table: Table, data: DataOptions) -> tuple[str, ...]:
    """Return the columns of the one model that is calibrated."""
    from calibrant.core.tasks import InputSpec
    from calibrant.predictions.columns import models_of_table

    if data.p is None or len(data.p) != 1:
        given = len(data.p or ())
        raise OptionError(
            "--p must be given once, with one column or the columns of all "
            f"classes; it was given {given} times. Columns are: "
            f"{', '.join(table.names)}."
        )
    (model,) = models_of_table(table, {"": split_list(data.p[0])}, InputSpec())
    return tuple(model.columns)


def _fit_event(calibrator: Calibrator, preds: Predictions) -> Fitted:
    from calibrant.numerics.scores import log_loss

    sample, groups = _sample_of(preds)
    calibrator.check_clusters(sample)
    warn_if_small(sample)
    if sample.y.min() == sample.y.max():
        warn(
            f"all {sample.n:,} labels are equal: nothing is known about the other "
            "outcome, so the map predicts almost the same for every row.",
            SmallSampleWarning,
        )
    if groups is None:
        map_ = calibrator.fit_sample(sample).map
    else:
        map_ = calibrator.fit_groups(sample, *groups).map
    warn_if_upside_down(map_, sample)
    within = float(sample.p.min()), float(sample.p.max())
    if hasattr(map_, "certificate"):
        return "", map_, within
    before = log_loss(sample.p, sample.y, sample.weight)
    after = log_loss(map_.transform(sample.p), sample.y, sample.weight)
    return _change(before, after), map_, within


def _sample_of(preds: Predictions) -> tuple[BinarySample, Any]:
    """Return all rows; and the columns of groups with each row's key, if any."""
    from calibrant.core.sample import join_samples
    from calibrant.maps.grouped import group_key

    store = preds.store
    if not store.by:
        return store.single_tasks("calibrate").samples[0], None
    units = store.units()
    samples = [unit.read().samples[0] for unit in units]
    keys = [group_key(unit.group.key.values()) for unit in units]
    parts = zip(keys, samples, strict=True)
    row_keys = [key for key, sample in parts for _ in range(sample.n)]
    return join_samples(samples), (store.by, row_keys)


def _fit_classes(calibrator: Calibrator, preds: Predictions) -> Fitted:
    from calibrant.numerics.class_probabilities import class_probabilities
    from calibrant.numerics.scores import log_loss_of_classes

    sample = cast("ClassSample", preds.store.class_sample(preds.store.models[0]))
    warn_if_small(sample)
    map_ = calibrator.fit_sample(sample).map
    uncalibrated = class_probabilities(sample.scores, sample.scale)
    before, after = (
        log_loss_of_classes(p, sample.column, sample.weight)
        for p in (uncalibrated, map_.calibrated(sample.scores))
    )
    return _change(before, after), map_, None


def _change(before: float, after: float) -> str:
    return f"log-loss on these rows {before:.4f} before, {after:.4f} after"


def _check_kind(method: str, kind: Kind, *, several: bool) -> None:
    if several and kind == "binary":
        raise OptionError(
            f"--method {method} calibrates one event, but --p names several "
            f"columns. Pass one column, or use ovr-{method} (each class "
            f"against the rest) or top-{method} (the top label)."
        )
    if not several and kind == "multi-class":
        raise OptionError(
            f"--method {method} calibrates all classes at once; pass the "
            "columns of all classes: --p a,b,c or 'forest_*'."
        )


def export(
    map_file: Annotated[
        Path,
        typer.Argument(help="Map written by 'calibrant calibrate'.", metavar="MAP"),
    ],
    dialect: Annotated[
        str, typer.Option(help=f"SQL dialect: {', '.join(DIALECTS)}.")
    ] = "ansi",
    p: Annotated[
        str | None,
        typer.Option(
            help="Column of predictions in the SQL; by default, the column that the "
            "map was fitted on.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Column(s) of groups in the SQL, a,b; by default, those that the map "
            "was fitted on.",
        ),
    ] = None,
    scale: Annotated[
        Scale | None,
        typer.Option(
            help="What the column, or p in Python, contains.",
            show_default="what the map was fitted to",
        ),
    ] = None,
    python: Annotated[
        bool,
        typer.Option(
            "--python", help="Print a Python function without imports instead of SQL."
        ),
    ] = False,
    accuracy: Annotated[
        float,
        typer.Option(
            help="Maximum error of tables, which replace long formulas; 0 writes the "
            "formulas themselves.",
        ),
    ] = ACCURACY,
) -> None:
    """Print a map as a SQL expression, or as a Python function.

    Both take predictions on the scale that the map was fitted to, such as percentages,
    and give calibrated probabilities from 0 to 1.
    """
    from calibrant.maps.stored import load_map

    map_: Any = load_map(map_file)
    if python:
        typer.echo(map_.to_python(accuracy=accuracy, scale=scale), nl=False)
        return
    if isinstance(map_, MulticlassMap):
        raise OptionError(
            f"{map_file} calibrates {map_.n_classes} classes; only maps of one event "
            "can be written as SQL. Use --python, or 'calibrant apply'."
        )
    groups = {}
    if by is not None:
        if not isinstance(map_, GroupedMap):
            raise OptionError("this map does not differ by group; remove --by.")
        groups["by"] = split_list(by)
    column = p or _fitted_column(map_file)
    typer.echo(map_.to_sql(column, dialect, accuracy=accuracy, scale=scale, **groups))


def _fitted_column(map_file: Path) -> str:
    from calibrant.maps.stored import load_columns

    columns = load_columns(map_file)
    if not columns:
        raise OptionError(
            f"--p must name the column of predictions: {map_file} does not say which "
            "column it was fitted on."
        )
    return columns[0]
