"""Pages and tables of an evaluation, which holds numbers but no rows."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

from calibrant.__about__ import __version__
from calibrant.calibrators.registry import find_evaluator
from calibrant.report.models import class_row, estimate_row
from calibrant.report.page import page
from calibrant.report.summary import FORMAT, VERSION
from calibrant.report.titles import scored_event
from calibrant.report.verdict import graded_method, verdict_of
from calibrant.report.words import shown

if TYPE_CHECKING:
    from calibrant.measures.evaluation import Assessment, Evaluation

WITHOUT_ROWS = (
    "This page was made of an evaluation, which keeps no rows: it has neither diagram "
    "nor checks nor repairs. calibrant report makes a page with them."
)


def evaluation_page(evaluation: Evaluation) -> str:
    """Return the page of an evaluation: verdicts and numbers."""
    return page(evaluation_summary(evaluation))


def evaluation_summary(evaluation: Evaluation) -> dict[str, Any]:
    """Return a summary as of `summarise`, without what needs rows."""
    first = evaluation.assessments[0]
    methods = [estimate.method for estimate in first.estimates]
    return {
        "format": FORMAT,
        "version": VERSION,
        "made": {
            "calibrant": __version__,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "seed": None,
        },
        "data": {
            "source": "",
            "rows": first.estimates[0].n,
            "label": "y_true",
            "task": first.estimates[0].task,
            "weight": None,
            "by": [],
        },
        "measured": {
            "method": graded_method(methods),
            "methods": [
                {"method": name, "summary": find_evaluator(name).summary}
                for name in methods
            ],
            "alpha": evaluation.alpha,
            "confidence": evaluation.confidence,
            "n_resamples": None,
        },
        "models": [_model(found, evaluation) for found in evaluation.assessments],
        "comparison": None,
        "notes": [WITHOUT_ROWS],
    }


def _model(found: Assessment, evaluation: Evaluation) -> dict[str, Any]:
    errors = [estimate_row(estimate) for estimate in found.estimates]
    measure = graded_method([estimate.method for estimate in found.estimates])
    verdict = verdict_of(
        next(row for row in errors if row["method"] == measure),
        [],
        None,
        base_rate=found.base_rate,
        alpha=evaluation.alpha,
        confidence=evaluation.confidence,
        task=found.estimates[0].task,
    )
    own = [e for e in found.classes if e.method == measure]
    return {
        "name": ", ".join(str(value) for value in found.key.values()),
        "rows": found.estimates[0].n,
        "weight": None,
        "base_rate": found.base_rate,
        "mean_prob": found.mean_prob,
        "verdict": verdict,
        "errors": errors,
        "scores": [
            {**asdict(split), "refinement": split.refinement} for split in found.scores
        ],
        "scored": scored_event(found.estimates[0].task),
        "diagrams": [],
        "findings": None,
        "repairs": None,
        "classes": [
            class_row(e, base_rate=None, mean_prob=None)
            for e in sorted(own, key=lambda e: -e.value)
        ],
        "groups": [],
    }


def evaluation_table(evaluation: Evaluation) -> str:
    """Return the errors as a plain HTML table, for notebooks."""
    keys = list(evaluation.assessments[0].key)
    names = [*keys, "method", "error", "low", "high", "rows"]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = []
    for found in evaluation.assessments:
        for e in found.estimates:
            row = estimate_row(e)
            texts = [str(found.key[key]) for key in keys]
            texts += [e.method, *(shown(row[k], 4) for k in ("value", "low", "high"))]
            cells = "".join(f"<td>{escape(text)}</td>" for text in [*texts, str(e.n)])
            rows.append(f"<tr>{cells}</tr>")
    return (
        f"<table><caption>Calibration error, alpha = {evaluation.alpha:g}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
