"""What a check takes, a `Subject`, and what it returns: `Finding`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from calibrant.core.sample import FEW_ROWS
from calibrant.numerics.binning import BinTable, size_edges, tabulate
from calibrant.numerics.cluster_dependence import row_factor
from calibrant.numerics.links import logit
from calibrant.numerics.weighted_points import WeightedPoints, compress_on_log_grid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calibrant.core.array_types import FloatVector
    from calibrant.core.sample import BinarySample

Severity: TypeAlias = Literal["note", "minor", "moderate", "severe"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
TITLES = {
    "CAL001": "over-confident",
    "CAL002": "under-confident",
    "CAL003": "shifted base rate",
    "CAL004": "miscalibrated region",
    "CAL005": "not monotone",
    "CAL006": "few rows",
    "CAL007": "thin region",
    "CAL008": "rounded predictions",
    "CAL009": "certain predictions",
    "CAL010": "group worse than the rest",
    "CAL011": "one outcome only",
    "CAL012": "upside down",
    "CAL013": "balanced training data",
    "CAL014": "dependent rows",
}
"""Every check in two or three words. A code keeps its meaning for ever."""
MODERATE, SEVERE = 0.01, 0.05
"""Probabilities that are off by this much over all rows, as the root of the mean
square, are moderately, severely off."""
LEVEL = 0.01
"""False-alarm rate of a check on calibrated predictions."""
MAX_BINS = 20
MIN_NOISE = 10.0
"""Sums of labels with less variance than this are not near a normal distribution."""
ROWS_PER_BIN = 50
MAX_SHIFT = 80.0
"""No prediction needs a larger shift of its logit than this."""


@dataclass(frozen=True)
class Finding:
    """One thing that a check found.

    Attributes
    ----------
    code : str
        The check, such as "CAL001"; codes never change their meaning.
    title : str
        The check in two or three words.
    severity : {"note", "minor", "moderate", "severe"}
        "note": worth knowing, but not a fault of the probabilities. The others
        depend on how far probabilities are off, as a root mean square over all rows:
        below 0.01, below 0.05, or above. So a few rows with large errors count less.
    message : str
        What was found, in words and numbers.
    remedy : str
        What to do about it.
    calibrator : str
        A method that is made for this fault, for this kind of predictions; empty if
        there is none. Whether it helps on these rows is measured only in reports.
    besides : str
        The part of the remedy that is not about a calibrator.
    evidence : dict
        The numbers behind the message; "off_by" determines the severity.
    where : dict
        Model, class or group that it is about; empty where there is one only.
    also : tuple of str
        Codes of other checks that found the same fault, which is reported once.

    See Also
    --------
    diagnose : finds them.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> finding = cb.diagnose(y, p).findings[0]
    >>> finding.code, finding.severity
    ('CAL002', 'severe')
    """

    code: str
    title: str
    severity: Severity
    message: str
    remedy: str
    calibrator: str = ""
    evidence: dict[str, float | str] = field(default_factory=dict)
    besides: str = ""
    where: dict[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()

    @property
    def rank(self) -> int:
        """Return 0 for a note up to 3 for what is severe."""
        return SEVERITIES.index(self.severity)

    def __str__(self) -> str:
        place = ", ".join(f"{name}={value}" for name, value in self.where.items())
        place = f" ({place})" if place else ""
        return f"{self.code} {self.severity}{place}: {self.message} {self.remedy}"


def fault(
    code: str,
    off_by: float,
    message: str,
    remedy: str,
    calibrator: str = "",
    *,
    besides: str = "",
    **evidence: float,
) -> Finding:
    """Return a finding about probabilities that are off by so much.

    >>> [fault("CAL003", gap, "", "").severity for gap in (0.002, -0.02, 0.2)]
    ['minor', 'moderate', 'severe']
    """
    off_by = float(abs(off_by))
    severity: Severity = "moderate" if off_by < SEVERE else "severe"
    if off_by < MODERATE:
        severity = "minor"
    return Finding(
        code,
        TITLES[code],
        severity,
        message,
        remedy,
        calibrator,
        {**evidence, "off_by": off_by},
        besides,
    )


def note(code: str, message: str, remedy: str, **evidence: float | str) -> Finding:
    """Return a finding that is not a fault of the probabilities."""
    return Finding(code, TITLES[code], "note", message, remedy, evidence=evidence)


@dataclass(frozen=True, eq=False)
class Subject:
    """Predictions of one event, as checks look at them.

    `event` is "binary", "confidence" or a class; `level` is the false-alarm rate that
    each check may have; `groups` are samples of groups of the rows, by name.
    """

    sample: BinarySample
    event: str = "binary"
    level: float = LEVEL
    groups: Mapping[str, BinarySample] = field(default_factory=dict)

    @cached_property
    def independent(self) -> Subject:
        """Return rows of clusters as fewer independent rows, for tests."""
        if self.sample.clusters is None:
            return self
        factor = row_factor(self.sample)

        def fewer(sample: BinarySample) -> BinarySample:
            return replace(sample, weight=sample.weights / factor, clusters=None)

        groups = {name: fewer(sample) for name, sample in self.groups.items()}
        return replace(self, sample=fewer(self.sample), groups=groups)

    @property
    def top_label(self) -> bool:
        """Tell whether the event is that the top class is right."""
        return self.event == "confidence"

    @property
    def rate_name(self) -> str:
        """Return what the mean of the labels is called."""
        return "accuracy" if self.top_label else "observed rate"

    @property
    def one_outcome(self) -> bool:
        """Tell whether the event always happened, or never."""
        return not 0.0 < self.positives < self.total

    def method(self, binary: str) -> str:
        """Return the name that a binary method has for predictions of this kind.

        >>> Subject(None, "confidence").method("smooth")
        'top-smooth'
        """
        return {"binary": "", "confidence": "top-"}.get(self.event, "ovr-") + binary

    @cached_property
    def cells(self) -> WeightedPoints:
        """Return the rows, or fine cells of them where there are very many."""
        return compress_on_log_grid(self.sample)

    @cached_property
    def total(self) -> float:
        """Return the number of rows, weights counted."""
        return self.sample.total

    @cached_property
    def positives(self) -> float:
        """Return the number of rows with the event, weights counted."""
        return float(self.cells.label_sum.sum())

    @property
    def rate(self) -> float:
        """Return the share of rows with the event."""
        return self.positives / self.total

    @cached_property
    def mean_prob(self) -> float:
        """Return the mean prediction."""
        return float(self.cells.weight @ self.cells.p) / self.total

    @cached_property
    def noise(self) -> FloatVector:
        """Return the variance of each cell's sum of labels, were p calibrated."""
        return self.cells.weight * self.cells.p * (1.0 - self.cells.p)

    @cached_property
    def mean_shift(self) -> tuple[float, float]:
        """Return the mean of label less prediction, and its two-sided p-value."""
        excess = self.cells.label_sum - self.cells.weight * self.cells.p
        noise, gap = float(self.noise.sum()), float(excess.sum())
        if noise < MIN_NOISE:
            return gap / self.total, 1.0
        return gap / self.total, float(2.0 * ndtr(-abs(gap) / np.sqrt(noise)))

    @cached_property
    def logits(self) -> FloatVector:
        """Return the logit of each cell."""
        return logit(self.cells.p)

    @cached_property
    def shift_to_base_rate(self) -> float:
        """Return what must be added to logits so that predictions sum to labels."""

        def surplus(shift: float) -> float:
            total = float(self.cells.weight @ expit(self.logits + shift)) / self.total
            return total - self.rate

        return float(brentq(surplus, -MAX_SHIFT, MAX_SHIFT, xtol=1e-9))

    @cached_property
    def at_base_rate(self) -> FloatVector:
        """Return predictions shifted on the logit scale so that they sum to labels."""
        return np.asarray(expit(self.logits + self.shift_to_base_rate))

    def tabulate(self, edges: FloatVector) -> BinTable:
        """Return sums over bins."""
        cells = self.cells
        return tabulate(cells.p, cells.label_sum / cells.weight, cells.weight, edges)

    @cached_property
    def bins(self) -> BinTable:
        """Return sums over bins of about equal size.

        There are 20 bins, or fewer, so that each has 50 rows; where ties leave one
        with fewer than 30, it joins its neighbour.
        """
        n_bins = int(np.clip(self.total // ROWS_PER_BIN, 1, MAX_BINS))
        n_bins = min(n_bins, self.cells.p.size)
        edges = size_edges(self.cells.p, self.cells.weight, n_bins)
        return self.tabulate(_join_small_bins(edges, self.tabulate(edges).weight))


def _join_small_bins(edges: FloatVector, rows: FloatVector) -> FloatVector:
    """Return the edges of bins that have enough rows each, neighbours joined.

    >>> rows = np.array([40.0, 3.0, 50.0, 7.0])
    >>> _join_small_bins(np.array([0.0, 0.2, 0.3, 0.8, 1.0]), rows)
    array([0. , 0.2, 1. ])
    """
    kept, since = [0.0], 0.0
    for edge, number in zip(edges[1:], rows, strict=True):
        since += number
        if since >= FEW_ROWS:
            kept.append(edge)
            since = 0.0
    # Rows that remain at the end join the bin before them.
    return np.array([*(kept[:-1] if len(kept) > 1 else kept), 1.0])
