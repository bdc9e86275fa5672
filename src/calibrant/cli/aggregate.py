"""``calibrant aggregate``: files of predictions to one small file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import options
from calibrant.cli.predictions import check_not_source, read_predictions
from calibrant.cli.progress import progress_bar
from calibrant.core.scales import MAX_DROPPED


def aggregate(
    source: options.Sources,
    y: options.LabelColumn,
    p: options.ModelColumns,
    out: Annotated[Path, typer.Option("--out", help="Where to write, .parquet.")],
    task: options.TaskName = None,
    by: options.GroupColumns = None,
    model: options.ModelColumn = None,
    weight: options.WeightColumn = None,
    pos_label: options.PositiveLabel = None,
    labels: options.ClassLabels = None,
    scale: options.InputScale = None,
    engine: options.EngineName = "auto",
    bad_rows: options.BadRowsRule = "error",
    max_dropped: options.MaxDropped = MAX_DROPPED,
) -> None:
    """Aggregate predictions into a small mergeable file that 'evaluate' accepts."""
    from calibrant.engines.cell_files import check_cell_path

    check_cell_path(out)
    check_not_source(source, out)
    with progress_bar("aggregating"):
        preds = read_predictions(
            source,
            y=y,
            p=p,
            by=by,
            model=model,
            task=task,
            weight=weight,
            pos_label=pos_label,
            labels=labels,
            scale=scale,
            engine=engine,
            bad_rows=bad_rows,
            max_dropped=max_dropped,
        ).aggregate()
    preds.save(out)
    n_cells = len(preds.store.aggregate())
    typer.echo(f"wrote {out}: {preds.n:,} rows in {n_cells:,} cells")
