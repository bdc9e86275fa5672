"""``calibrant calibrate``: a file of held-out predictions to a map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from calibrant.calibrators.base import fit_family
from calibrant.cli import options
from calibrant.cli.columns import listed
from calibrant.cli.predictions import (
    check_not_source,
    open_aggregated,
    open_rows,
    predictions_of,
)
from calibrant.cli.progress import progress_bar
from calibrant.core.defaults import DEFAULT_CLASS_METHOD, DEFAULT_METHOD
from calibrant.core.output_files import MAP, check_named
from calibrant.core.sample import warn_if_small
from calibrant.core.scales import MAX_DROPPED
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from calibrant.calibrators.registry import Method
    from calibrant.core.class_sample import ClassSample
    from calibrant.predictions.predictions import Predictions


def calibrate(
    source: Annotated[
        list[str],
        typer.Argument(
            help="Held-out predictions: CSV, TSV, Parquet, JSON lines or npz; several "
            "files, a folder or a pattern.",
            metavar="FILE...",
        ),
    ],
    y: options.LabelColumn,
    p: Annotated[
        str,
        typer.Option(
            "--p",
            help="Column of probabilities of the event; or the columns of all classes, "
            "a,b,c or 'forest_*'.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Where to write the map, .json.")],
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="See 'calibrant methods'. Without: pl3 for one column, temperature "
            "for several.",
        ),
    ] = None,
    weight: options.WeightColumn = None,
    pos_label: options.PositiveLabel = None,
    labels: options.ClassLabels = None,
    scale: options.OneScale = options.ScaleChoice.prob,
    bad_rows: options.BadRowsRule = "error",
    max_dropped: options.MaxDropped = MAX_DROPPED,
    seed: options.RandomSeed = 0,
) -> None:
    """Fit a calibration map to held-out predictions, for 'calibrant apply'."""
    from calibrant.calibrators.registry import find_method
    from calibrant.maps.stored import save_map
    from calibrant.predictions.columns import models_of_table
    from calibrant.predictions.input_spec import InputSpec

    _check_map_path(out)
    check_not_source(source, out)
    open_aggregated(source, rows_for="a map")
    table = open_rows(source, "memory", bad_rows)
    (model,) = models_of_table(table, {"": listed(p)}, InputSpec())
    several = len(model.columns) > 1
    found = find_method(method or (DEFAULT_CLASS_METHOD if several else DEFAULT_METHOD))
    _check_kind(found, several=several)
    family = found.seeded(seed)
    preds = predictions_of(
        table,
        y=y,
        p=[p],
        by=None,
        task="confidence" if several else None,
        weight=weight,
        pos_label=None if several else pos_label,
        labels=labels if several else None,
        scale=[scale.value],
        bad_rows=bad_rows,
        max_dropped=max_dropped,
    )
    fit = _fit_classes if several else _fit_event
    with progress_bar("fitting"):
        told, map_ = fit(family, preds)
    save_map(map_, out, columns=model.columns)
    other = scale is not options.ScaleChoice.prob and not several
    hint = f"; apply it with --scale {scale}" if other else ""
    classes = f" of {len(model.columns)} classes" if several else ""
    typer.echo(f"{found.name} fitted to {preds.n:,} rows{classes}: {told}")
    typer.echo(f"wrote {out}{hint}")


def _fit_event(family: Any, preds: Predictions) -> tuple[str, Any]:
    from calibrant.numerics.scores import log_loss

    sample = preds.store.single_tasks("calibrate").samples[0]
    warn_if_small(sample)
    map_ = fit_family(family, sample).map
    before = log_loss(sample.p, sample.y, sample.weight)
    after = log_loss(map_.transform(sample.p), sample.y, sample.weight)
    return _change(before, after), map_


def _fit_classes(family: Any, preds: Predictions) -> tuple[str, Any]:
    from calibrant.numerics.class_probabilities import class_probabilities
    from calibrant.numerics.scores import log_loss_of_classes

    sample = cast("ClassSample", preds.store.class_sample(preds.store.models[0]))
    warn_if_small(sample)
    map_ = fit_family(family, sample).map
    uncalibrated = class_probabilities(sample.scores, sample.scale)
    before, after = (
        log_loss_of_classes(p, sample.column, sample.weight)
        for p in (uncalibrated, map_.calibrated(sample.scores))
    )
    return _change(before, after), map_


def _change(before: float, after: float) -> str:
    return f"log-loss on them {before:.4f}, with the map {after:.4f}"


def _check_map_path(out: Path) -> None:
    if out.suffix.lower() != ".json":
        raise OptionError(f"--out must end in .json; got {str(out)!r}.")
    check_named(out, MAP)


def _check_kind(found: Method, *, several: bool) -> None:
    if several and found.kind == "binary":
        raise OptionError(
            f"--method {found.name} calibrates one event, but --p names several "
            f"columns. Name one, or lift it: ovr-{found.name} (each class against the "
            f"rest) or top-{found.name} (the top label)."
        )
    if not several and found.kind == "multi-class":
        raise OptionError(
            f"--method {found.name} calibrates all classes at once; name the columns "
            f"of all classes by --p a,b,c or 'forest_*'."
        )
