"""All checks at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.checks.check import LEVEL, SEVERITIES, Finding, Subject
from calibrant.checks.curve_checks import (
    balanced_training,
    falling_region,
    gap_in_a_region,
    reversed_order,
    shifted_base_rate,
    wrong_confidence,
)
from calibrant.checks.data_checks import (
    certain,
    dependent_rows,
    few_rows,
    groups_that_differ,
    one_outcome,
    rounded,
    thin_region,
)
from calibrant.core.formatting import join_names
from calibrant.core.parameters import check_choice
from calibrant.core.tasks import check_events
from calibrant.core.threads import one_blas_thread
from calibrant.exceptions import Argument, OptionError, UnknownNameError
from calibrant.predictions.predictions import as_predictions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from calibrant.core.array_types import ArrayLike, Frame, Scale, Task
    from calibrant.core.tasks import BinaryTasks
    from calibrant.predictions.predictions import Predictions


CHECKS: dict[str, Callable[[Subject], Finding | list[Finding] | None]] = {
    "CAL001": partial(wrong_confidence, sign=-1.0),
    "CAL002": partial(wrong_confidence, sign=1.0),
    "CAL003": shifted_base_rate,
    "CAL004": gap_in_a_region,
    "CAL005": falling_region,
    "CAL006": few_rows,
    "CAL007": thin_region,
    "CAL008": rounded,
    "CAL009": certain,
    "CAL010": groups_that_differ,
    "CAL011": one_outcome,
    "CAL012": reversed_order,
    "CAL013": balanced_training,
    "CAL014": dependent_rows,
}
"""Every check by its code. A code keeps its meaning for ever."""
FACTS = ("CAL006", "CAL007", "CAL008", "CAL009", "CAL011", "CAL014")
"""Checks of the rows as they are; others test them as fewer independent rows."""
EFFECTS_OF_BALANCING = ("CAL003", "CAL004")
"""What the shift of CAL013 also trips."""
EFFECTS_OF_TURNING = ("CAL001", "CAL002", "CAL003", "CAL004", "CAL005", "CAL013")
"""What predictions that are upside down, CAL012, also trip."""
NOTHING_TO_FIT = (
    "No map can be fitted to a single outcome: collect rows with the other outcome."
)


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What the checks found, worst first.

    Attributes
    ----------
    findings : tuple of Finding
        Empty where nothing is wrong.

    See Also
    --------
    diagnose : makes diagnoses.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> diagnosis = cb.diagnose(y, p)
    >>> diagnosis.at_least("moderate").codes
    ['CAL002', 'CAL004']
    """

    findings: tuple[Finding, ...]

    @property
    def codes(self) -> list[str]:
        """Return the codes of what was found, each once, worst first."""
        return list(dict.fromkeys(finding.code for finding in self.findings))

    def at_least(self, severity: str) -> Diagnosis:
        """Return the findings that are as bad as `severity` or worse.

        Parameters
        ----------
        severity : {"note", "minor", "moderate", "severe"}
            The mildest that is kept.

        Returns
        -------
        Diagnosis
            The findings that are kept, worst first.
        """
        check_choice(severity, SEVERITIES, name="severity")
        minimum = SEVERITIES.index(severity)
        return Diagnosis(tuple(f for f in self.findings if f.rank >= minimum))

    def frame(self) -> Frame:
        """Return one row per finding: code, title, severity, message, remedy, ..."""
        names = ("code", "title", "severity", "message", "remedy", "calibrator")
        columns = {n: np.array([getattr(f, n) for f in self.findings]) for n in names}
        keys = dict.fromkeys(key for f in self.findings for key in f.where)
        places = {
            key: np.array([str(f.where.get(key, "")) for f in self.findings])
            for key in keys
        }
        return places | columns

    def __repr__(self) -> str:
        return f"<Diagnosis of {len(self.findings)} findings>\n{self}"

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or "nothing found"


def _in_order(findings: Iterable[Finding]) -> Diagnosis:
    """Return findings with the worst first, then by code and size.

    Predictions that are upside down come before what follows from that.
    """

    def worst_first(finding: Finding) -> tuple[int, bool, str, float]:
        off_by = abs(float(finding.evidence.get("off_by", 0.0)))
        return -finding.rank, finding.code != "CAL012", finding.code, -off_by

    return Diagnosis(tuple(sorted(findings, key=worst_first)))


def diagnose(  # noqa: PLR0913
    y_true: ArrayLike | Predictions,
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    mute: Sequence[str] | str = (),
    task: Task = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale | Mapping[str, Scale] = "prob",
) -> Diagnosis:
    """Explain what is wrong with predicted probabilities.

    Each check has a code that keeps its meaning; ``calibrant rule`` lists and explains
    them. The false-alarm rate of a check is about 1 %; with several classes, of all
    classes together.

    Parameters
    ----------
    y_true : array-like of shape (n,) or Predictions
        Labels: 0 and 1, booleans, or with `pos_label` any two values; classes for
        multi-class tasks. Or `Predictions`, which need no other data.
    y_prob : array-like of shape (n,) or (n, k), or dict
        Predicted probability of the event, or of each class; a dict has those of each
        model.
    mute : str or sequence of str
        Codes of checks to skip, such as "CAL008".
    task : None, "confidence", "classwise", "multilabel", or a class
        None: binary. "confidence" or "top-label": the top class and whether it is
        right. A class, by label or column number: that class against the rest.
        "classwise": each class. "multilabel": the same for labels of which a row can
        have several, with a matrix of 0 and 1 as `y_true`.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of 2 counts the row twice.
    groups : array-like of shape (n,), optional
        The group of each row; groups are compared with all rows. Rows without a value
        are the group "(missing)".
    clusters : array-like of shape (n,), optional
        Which rows belong together, such as those of one patient. Tests then use the
        number of independent rows that would say as much about the mean label.
    pos_label : object, optional
        The label that counts as the event.
    labels : sequence, optional
        The label of each column of `y_prob`, in order; by default 0 .. k-1.
    scale : {"prob", "logit", "percent", "logprob"} or dict
        What `y_prob` holds, for all models or for each.

    Returns
    -------
    Diagnosis
        ``findings``, worst first, each with code, severity, message, evidence and the
        calibrator that would help; ``frame()`` has them as columns.

    See Also
    --------
    Report : everything in one file.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> found = cb.diagnose(y, p)
    >>> found.codes
    ['CAL002', 'CAL004', 'CAL008', 'CAL009']
    >>> print(found.findings[0].message)
    Predictions are not extreme enough: above 0.47 the mean prediction is 0.888, the
    observed rate 0.989; below 0.47 the mean prediction is 0.110, the observed rate
    0.016.
    """
    muted = check_muted(mute)
    preds = as_predictions(
        y_true,
        y_prob,
        task=task,
        sample_weight=sample_weight,
        groups=groups,
        clusters=clusters,
        pos_label=pos_label,
        labels=labels,
        scale=scale,
    )
    check_events(preds.task, "a diagnosis")
    several = len(preds.models) > 1
    with one_blas_thread():
        findings = [
            diagnose_tasks(
                preds.store.whole(model),
                preds.store.groups_of(model),
                mute=muted,
                where={"model": model} if several else {},
            ).findings
            for model in preds.store.models
        ]
    return _in_order(chain.from_iterable(findings))


def diagnose_tasks(
    tasks: BinaryTasks,
    groups: Mapping[str, BinaryTasks],
    *,
    mute: Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
) -> Diagnosis:
    """Run all checks that are not muted on each event of a task."""
    several = len(tasks.samples) > 1
    findings: list[Finding] = []
    for k, (name, sample) in enumerate(zip(tasks.names, tasks.samples, strict=True)):
        parts = {group: part.samples[k] for group, part in groups.items()}
        # One column of one class, or of one label, is repaired as one event.
        event = name if several or name == "binary" else tasks.task
        event = "binary" if tasks.task == "multilabel" else event
        subject = Subject(sample, event, LEVEL / len(tasks.samples), parts)
        place = dict(where or {}) | ({"class": name} if several else {})
        findings += [
            replace(finding, where=place | finding.where)
            for finding in _run_checks(subject, mute)
        ]
    return _in_order(findings)


def _run_checks(subject: Subject, mute: Sequence[str]) -> list[Finding]:
    findings: list[Finding] = []
    independent = subject.independent
    for code, check in CHECKS.items():
        rows = subject if code in FACTS else independent
        result = None if code in mute else check(rows)
        if result is not None:
            findings += result if isinstance(result, list) else [result]
    if not subject.one_outcome:
        findings = _report_once(findings, "CAL013", EFFECTS_OF_BALANCING)
        if any(is_turned(finding) for finding in findings):
            findings = _report_once(findings, "CAL012", EFFECTS_OF_TURNING)
            # No calibrator is advised before the predictions are the right ones.
            return [replace(finding, calibrator="") for finding in findings]
        return findings
    return [
        replace(f, calibrator="", remedy=NOTHING_TO_FIT) if f.calibrator else f
        for f in findings
    ]


def is_turned(finding: Finding) -> bool:
    """Tell whether predictions are upside down so that 1 - p would have skill.

    Otherwise the order alone does not explain what other checks find.
    """
    skill = float(finding.evidence.get("turned_skill", 0.0))
    return finding.code == "CAL012" and skill > 0.0


def _report_once(
    findings: list[Finding], code: str, effects: Sequence[str]
) -> list[Finding]:
    """Return findings without the effects of one of them, the cause; it names them."""
    found = {finding.code: finding for finding in findings}
    same = [found[effect] for effect in effects if effect in found]
    if code not in found or not same:
        return findings
    cause = found[code]
    codes = sorted({one for finding in same for one in (finding.code, *finding.also)})
    worst = max(cause, *same, key=lambda finding: finding.rank)
    off_by = max(float(f.evidence.get("off_by", 0.0)) for f in (cause, *same))
    joined = replace(
        cause,
        severity=worst.severity,
        message=f"{cause.message} {join_names(codes)} found the same fault.",
        evidence=cause.evidence | {"off_by": off_by},
        also=tuple(codes),
    )
    rest = [finding for finding in findings if finding not in (cause, *same)]
    return [*rest, joined]


def check_codes(codes: Sequence[str] | str) -> tuple[str, ...]:
    """Return codes of checks as a tuple, or raise with the nearest ones."""
    given = (codes,) if isinstance(codes, str) else tuple(codes)
    for code in given:
        if code not in CHECKS:
            raise UnknownNameError.among("check", code, CHECKS)
    return given


def check_muted(codes: Sequence[str] | str) -> tuple[str, ...]:
    """Return codes of checks to leave out, not all of them."""
    given = check_codes(codes)
    if set(given) == set(CHECKS):
        raise OptionError(Argument("mute"), " excludes every check; keep at least one.")
    return given
