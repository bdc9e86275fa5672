"""``calibrant gather``: files of predictions to a small table of cells."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.rows import BAD_ROWS_HELP, ENGINE_HELP, read_rows


def gather(
    source: Annotated[
        list[str],
        typer.Argument(
            help="CSV, TSV, Parquet, JSON lines or npz file; several, a folder or a "
            "pattern, 'lake/*.parquet'.",
            metavar="FILE...",
        ),
    ],
    y: Annotated[str, typer.Option("--y", help="Column of labels.")],
    p: Annotated[
        list[str],
        typer.Option("--p", help="Column(s) of probabilities, as in 'evaluate'."),
    ],
    out: Annotated[
        Path, typer.Option("--out", help="Where to write the cells, .parquet.")
    ],
    task: Annotated[
        str | None,
        typer.Option("--task", help="confidence, classwise, or a class."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="Column(s) of groups, a,b.")
    ] = None,
    weight: Annotated[
        str | None, typer.Option("--weight", help="Column of sample weights.")
    ] = None,
    pos_label: Annotated[
        str | None, typer.Option("--pos-label", help="Label of the event.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option("--labels", help="Label of each class column, a,b,c."),
    ] = None,
    scale: Annotated[
        str, typer.Option("--scale", help="What columns hold: prob or logit.")
    ] = "prob",
    engine: Annotated[str, typer.Option("--engine", help=ENGINE_HELP)] = "auto",
    bad_rows: Annotated[str, typer.Option("--bad-rows", help=BAD_ROWS_HELP)] = "raise",
) -> None:
    """Gather predictions into cells that add up; 'evaluate' takes them for rows."""
    from calibrant.engines.cell_files import check_cell_path, save_cells
    from calibrant.measures.gathered import gather_table

    check_cell_path(out)
    table, wanted = read_rows(
        source[0] if len(source) == 1 else source,
        y=y,
        p=p,
        task=task,
        weight=weight,
        by=by,
        pos_label=pos_label,
        labels=labels,
        engine=engine,
        bad_rows=bad_rows,
    )
    cells = gather_table(
        table,
        **wanted,
        scale=scale,  # type: ignore[arg-type]
        bad_rows=bad_rows,  # type: ignore[arg-type]
    )
    save_cells(cells, out)
    typer.echo(f"wrote {out}: {cells.n:,} rows in {len(cells):,} cells")
