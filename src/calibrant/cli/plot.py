"""``calibrant plot``, and figures on disk: whole, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from calibrant.__about__ import __version__
from calibrant.cli import options
from calibrant.cli.data_options import DataOptions, check_not_source, takes_predictions
from calibrant.cli.progress import progress_bar
from calibrant.core.defaults import DEFAULT_METHOD
from calibrant.core.output_files import FIGURE, atomic_write, check_derived, check_named
from calibrant.core.parameters import check_choice
from calibrant.exceptions import OptionError

Kind: TypeAlias = Literal["curve", "diagonal", "centres", "bars"]
Axes: TypeAlias = Literal["prob", "logit", "auto"]


@takes_predictions("engine", "id_")
def plot(
    data: DataOptions,
    out: Annotated[Path, typer.Option(help="File to write: .png, .svg or .pdf.")],
    method: options.MethodName = DEFAULT_METHOD,
    kind: Annotated[
        Kind,
        typer.Option(
            metavar="KIND",
            help="curve: the map with its band, and bins with intervals; diagonal: "
            "filled between map and diagonal; bars: bars of observed rates; centres: "
            "bars with dots and lines to the diagonal.",
        ),
    ] = "curve",
    axes: Annotated[
        Axes,
        typer.Option(
            metavar="AXES",
            help="prob: probabilities; logit: log-odds, which stretch both ends; auto: "
            "logit for rare events.",
        ),
    ] = "prob",
    histogram: Annotated[
        bool,
        typer.Option(
            "--histogram/--no-histogram",
            help="Show how the predictions are distributed.",
        ),
    ] = True,
    overlay: Annotated[
        bool,
        typer.Option(
            "--overlay", help="All curves in one diagram, such as before and after."
        ),
    ] = False,
    style: Annotated[
        str, typer.Option(metavar="STYLE", help="colour, or grey for print.")
    ] = "colour",
    width: Annotated[
        float | None,
        typer.Option(help="Inches: 3.5 for one column of a journal, 7 for two."),
    ] = None,
    debias: options.Debiased = True,
    seed: options.RandomSeed = 0,
) -> None:
    """Draw one reliability diagram per model, class and group."""
    from calibrant.displays.grid import ReliabilityGrid
    from calibrant.displays.style import STYLES, check_width

    check_choice(style, STYLES, name="--style")
    check_figure_path(out)
    check_not_source(data.files, out)
    if width is not None:
        check_width(width)
    look: dict[str, Any] = {"style": style, "width": width}
    with progress_bar("drawing"):
        grid = ReliabilityGrid.from_predictions(
            data.predictions(prefer_memory=True),
            kind=kind,
            axes=axes,
            method=method,
            histogram=histogram,
            debias="auto" if debias else False,
            random_state=seed,
        )
        figure = grid.overlay(**look).figure if overlay else grid.plot(**look)
        write_figure(figure, out)


DPI = 200
SOFTWARE = {".png": "Software", ".svg": "Creator", ".pdf": "Creator"}
"""What formats call the program that made a figure."""


def check_figure_path(path: Path | None, *, named: bool = True) -> None:
    """Raise where a figure cannot be written, before any work is done.

    `named` says whether the user has named the file.
    """
    if path is None:
        return
    if path.suffix.lower() not in FIGURE.suffixes:
        raise OptionError(
            f"{path}: figures are written as {', '.join(FIGURE.suffixes)}, not as "
            f"{path.suffix or 'files without extension'}."
        )
    (check_named if named else check_derived)(path, FIGURE)


def write_figure(figure: Any, path: Path) -> None:
    """Write a figure and say where."""
    made_by = {SOFTWARE[path.suffix.lower()]: f"calibrant {__version__}"}
    import matplotlib as mpl

    # Journals refuse fonts of type 3, the default in PDF.
    with mpl.rc_context({"pdf.fonttype": 42}), atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=DPI, metadata=made_by)
    typer.echo(f"wrote {path}", err=True)
