"""``calibrant aggregate``: files of predictions to one small file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.data_options import DataOptions, check_not_source, takes_predictions
from calibrant.cli.progress import progress_bar


@takes_predictions("id_")
def aggregate(
    data: DataOptions,
    out: Annotated[Path, typer.Option(help="File to write, .parquet.")],
) -> None:
    """Aggregate predictions into a small mergeable file that 'evaluate' accepts."""
    from calibrant.engines.cell_files import check_cell_path

    check_cell_path(out)
    check_not_source(data.files, out)
    with progress_bar("aggregating"):
        preds = data.predictions().aggregate()
    preds.save(out)
    n_cells = len(preds.store.aggregate())
    typer.echo(f"wrote {out}: {preds.n:,} rows in {n_cells:,} cells")
