"""What each check means: the text of ``calibrant rule`` and of its page in the docs."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from calibrant.checks.check import TITLES
from calibrant.checks.diagnosis import diagnose
from calibrant.exceptions import UnknownNameError
from calibrant.numerics.links import logit

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.checks.check import Finding
    from calibrant.core.array_types import FloatVector

EXAMPLE_ROWS = 4000
MIDDLE, HIGH = 0.6, 0.75
WIDTH = 88
"""Columns of the printed text."""


@dataclass(frozen=True)
class Rule:
    """What a check looks for, why, and what to do about it."""

    code: str  # never changes its meaning
    finds: str  # when the check reports
    matters: str  # why that matters
    remedy: str
    limits: str  # what the check cannot see, or may get wrong
    # draws predictions and labels that the check reports on, for `diagnose`
    example: Callable[[np.random.Generator], dict[str, Any]]

    @property
    def title(self) -> str:
        """Return the check in two or three words."""
        return TITLES[self.code]

    def finding(self) -> Finding:
        """Return what the check says about its example."""
        rows = self.example(np.random.default_rng(0))
        found = diagnose(rows.pop("y"), rows.pop("p"), **rows).findings
        return next(one for one in found if one.code == self.code)

    def __str__(self) -> str:
        parts = {
            "What it finds": self.finds,
            "Why it matters": self.matters,
            "Example": self.finding().message,
            "What to do": self.remedy,
            "Known limits": self.limits,
        }
        text = (
            f"{title}\n{fill(part, WIDTH, initial_indent='  ', subsequent_indent='  ')}"
            for title, part in parts.items()
        )
        return "\n\n".join([f"{self.code}: {self.title}", *text])


def find_rule(code: str) -> Rule:
    """Return the rule with this code, in capitals or not; raise for unknown codes."""
    rules = {rule.code: rule for rule in RULES}
    if code.upper() not in rules:
        raise UnknownNameError.among("check", code, rules)
    return rules[code.upper()]


def _drawn(
    rng: np.random.Generator, p: FloatVector, rate: FloatVector
) -> dict[str, Any]:
    return {"p": p, "y": (rng.random(p.size) < rate).astype(int)}


def _clustered(rng: np.random.Generator) -> dict[str, Any]:
    """Draw forty rows of each patient, whose rate varies around the prediction."""
    patient = np.arange(100).repeat(40)
    p = rng.uniform(0.1, 0.9, patient.size)
    effect = rng.uniform(-0.5, 0.5, 100)[patient]
    effect *= np.minimum(p, 1.0 - p)
    return _drawn(rng, p, p + effect) | {"clusters": patient}


def _of_map(
    change: Callable[[FloatVector], FloatVector],
    a: float = 1.0,
    b: float = 1.0,
    n: int = EXAMPLE_ROWS,
) -> Callable[[np.random.Generator], dict[str, Any]]:
    """Return what draws predictions whose observed rate is a function of them."""

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        p = rng.beta(a, b, n)
        return _drawn(rng, p, np.asarray(change(p)))

    return draw


def _rounded(rng: np.random.Generator) -> dict[str, Any]:
    p = rng.integers(1, 10, EXAMPLE_ROWS) / 10
    return _drawn(rng, p, p)


def _certain(rng: np.random.Generator) -> dict[str, Any]:
    chance = rng.beta(0.3, 0.3, EXAMPLE_ROWS)
    return _drawn(rng, np.round(chance, 2), chance)


def _groups(rng: np.random.Generator) -> dict[str, Any]:
    p = rng.random(EXAMPLE_ROWS)
    clinic = rng.choice(["A", "B", "C", "D"], EXAMPLE_ROWS)
    return _drawn(rng, p, np.where(clinic == "B", p**2, p)) | {"groups": clinic}


ONE_SLOPE = (
    (
        "Recalibrate with one slope (platt, or temperature for the top label), or with "
        "beta if only one side is affected; auto chooses."
    ),
    (
        "It tests one slope: curves that bend but have no slope overall are left to "
        "CAL004."
    ),
)
"""What to do about CAL001 and CAL002, and what they cannot see."""

RULES = (
    Rule(
        "CAL001",
        "Predictions are more extreme than the observed rates, on both sides of the "
        "middle or on one side, which the message names. For the top label: the mean "
        "confidence exceeds the accuracy. A shift that is common to all predictions "
        "is removed first.",
        "High risks are overstated and low risks understated, so the model looks more "
        "certain than it is, and extreme thresholds are reached too often. Modern "
        "neural networks and naive Bayes classifiers are typical cases.",
        *ONE_SLOPE,
        _of_map(lambda p: expit(0.6 * logit(p))),
    ),
    Rule(
        "CAL002",
        "Predictions are less extreme than the observed rates: the opposite of CAL001.",
        "The model knows more than it says: cases that are nearly certain look "
        "doubtful. Averages of many models, such as random forests, are typical cases.",
        *ONE_SLOPE,
        _of_map(lambda p: expit(1.8 * logit(p))),
    ),
    Rule(
        "CAL003",
        "The mean prediction differs significantly from the observed rate. Top labels "
        "are left to CAL001 and CAL002.",
        "Sums over predictions, such as expected cases, costs or capacity, are wrong "
        "in the same proportion. The usual cause is a population in which the event is "
        "rarer or more common than in training.",
        "Recalibrate the level with platt on recent rows, or, if only the rate has "
        "changed, use adjust_prior.",
        "A shift can have other causes, such as labels that arrive late. Checks test "
        "at 1 %, so this one may be silent although the 95 % interval of O:E excludes "
        "1; CAL006 says so if the predictions as a whole are significantly off.",
        _of_map(lambda p: expit(logit(p) - 0.5)),
    ),
    Rule(
        "CAL004",
        "In one of up to 20 bins of equal size, the number of events differs "
        "significantly from the predictions.",
        "An error that is small on average can be large exactly where decisions are "
        "made.",
        "Recalibrate with smooth, which follows any shape that the data support.",
        "P-values are multiplied by the number of bins, so a weak fault that is spread "
        "over many bins is found by CAL001 to CAL003 rather than here. The region "
        "ends at the edges of bins.",
        _of_map(lambda p: p - 0.25 * ((p > MIDDLE) & (p < HIGH))),
    ),
    Rule(
        "CAL005",
        "A bin with higher predictions has a significantly lower observed rate than a "
        "bin with lower predictions.",
        "The order of predictions is wrong there, which no monotone calibrator can "
        "repair. Often a subgroup or a faulty feature is behind it.",
        "Look at the rows in that range. smooth (with monotone=False) and pl can "
        "follow the fall if it is real.",
        "Only pairs of bins with at least five expected events and non-events are "
        "compared.",
        _of_map(lambda p: p - 0.3 * (p > HIGH)),
    ),
    Rule(
        "CAL006",
        "There are fewer than 1,000 rows.",
        "With few rows a small calibration error cannot be distinguished from noise, "
        "and intervals are wide.",
        "Report the interval beside the estimate, and collect more rows before you "
        "rely on a small error.",
        "1,000 is a rule of thumb: what counts is the number of rows with the rarer "
        "outcome.",
        _of_map(lambda p: p, n=200),
    ),
    Rule(
        "CAL007",
        "There are at least 300 rows, but some tenth of the range contains between 1 "
        "and 29 of them.",
        "The curve in that range is supported by very few rows.",
        "Do not read too much into the diagram there; collect more such rows if "
        "decisions depend on them.",
        "Tenths of the range are fixed, whatever the distribution of predictions.",
        _of_map(lambda p: p, 1.0, 12.0),
    ),
    Rule(
        "CAL008",
        "All predictions are rounded to at most three decimals, or there are at most "
        "200 distinct values, each shared by at least 20 rows on average.",
        "Rounding hides the difference between unlikely and very unlikely, and turns "
        "likely into certain.",
        "Keep the full precision of the model's output. Multiples of 0.05 may be "
        "stated confidences, in which case nothing was lost.",
        "Verbalised confidences and scores of decision trees have few distinct values "
        "by nature; in that case, too, nothing was lost.",
        _rounded,
    ),
    Rule(
        "CAL009",
        "Some predictions are exactly 0 or 1. The finding is severe if any of them is "
        "wrong.",
        "A wrong prediction of exactly 0 or 1 makes the log-loss infinite; no "
        "evidence justifies certainty.",
        "Keep the full precision of the model's output, or recalibrate with smooth or "
        "beta, which move such predictions inwards.",
        "Single precision rounds values near 1 to exactly 1.",
        _certain,
    ),
    Rule(
        "CAL010",
        "A group departs significantly from the calibration map of all rows, and is "
        "farther from the diagonal than that map.",
        "A model that is calibrated on average can be unfair or useless for a group.",
        "Recalibrate the group by itself (calibrate --by), or add a feature that "
        "identifies it.",
        "Only groups that you name are tested, and none of fewer than about 40 rows or "
        "10 events.",
        _groups,
    ),
    Rule(
        "CAL011",
        "All labels are equal.",
        "Then only the overall level of the predictions can be judged, and a repair "
        "can do no more than move it.",
        "Check that the right label column was read, and that pos_label names a label "
        "that occurs.",
        "Few rows of a rare event can have one outcome by chance.",
        _of_map(np.zeros_like, 1.0, 20.0, 200),
    ),
    Rule(
        "CAL012",
        "Predictions and labels are significantly negatively correlated, in at least "
        "30 rows.",
        "Almost always, labels or columns have been swapped.",
        "Check the labels, and whether the column contains the probability of the "
        "other class.",
        "A model without skill can look like this by chance in 1 % of samples.",
        _of_map(lambda p: 1.0 - p),
    ),
    Rule(
        "CAL013",
        "A constant shift of the log-odds explains the miscalibration, and its size is "
        "what training on as many events as other rows would cause.",
        "Resampled or reweighted training data make all predictions of a rare event "
        "too high, by a known amount.",
        "adjust_prior(rate, old_rate=0.5) reverses the shift without labels.",
        "The shift must be at least one unit of log-odds: if events are nearly as "
        "frequent as other rows, balancing changes little.",
        _of_map(lambda p: expit(logit(p) - 2.2), 6.0, 6.0),
    ),
    Rule(
        "CAL014",
        "Clusters were given, and the labels within a cluster are so strongly "
        "correlated that an interval for the mean label must be at least 1.1 times as "
        "wide.",
        "A hundred rows of one patient say little more than a few. Intervals that "
        "treat them as independent are too narrow, and tests reject too often.",
        "Pass the clusters (clusters=, --cluster) wherever you evaluate, compare or "
        "test, or collect more clusters instead of more rows.",
        "Labels of a cluster are compared with a line through all rows: a map with a "
        "strong bend looks like dependence where rows of a cluster share their "
        "prediction. With ten clusters or fewer, dependence is hardly ever found.",
        _clustered,
    ),
)
"""Every rule, in the order of the codes."""
