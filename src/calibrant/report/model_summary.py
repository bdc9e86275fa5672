"""One model of a report: errors, diagram, findings, repairs, classes, groups."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from calibrant.__about__ import __version__
from calibrant.calibrators.registry import EVALUATORS, method_name
from calibrant.checks.check import Subject
from calibrant.checks.data_checks import group_gaps
from calibrant.checks.diagnosis import diagnose_tasks, is_turned
from calibrant.core.formatting import MIN_DECIMALS, decimals_to_distinguish
from calibrant.core.sample import FEW_ROWS
from calibrant.core.tasks import NAMED_TASKS
from calibrant.displays.diagram_data import axis_names, data_range, map_points
from calibrant.exceptions import TooFewRowsError, WeightError
from calibrant.maps.binned import BinnedMap
from calibrant.measures.estimate import FittedTasks
from calibrant.measures.evaluation import assess_one
from calibrant.measures.score_decomposition import mean_splits
from calibrant.measures.summary import MEASURES, CalibrationSummary, summarise_fitted
from calibrant.report.commands import Origin, command, python
from calibrant.report.diagram import curve_numbers, diagrams_of
from calibrant.report.json_numbers import error_numbers, number, plain, rows_of
from calibrant.report.regions import Region, regions_of, remark_of
from calibrant.report.repairs import MAX_CLASSES, NONE, advise, repairs_of
from calibrant.report.verdict import (
    graded_method,
    reconcile,
    significant_findings,
    verdict_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from calibrant.calibrators.fits import Fit
    from calibrant.checks.check import Finding
    from calibrant.core.sample import BinarySample, ClassSample
    from calibrant.core.tasks import BinaryTasks
    from calibrant.measures.estimate import ErrorSettings, Estimate
    from calibrant.predictions.predictions import Predictions

WORST_CLASSES = 4
"""How many of many classes get a diagram, the worst."""
QUICK_METHODS = ("es15", "ew15")
"""The errors of very many classes are by these, unless methods were asked for."""
SCORED_EVENTS = {
    "binary": "the event",
    "confidence": "whether the top label is right",
    "classwise": "each class against the rest, averaged over classes",
    "multilabel": "each label, averaged over labels",
}
"""Which event Brier score and log-loss are about, by task."""
ERRORS_OF = {
    "confidence": "calibration error of the top label",
    "classwise": "classwise calibration error",
    "multilabel": "mean calibration error over labels",
}
"""What a paper calls the error, by task."""


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """How each model is looked at.

    `errors` has the exponent, intervals and seed; `mute` the codes of checks to leave
    out. If `default_methods`, no methods were asked for, and very many classes get
    quick ones; then `drawn` is what diagrams show besides `methods`.
    """

    methods: tuple[str, ...]
    errors: ErrorSettings
    confidence: float
    mute: tuple[str, ...] = ()
    default_methods: bool = False
    drawn: tuple[str, ...] = ()

    def for_events(self, number: int) -> ReportSettings:
        """Return the settings for so many events: of very many, only quick errors.

        The worst of them are still drawn by all methods.
        """
        if not self.default_methods or number <= MAX_CLASSES:
            return self
        return replace(self, methods=QUICK_METHODS, drawn=self.methods)

    @cached_property
    def named(self) -> dict[str, str]:
        """Return the methods by what results call them."""
        return {method_name(method): method for method in self.methods}

    @property
    def measure(self) -> str:
        """Return the method that the verdict is about."""
        return self.named[self.measure_name]

    @property
    def measure_name(self) -> str:
        """Return what results call the method that the verdict is about."""
        return graded_method([*self.named])


def summarise_model(
    preds: Predictions,
    model: str,
    fitted: FittedTasks,
    groups: Mapping[str, BinaryTasks],
    settings: ReportSettings,
    step: Callable[[], None],
) -> dict[str, Any]:
    """Return what a report says of one model; `step` is called after each part."""
    tasks = fitted.tasks
    scores = mean_splits(tasks)  # first: rows are then in order for all bins
    assessment = assess_one(fitted, settings.methods)
    names = {estimate.method for estimate in assessment.estimates}
    methods = tuple(m for name, m in settings.named.items() if name in names)
    if methods != settings.methods:  # some need more rows
        settings = replace(settings, methods=methods)
    step()
    estimate, *own = fitted.estimates(settings.measure)
    order = np.argsort([-e.value for e in own], kind="stable").tolist()
    estimates = [own[k] for k in order[:WORST_CLASSES]] or [estimate]
    event, cluster_column = preds.store.origin.event, preds.store.cluster_column
    panels, regions = _panels(fitted, event, order, estimates, settings)
    step()
    diagnosis = diagnose_tasks(tasks, groups, mute=settings.mute)
    turned = any(is_turned(f) and not f.where for f in diagnosis.findings)
    repairs = None if turned else _repairs(preds, model, fitted, settings)
    findings = advise(diagnosis.findings, repairs)
    step()
    sure = bool(significant_findings(findings)) or not estimate.low <= 0.0
    if len(panels) == 1:
        panels[0]["remark"] = remark_of(panels[0], regions, significant=sure)
    errors = [estimate_row(estimate) for estimate in assessment.estimates]
    classes = [_class_row(tasks, k, own[k]) for k in order]
    measures = _measures(fitted, settings, cluster_column)
    verdict = verdict_of(
        estimate_row(estimate),
        regions,
        repairs,
        base_rate=assessment.base_rate,
        alpha=settings.errors.alpha,
        significant=bool(significant_findings(findings)),
        confidence=settings.confidence,
        task=tasks.task,
    )
    return {
        "name": preds.store.display_name(model),
        "rows": tasks.samples[0].n_data,
        "weight": tasks.samples[0].total,
        "base_rate": number(assessment.base_rate),
        "mean_prob": number(assessment.mean_prob),
        "verdict": reconcile(
            verdict, findings, classes=[row["class"] for row in classes]
        ),
        "errors": errors,
        "scores": [
            {**asdict(split), "refinement": split.refinement} for split in scores
        ],
        "scored": SCORED_EVENTS.get(tasks.task, f"class {tasks.task} against the rest"),
        "diagrams": panels,
        "findings": [_finding_row(finding, regions) for finding in findings],
        "repairs": repairs,
        "classes": classes,
        "groups": _group_rows(tasks, groups, settings, step),
        "measures": [] if measures is None else _measure_rows(measures),
        "sentence": _sentence(estimate, measures, settings),
        "on_diagonal": measures is not None and measures.units[0].on_diagonal,
    }


def count_steps(groups: Mapping[str, BinaryTasks]) -> int:
    """Return how often `summarise_model` calls `step`."""
    return 3 + len(groups)


def estimate_row(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as a summary holds it."""
    names = ("method", "value", "low", "high", "debiased", "bins")
    return plain({name: getattr(estimate, name) for name in names})


def _class_row(tasks: BinaryTasks, place: int, estimate: Estimate) -> dict[str, Any]:
    sample = tasks.samples[place]
    return {
        "class": estimate.task,
        **error_numbers(estimate),
        "base_rate": number(sample.mean(sample.y)),
        "mean_prob": number(sample.mean(sample.p)),
    }


def _measures(
    fitted: FittedTasks, settings: ReportSettings, cluster_column: str
) -> CalibrationSummary | None:
    """Return what validation studies report, None for several events."""
    if len(fitted.tasks.samples) > 1:
        return None
    try:
        unit = summarise_fitted(fitted, "smooth", {}, cluster_column)
    except (TooFewRowsError, WeightError):  # all weight on a few rows
        return None
    return CalibrationSummary((unit,), settings.confidence, "smooth")


def _measure_rows(measures: CalibrationSummary) -> list[dict[str, Any]]:
    names = ("measure", "value", "low", "high")
    frame = measures.frame()
    rows = rows_of({name: frame[name] for name in names})
    return [row | {"summary": MEASURES[row["measure"]]} for row in rows]


def _sentence(
    estimate: Estimate, measures: CalibrationSummary | None, settings: ReportSettings
) -> str:
    """Return what a paper can say about the error, and about measures if any."""
    low, high = number(estimate.low), number(estimate.high)
    places = MIN_DECIMALS
    if low is not None and high is not None:
        places = decimals_to_distinguish(low, high)
    kind = ERRORS_OF.get(estimate.task, "calibration error")
    said = f"The {kind} was {estimate.value:.{places}f} ("
    if low is not None:
        said += f"{100 * settings.confidence:g} % interval {low:.{places}f} to "
        said += f"{high:.{places}f}; "
    said += f"{estimate.method}, calibrant {__version__})."
    return said if measures is None else f"{said} {measures.sentence()}"


def _finding_row(finding: Finding, regions: Sequence[Region]) -> dict[str, Any]:
    if finding.code == "CAL004" and regions and not finding.where:
        first = finding.message
        finding = replace(
            finding,
            message=f"Predictions are {_join_regions(regions)}. In the worst bin, "
            f"{first[:1].lower()}{first[1:]}",
        )
    where = {name: str(value) for name, value in finding.where.items()}
    evidence, also = plain(finding.evidence), list(finding.also)
    return asdict(finding) | {"evidence": evidence, "where": where, "also": also}


def _join_regions(regions: Sequence[Region]) -> str:
    """Return the regions of the verdict, as findings name them too."""
    off = [f"too {'high' if one.too_high else 'low'} {one}" for one in regions[:2]]
    return " and ".join(off)


def _panels(
    fitted: FittedTasks,
    event: str | None,
    order: Sequence[int],
    estimates: Sequence[Estimate],
    settings: ReportSettings,
) -> tuple[list[dict[str, Any]], list[Region]]:
    """Return the diagram of the event with its regions, or those of worst classes.

    `estimates` are the errors of these events.
    """
    more = [method for method in settings.drawn if method not in settings.methods]
    names = {method_name(m): m for m in more} | settings.named
    with_map = {name: m for name, m in names.items() if name not in EVALUATORS}
    tasks, several = fitted.tasks, len(fitted.tasks.samples) > 1
    if not with_map:  # nothing but squared norms
        return [], []
    places = order[:WORST_CLASSES] if several else [0]
    fits = {name: fitted.fits(method) for name, method in with_map.items()}
    drawn = diagrams_of(
        [tasks.samples[k] for k in places],
        [{name: cast("Fit", own[k]) for name, own in fits.items()} for k in places],
        estimates,
        confidence=settings.confidence,
        seed=settings.errors.random_state,
    )
    panels = [
        {
            "event": tasks.names[k] if several else tasks.task,
            "axis_labels": [
                *axis_names(tasks.task, tasks.names[k] if several else event)
            ],
            **panel,
        }
        for k, panel in zip(places, drawn, strict=True)
    ]
    banded = [curve for curve in panels[0]["curves"] if "whole_low" in curve]
    if several or not banded:
        return panels, []
    return panels, regions_of(banded[0], tasks.samples[0])


def _repairs(
    preds: Predictions,
    model: str,
    fitted: FittedTasks,
    settings: ReportSettings,
) -> dict[str, Any] | None:
    """Return what repairs would bring, with the command and call of the best one."""
    tasks = fitted.tasks
    sample: BinarySample | ClassSample = tasks.samples[0]
    if tasks.task == "multilabel":  # calibrators repair one label at a time
        return None
    if tasks.task in NAMED_TASKS:
        of_classes = preds.store.class_sample(model)
        if of_classes is None:  # aggregates do not know which classes share rows
            return None
        sample = replace(of_classes, clusters=tasks.samples[0].clusters)
    repairs = repairs_of(sample, fitted, settings.measure)
    if repairs is None:
        return None
    best, origin = repairs["advised"], Origin.of(preds, model) or Origin()
    if best == NONE:
        return repairs | {"command": "", "python": ""}
    # A report is passed on; folders of its author are left out.
    names = tuple(PurePath(file).name for file in origin.files)
    fit = command(replace(origin, files=names), best)
    return repairs | {"command": fit, "python": python(origin, best)}


def _group_rows(
    tasks: BinaryTasks,
    groups: Mapping[str, BinaryTasks],
    settings: ReportSettings,
    step: Callable[[], None],
) -> list[dict[str, Any]]:
    """Return one row per group, worst first, then those of few rows."""
    pvalues: dict[str, float] = {}
    if groups and len(tasks.samples) == 1:
        samples = {name: part.samples[0] for name, part in groups.items()}
        subject = Subject(tasks.samples[0], tasks.task, groups=samples)
        pvalues = {gap.name: gap.pvalue for gap in group_gaps(subject.independent)}
    rows = []
    for name, part in groups.items():
        rows.append(_group_row(name, part, pvalues.get(name), settings))
        step()
    return sorted(rows, key=largest_error_first)


def largest_error_first(row: Mapping[str, Any]) -> tuple[bool, bool, float]:
    """Return a key to sort by: the largest error first, rows without any last.

    Errors of few rows are mostly noise, and come after all others.
    """
    error = row["error"]
    return error is None, row["rows"] < FEW_ROWS, 0.0 if error is None else -error


def _group_row(
    name: str, tasks: BinaryTasks, pvalue: float | None, settings: ReportSettings
) -> dict[str, Any]:
    estimate, curve = None, None
    try:
        fitted = FittedTasks(tasks, settings.errors)
        estimate = fitted.estimates(settings.measure)[0]
        curve = _group_curve(fitted, settings)
    except (TooFewRowsError, WeightError):
        pass
    return {
        "group": name,
        "rows": tasks.samples[0].total,
        "base_rate": float(np.mean([s.mean(s.y) for s in tasks.samples])),
        "mean_prob": float(np.mean([s.mean(s.p) for s in tasks.samples])),
        **error_numbers(estimate),
        "pvalue": number(pvalue),
        "curve": curve,
    }


def _group_curve(
    fitted: FittedTasks, settings: ReportSettings
) -> dict[str, Any] | None:
    """Return the curve of a group, where it has one event and a map without bins."""
    if len(fitted.tasks.samples) > 1 or settings.measure_name in EVALUATORS:
        return None
    fit = cast("Fit", fitted.fits(settings.measure)[0])
    if isinstance(fit.map, BinnedMap):
        return None
    return curve_numbers(map_points(fit, data_range(fitted.tasks.samples[0])).frame())
