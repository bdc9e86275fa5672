"""One model of a report: errors, diagram, findings, repairs, classes, groups."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from calibrant.calibrators.registry import EVALUATORS, method_name
from calibrant.checks.check import Subject
from calibrant.checks.diagnosis import diagnose_tasks
from calibrant.checks.rows import group_gaps
from calibrant.core.sample import FEW_ROWS
from calibrant.exceptions import TooFewRowsError, WeightError
from calibrant.measures.estimate import FittedTasks
from calibrant.measures.evaluation import assess_one
from calibrant.report.advice import advise
from calibrant.report.agreement import agreed, proved
from calibrant.report.class_repairs import MAX_CLASSES, class_repairs_of
from calibrant.report.commands import Origin, command, python
from calibrant.report.diagram import diagram_of, on_same_axes
from calibrant.report.plain import number
from calibrant.report.repairs import NONE, REPAIRS, repairs_of
from calibrant.report.titles import scored_event
from calibrant.report.verdict import graded_method, regions_of, verdict_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from calibrant.calibrators.base import Fit
    from calibrant.checks.check import Finding
    from calibrant.core.class_sample import ClassSample
    from calibrant.measures.estimate import ErrorSettings, Estimate
    from calibrant.measures.evaluation import Assessment
    from calibrant.predictions.input_spec import BinaryTasks

WORST_CLASSES = 4
"""Of many classes so many get a diagram, the worst."""
QUICK_METHODS = ("es15", "ew15")
"""Of very many classes the errors are by these, unless methods were asked for."""


@dataclass(frozen=True, eq=False)
class ModelRows:
    """The rows of one model.

    Attributes
    ----------
    events : BinaryTasks
        The events of the task.
    groups : dict
        The events of each group of rows.
    classes : ClassSample or None
        Predictions of all classes, where there are several.
    origin : Origin
        Where they come from, for the command that repairs them.
    """

    events: BinaryTasks
    groups: Mapping[str, BinaryTasks]
    classes: ClassSample | None = None
    origin: Origin = field(default_factory=Origin)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How each model is looked at.

    Attributes
    ----------
    methods : tuple of str
        Estimates of the error; see `measure` for the one that the verdict is about.
    estimator : ErrorSettings
        Exponent, intervals and seed.
    confidence : float
        Level of bands and intervals.
    mute : tuple of str
        Codes of checks to leave out.
    repairs : tuple of str
        Calibrators to try.
    hurries : bool
        Whether the errors of very many classes are by quick methods only.
    drawn : tuple of str
        What diagrams show besides `methods`.
    """

    methods: tuple[str, ...]
    estimator: ErrorSettings
    confidence: float
    mute: tuple[str, ...] = ()
    repairs: tuple[str, ...] = REPAIRS
    hurries: bool = False
    drawn: tuple[str, ...] = ()

    def for_events(self, number: int) -> Plan:
        """Return the plan for so many events: of very many, only quick errors.

        The worst of them are still drawn by all methods.
        """
        if not self.hurries or number <= MAX_CLASSES:
            return self
        return replace(self, methods=QUICK_METHODS, drawn=self.methods)

    def for_methods(self, names: Sequence[str]) -> Plan:
        """Return the plan for the methods that there were enough rows for."""
        kept = tuple(m for m in self.methods if method_name(m) in names)
        return replace(self, methods=kept)

    @property
    def measure_name(self) -> str:
        """Return what results call the method that the verdict is about."""
        return method_name(self.measure)

    @property
    def measure(self) -> str:
        """Return the method that the verdict is about."""
        return graded_method(self.methods)


def model_summary(
    name: str,
    rows: ModelRows,
    fitted: FittedTasks,
    plan: Plan,
    step: Callable[[], None],
) -> dict[str, Any]:
    """Return what a report says of one model; `step` is called after each part.

    `fitted` are the events of `rows`.
    """
    events, groups = rows.events, rows.groups
    found = assess_one(fitted, plan.methods)
    plan = plan.for_methods([estimate.method for estimate in found.estimates])
    step()
    panels = _panels(fitted, found, plan)
    step()
    several = len(events.samples) > 1
    repairs = _repairs(rows, plan)
    found_faults = diagnose_tasks(events, groups, mute=plan.mute).findings
    findings = advise(found_faults, repairs)
    step()
    classes = _class_rows(events, found, plan) if several else []
    group_rows = _group_rows(events, groups, plan, step)
    errors = [estimate_row(estimate) for estimate in found.estimates]
    own = next(row for row in errors if row["method"] == plan.measure_name)
    regions = panels[0].pop("regions") if not several else []
    return {
        "name": name,
        "rows": events.samples[0].n_data,
        "weight": events.samples[0].total,
        "base_rate": number(found.base_rate),
        "mean_prob": number(found.mean_prob),
        "verdict": agreed(
            verdict_of(
                own,
                regions,
                repairs,
                base_rate=found.base_rate,
                alpha=plan.estimator.alpha,
                proved=bool(proved(findings)),
                confidence=plan.confidence,
                task=events.task,
            ),
            findings,
            classes=[row["class"] for row in classes],
        ),
        "errors": errors,
        "scores": [
            {**asdict(split), "refinement": split.refinement} for split in found.scores
        ],
        "scored": scored_event(events.task),
        "diagrams": panels,
        "findings": [_finding_row(finding) for finding in findings],
        "repairs": repairs,
        "classes": classes,
        "groups": group_rows,
    }


def task_steps(groups: int) -> int:
    """Return how often `model_summary` calls `step`."""
    return 3 + groups


def estimate_row(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as a summary holds it."""
    return {
        "method": estimate.method,
        "value": number(estimate.value),
        "low": number(estimate.low),
        "high": number(estimate.high),
        "debiased": estimate.debiased,
        "bins": number(estimate.bins),
    }


def _finding_row(finding: Finding) -> dict[str, Any]:
    row = asdict(finding)
    row["evidence"] = {
        name: value if isinstance(value, str) else number(value)
        for name, value in finding.evidence.items()
    }
    row["where"] = {name: str(value) for name, value in finding.where.items()}
    return row


def _panels(fitted: FittedTasks, found: Assessment, plan: Plan) -> list[dict[str, Any]]:
    """Return the diagram of the event, or those of the worst classes."""
    more = [method for method in plan.drawn if method not in plan.methods]
    every = [*more, *plan.methods]
    methods = [m for m in every if method_name(m) not in EVALUATORS]
    events = fitted.tasks
    if len(events.samples) == 1:
        return [_panel(events.task, fitted, 0, methods, plan)]
    order = _worst_first(found, plan)[:WORST_CLASSES]
    panels = [_panel(events.names[k], fitted, k, methods, plan) for k in order]
    for panel in panels:
        panel.pop("regions")
    return on_same_axes(panels, [events.samples[k] for k in order])


def _panel(
    event: str, fitted: FittedTasks, place: int, methods: Sequence[str], plan: Plan
) -> dict[str, Any]:
    sample = fitted.tasks.samples[place]
    fits = {method_name(m): cast("Fit", fitted.fit(m, place)) for m in methods}
    drawn = diagram_of(sample, fits, confidence=plan.confidence)
    banded = [curve for curve in drawn["curves"] if "low" in curve]
    regions = regions_of(banded[0], sample) if banded else []
    return {"event": event, **drawn, "regions": regions}


def _own_estimates(found: Assessment, plan: Plan) -> list[Estimate]:
    return [e for e in found.classes if e.method == plan.measure_name]


def _worst_first(found: Assessment, plan: Plan) -> list[int]:
    values = [estimate.value for estimate in _own_estimates(found, plan)]
    return [int(k) for k in np.argsort(-np.asarray(values), kind="stable")]


def _class_rows(
    events: BinaryTasks, found: Assessment, plan: Plan
) -> list[dict[str, Any]]:
    own = _own_estimates(found, plan)
    rows = []
    for k in _worst_first(found, plan):
        sample = events.samples[k]
        base_rate, mean_prob = sample.mean(sample.y), sample.mean(sample.p)
        rows.append(class_row(own[k], base_rate=base_rate, mean_prob=mean_prob))
    return rows


def class_row(
    estimate: Estimate, *, base_rate: float | None, mean_prob: float | None
) -> dict[str, Any]:
    """Return the estimate of one class as a summary holds it."""
    return {
        "class": estimate.task,
        "error": number(estimate.value),
        "low": number(estimate.low),
        "high": number(estimate.high),
        "base_rate": number(base_rate),
        "mean_prob": number(mean_prob),
    }


def _repairs(rows: ModelRows, plan: Plan) -> dict[str, Any] | None:
    options: dict[str, Any] = {
        "measure": plan.measure,
        "estimator": plan.estimator,
    }
    task = rows.events.task
    if task in ("confidence", "classwise"):
        if rows.classes is None:  # cells do not know which classes share rows
            return None
        found = class_repairs_of(rows.classes, task, **options)
    else:
        sample = rows.events.samples[0]
        found = repairs_of(sample, methods=plan.repairs, **options)
    if found is None:
        return None
    best, origin = found["advised"], rows.origin
    if best == NONE:
        return found | {"command": "", "python": ""}
    return found | {"command": command(origin, best), "python": python(origin, best)}


def _group_rows(
    events: BinaryTasks,
    groups: Mapping[str, BinaryTasks],
    plan: Plan,
    step: Callable[[], None],
) -> list[dict[str, Any]]:
    """Return one row a group, worst first; groups too small have no error."""
    gaps = {gap.name: gap.pvalue for gap in _gaps(events, groups)}
    rows = []
    for name, part in groups.items():
        rows.append(_group_row(name, part, gaps.get(name), plan))
        step()
    return sorted(rows, key=_by_error)


def _by_error(row: Mapping[str, Any]) -> tuple[bool, float]:
    """Sort the largest error first, and rows without any last."""
    error = row["error"]
    return error is None, 0.0 if error is None else -error


def _gaps(events: BinaryTasks, groups: Mapping[str, BinaryTasks]) -> Sequence[Any]:
    if len(events.samples) > 1:
        return ()
    samples = {name: part.samples[0] for name, part in groups.items()}
    return group_gaps(Subject(events.samples[0], events.task, groups=samples))


def _group_row(
    name: str, events: BinaryTasks, pvalue: float | None, plan: Plan
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "group": name,
        "rows": events.samples[0].total,
        "base_rate": float(np.mean([s.mean(s.y) for s in events.samples])),
        "mean_prob": float(np.mean([s.mean(s.p) for s in events.samples])),
        "error": None,
        "low": None,
        "high": None,
        "pvalue": number(pvalue),
    }
    if row["rows"] < FEW_ROWS:
        return row
    try:
        estimate = FittedTasks(events, plan.estimator).estimates(plan.measure)[0]
    except (TooFewRowsError, WeightError):
        return row
    row |= {"error": number(estimate.value)}
    row |= {"low": number(estimate.low), "high": number(estimate.high)}
    return row
