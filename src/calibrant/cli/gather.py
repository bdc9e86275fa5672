"""``calibrant gather``: files of predictions to a small table of cells."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant._validation.scales import MAX_DROPPED
from calibrant.cli import options
from calibrant.cli.progress import progress_bar
from calibrant.cli.rows import read_rows, refuse_own_source


def gather(
    source: options.Sources,
    y: options.LabelColumn,
    p: options.ModelColumns,
    out: Annotated[
        Path, typer.Option("--out", help="Where to write the cells, .parquet.")
    ],
    task: options.TaskName = None,
    by: options.GroupColumns = None,
    weight: options.WeightColumn = None,
    pos_label: options.PositiveLabel = None,
    labels: options.ClassLabels = None,
    scale: options.InputScale = None,
    engine: options.EngineName = "auto",
    bad_rows: options.BadRowsRule = "raise",
    max_dropped: options.MaxDropped = MAX_DROPPED,
) -> None:
    """Gather predictions into cells that add up; 'evaluate' takes them for rows."""
    from calibrant.engines.cell_files import check_cell_path, save_cells
    from calibrant.measures.gathered import gather_table

    check_cell_path(out)
    refuse_own_source(source, out)
    table, wanted = read_rows(
        source,
        y=y,
        p=p,
        task=task,
        weight=weight,
        by=by,
        pos_label=pos_label,
        labels=labels,
        scale=scale,
        engine=engine,
        bad_rows=bad_rows,
        max_dropped=max_dropped,
    )
    with progress_bar("gathering"):
        cells = gather_table(
            table,
            **wanted,
            bad_rows=bad_rows,  # type: ignore[arg-type]
            max_dropped=max_dropped,
        )
    save_cells(cells, out)
    typer.echo(f"wrote {out}: {cells.n:,} rows in {len(cells):,} cells")
