"""Advice that agrees with what was measured on these rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calibrant.report.repairs import NONE
from calibrant.report.titles import title_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from calibrant.checks.check import Finding

LEAST_SHOWN = 0.001
NOT_BETTER = "No repair that was tried makes predictions better on rows left out."


def advise(
    findings: Iterable[Finding], repairs: Mapping[str, Any] | None
) -> list[Finding]:
    """Return findings whose remedy is the repair that was measured to be the best.

    Where nothing was measured, and of single groups, the general remedy stays.
    """
    if repairs is None:
        return list(findings)
    return [
        _advised(finding, repairs)
        if finding.calibrator and "group" not in finding.where
        else finding
        for finding in findings
    ]


def _advised(finding: Finding, repairs: Mapping[str, Any]) -> Finding:
    best = repairs["advised"]
    if best == NONE:
        told = NOT_BETTER
    else:
        told = f"Of the repairs that were tried, {best} helps most"
        told += _against(finding.calibrator, repairs) + "."
    remedy = " ".join(filter(None, (told, finding.besides)))
    return replace(finding, remedy=remedy, calibrator="" if best == NONE else best)


def _against(usual: str, repairs: Mapping[str, Any]) -> str:
    """Return how the method that is usual for such a fault compares."""
    losses = {row["method"]: row["log_loss"] for row in repairs["rows"]}
    best = repairs["advised"]
    told = f": log-loss {losses[best]:.4f}, without {losses[NONE]:.4f}"
    second = f"{losses[usual]:.4f}" if usual in losses else ""
    if second and second != f"{losses[best]:.4f}":
        told += f", by {usual} {second}"
    return told


def best_sentence(repairs: Mapping[str, Any] | None, value: float) -> list[str]:
    """Return what the best repair would bring, for the verdict."""
    if repairs is None:
        return []
    best = next(r for r in repairs["rows"] if r["method"] == repairs["advised"])
    if best["method"] == NONE:
        return ["No recalibration that was tried would make predictions better."]
    name = title_of(best["method"])
    if best["error"] is None:
        return [
            f"{name} would make predictions better, by {best['gain']:.3f} of log-loss."
        ]
    error = max(float(best["error"]), 0.0)
    if error >= value:
        return [f"{name} would make the log-loss better, though not this error."]
    left = f"{error:.3f}" if error >= LEAST_SHOWN else f"below {LEAST_SHOWN:g}"
    most = "" if best["high"] is None else f", at most {best['high']:.3f}"
    return [
        f"{name} would bring the error to {left}{most}, on rows not used to fit it."
    ]
