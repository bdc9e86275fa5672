"""An evaluation on standard output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import typer

from calibrant.cli.output import Format, print_frame, rows_of

if TYPE_CHECKING:
    from calibrant._typing import Frame
    from calibrant.measures.evaluation import Evaluation

SHORT_SCORES = {
    "base_rate": "base rate",
    "mean_prob": "mean p",
    "brier": "Brier",
    "brier_calibration": "calibration",
    "log_loss": "log-loss",
    "log_loss_calibration": "calibration ",
}
"""What a table on a terminal shows of the scores, under shorter names."""


def print_results(found: Evaluation, output: Format) -> None:
    """Print errors; a table for people leaves out what is the same in all rows."""
    if output is Format.json:
        extra = {
            "scores": rows_of(found.scores()),
            "classes": rows_of(found.per_class()),
            "alpha": found.alpha,
            "confidence": found.confidence,
        }
        print_frame(found.frame(), output, extra)
    elif output is Format.table:
        _print_tables(found)
    else:
        print_frame(found.frame(), output)


def _print_tables(found: Evaluation) -> None:
    frame, scores = found.frame(), found.scores()
    level = "" if found.confidence is None else f" and {found.confidence:.0%} intervals"
    bias = ", bias taken out" if frame["debiased"].all() else ""
    typer.echo(f"Calibration error{level}{bias} (alpha = {found.alpha:g})")
    hidden = {"debiased"} | ({"task"} if _is_constant(frame, "task") else set())
    print_frame({k: v for k, v in frame.items() if k not in hidden}, Format.table)

    typer.echo("Scores, and how much of each the best recalibration would save")
    dropped = {"brier_refinement", "log_loss_refinement"}
    kept = {k: v for k, v in scores.items() if k not in dropped}
    print_frame({SHORT_SCORES.get(k, k): v for k, v in kept.items()}, Format.table)


def _is_constant(frame: Frame, name: str) -> bool:
    return bool(np.all(frame[name] == "binary"))
