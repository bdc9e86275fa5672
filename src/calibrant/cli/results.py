"""An evaluation on standard output."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import typer

from calibrant.cli.output import Format, print_frame, rows_of

if TYPE_CHECKING:
    from calibrant._typing import Frame
    from calibrant.checks.diagnosis import Diagnosis
    from calibrant.measures.evaluation import Evaluation

SHORT_SCORES = {
    "base_rate": "base rate",
    "mean_prob": "mean p",
    "brier": "Brier",
    "brier_calibration": "Brier saved",
    "log_loss": "log-loss",
    "log_loss_calibration": "log-loss saved",
}
"""What a table on a terminal shows of the scores, under shorter names."""


def print_results(
    found: Evaluation,
    output: Format,
    *,
    per_class: bool = False,
    findings: Diagnosis | None = None,
) -> None:
    """Print errors; a table for people leaves out what is the same in all rows."""
    frame = found.per_class() if per_class else found.frame()
    if output is Format.json:
        extra = {
            "scores": rows_of(found.scores()),
            "classes": rows_of(found.per_class()),
            "alpha": found.alpha,
            "confidence": found.confidence,
        }
        if findings is not None:
            extra["findings"] = [asdict(finding) for finding in findings.findings]
        print_frame(frame, output, extra)
    elif output is Format.table:
        _print_tables(found, frame)
    else:
        print_frame(frame, output)


def _print_tables(found: Evaluation, frame: Frame) -> None:
    level = (
        ""
        if found.confidence is None
        else f" and {100 * found.confidence:g}% intervals"
    )
    bias = ", bias taken out" if frame["debiased"].all() else ""
    typer.echo(f"Calibration error{level}{bias} (alpha = {found.alpha:g})")
    binary = bool(np.all(frame["task"] == "binary"))
    hidden = {"debiased", "task"} if binary else {"debiased"}
    print_frame({k: v for k, v in frame.items() if k not in hidden}, Format.table)
    if (frame["value"] < 0.0).any():
        typer.echo("Values below 0 mean that no error can be told from noise.\n")

    typer.echo("Scores, and how much of each the best recalibration would save")
    dropped = {"brier_refinement", "log_loss_refinement"}
    kept = {k: v for k, v in found.scores().items() if k not in dropped}
    print_frame({SHORT_SCORES.get(k, k): v for k, v in kept.items()}, Format.table)
