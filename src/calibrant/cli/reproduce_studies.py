"""``calibrant reproduce pseudo-real`` and ``real``: studies on predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from calibrant.cli.columns import listed
from calibrant.cli.figures import write_figure
from calibrant.cli.progress import progress_bar
from calibrant.cli.study_output import TableFormat, made_by, show_tables, times
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant._typing import Frame
    from calibrant.experiments.design import Design
    from calibrant.experiments.predictions import PredictionSet

CIFAR_EVENTS = "1=cars,3=cats,5=dogs,confidence"
DIGIT_EVENTS = "1,3,8,confidence"
SETS, SEEDS, VARIANTS = 20, 5, 5
SIZES = "1000,3000,10000"

Data = Annotated[
    list[Path] | None,
    typer.Option(
        "--data",
        help="Folder of predictions, one npz file or folder of npy or Parquet files a "
        "model; may be given several times. Without it the embedded digits.",
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="A small part, in a minute or two.")
]
Jobs = Annotated[int, typer.Option("--jobs", help="Processes; -1 for one a core.")]
Output = Annotated[TableFormat, typer.Option("--format", help="How to print.")]
Retry = Annotated[bool, typer.Option("--retry-failures", help="Do failed cells again.")]


def pseudo_real(
    data: Data = None,
    quick: Quick = False,
    out: Annotated[
        Path, typer.Option("--out", help="Folder of results, tables and log.")
    ] = Path("calibrant-pseudo-real"),
    events: Annotated[
        str | None,
        typer.Option(
            "--events",
            help="Classes against the rest, as number or number=name, and "
            f"confidence. With --data {CIFAR_EVENTS}, else {DIGIT_EVENTS}.",
        ),
    ] = None,
    calibration_sets: Annotated[
        int, typer.Option("--calibration-sets", min=1, help="For calibrators.")
    ] = SETS,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Test sets of each size.")
    ] = SEEDS,
    sizes: Annotated[
        str, typer.Option("--sizes", help="Rows of test sets, for evaluators.")
    ] = SIZES,
    variants: Annotated[
        int,
        typer.Option(
            "--variants",
            min=0,
            help="Samples for variants of pl and pl3 and for order-preserving "
            "networks (which need torch), the slowest part; 0 leaves them out.",
        ),
    ] = VARIANTS,
    jobs: Jobs = 1,
    output: Output = TableFormat.markdown,
    retry_failures: Retry = False,
) -> None:
    """Compare calibrators and evaluators where a vast hold-out tells the true map.

    Every finished cell is on disk at once: the same command goes on where a run was
    stopped. Tables of all formats are written beside the results.
    """
    from calibrant.experiments.predictions import Event
    from calibrant.experiments.studies import PseudoRealStudy, has_torch
    from calibrant.experiments.study_tables import study_tables

    asked = events or (CIFAR_EVENTS if data else DIGIT_EVENTS)
    study = PseudoRealStudy(
        _models(data, quick=quick),
        [Event.of(text) for text in listed(asked)],
        calibration_sets=min(calibration_sets, 2) if quick else calibration_sets,
        seeds=min(seeds, 2) if quick else seeds,
        sizes=_counts(sizes),
        variant_seeds=variants,
        quick=quick,
    )
    rows = _run_all(study.designs(), out, jobs, retry_failures=retry_failures)
    options = {
        "--data": _told(data),
        "--quick": quick,
        "--events": events,
        "--calibration-sets": calibration_sets if calibration_sets != SETS else None,
        "--seeds": seeds if seeds != SEEDS else None,
        "--sizes": sizes if sizes != SIZES else None,
        "--variants": str(variants) if variants != VARIANTS else None,
    }
    notes = [made_by("pseudo-real", options, jobs), times([rows], out)]
    if variants and not quick and not has_torch():
        notes.append("Networks (iop-*) are left out: torch is not installed.")
    show_tables("Pseudo-real experiments", study_tables(rows), notes, out, output)


def real(
    data: Data = None,
    beside: Annotated[
        Path | None,
        typer.Option(
            "--pseudo-real",
            help="Folder of models with a vast hold-out, whose biases centre those of "
            "real data. Without it (and with --data) rows are centred at 0.",
        ),
    ] = None,
    quick: Quick = False,
    out: Annotated[
        Path, typer.Option("--out", help="Folder of results, tables, figure and log.")
    ] = Path("calibrant-real"),
    seeds: Annotated[
        int,
        typer.Option("--seeds", min=1, help="Pseudo-real test sets of each size."),
    ] = SEEDS,
    sizes: Annotated[
        str, typer.Option("--sizes", help=f"Rows of subsets: some of {SIZES}.")
    ] = SIZES,
    jobs: Jobs = 1,
    output: Output = TableFormat.markdown,
    retry_failures: Retry = False,
) -> None:
    """Compare evaluators on real predictions, of which no truth is known.

    Models are calibrated in five ways; subsets of their test rows are evaluated. A
    table tells biases up to a constant a row, a figure how evaluators order the five.
    """
    from calibrant.experiments.real import RealStudy
    from calibrant.experiments.real_tables import bias_table, ordering_figure

    known: list[PredictionSet] = []
    if beside or not data:
        known = _models([beside] if beside else None, quick=quick)
    study = RealStudy(
        _models(data, quick=quick),
        known,
        quick=quick,
        seeds=seeds,
        sizes=_counts(sizes),
    )
    rows = _run_all(study.designs(), out, jobs, retry_failures=retry_failures)
    options = {
        "--data": _told(data),
        "--pseudo-real": beside.name if beside else None,
        "--quick": quick,
        "--seeds": seeds if seeds != SEEDS else None,
        "--sizes": sizes if sizes != SIZES else None,
    }
    notes = [made_by("real", options, jobs), times([rows], out)]
    show_tables("Real experiments", [bias_table(rows)], notes, out, output)
    write_figure(ordering_figure(rows), out / "ordering.png")


def _models(data: Sequence[Path] | None, *, quick: bool) -> list[PredictionSet]:
    """Return the models of folders, or of the embedded digits."""
    from calibrant.experiments.embedded import embedded_predictions
    from calibrant.experiments.prediction_files import find_predictions

    if not data:
        return list(embedded_predictions(quick=quick))
    return [model for folder in data for model in find_predictions(folder)]


def _counts(text: str) -> list[int]:
    """Return the numbers of a list with commas."""
    if not all(part.isdecimal() for part in listed(text)):
        raise OptionError(f"--sizes must be numbers with commas; got {text!r}.")
    return [int(part) for part in listed(text)]


def _told(data: Sequence[Path] | None) -> str | None:
    """Return the names of folders; where they lie is nobody's business."""
    return " --data ".join(folder.name for folder in data) if data else None


def _run_all(
    designs: Sequence[Design], out: Path, jobs: int, *, retry_failures: bool
) -> Frame:
    """Run designs into one folder and put their results together."""
    from calibrant.experiments.runner import run

    frames = []
    for design in designs:
        with progress_bar("fitting") as progress:
            frames.append(
                run(
                    design,
                    out,
                    jobs=jobs,
                    progress=progress,
                    retry_failures=retry_failures,
                )
            )
    return {name: np.concatenate([f[name] for f in frames]) for name in frames[0]}
