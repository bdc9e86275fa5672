"""What an automatic repair gains on held-out rows, and maps that carry this."""
# ruff: noqa: SLF001  (a certified map is its map)

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from calibrant.exceptions import MapFormatError
from calibrant.maps.base import CalibrationMap, check_events, plain_fields, require
from calibrant.maps.multiclass import MulticlassMap

if TYPE_CHECKING:
    from calibrant.core.array_types import (
        FloatMatrix,
        FloatVector,
        Frame,
        JsonObject,
        Scale,
    )
    from calibrant.maps.dialects import Language


MIN_PROBABILITY = 0.4
"""Chance of miscalibration above which predictions are repaired."""
SURE = 0.995
"""A chance that is printed as certainty."""
LEAST_SHARE = 0.005
"""A method with a smaller share of the repair is not named."""


class Bounds(NamedTuple):
    """An estimate and the limits of its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"

    def said(self, level: str = "") -> str:
        """Return the estimate and its limits, with the level of the interval."""
        limits = f"{self.low:.4f} to {self.high:.4f}"
        return f"{self.value:.4f} ({level + ' ' if level else ''}{limits})"

    def negative(self) -> Bounds:
        """Return the same of what falls where this rises."""
        return Bounds(-self.value, -self.high, -self.low)


class Trial(NamedTuple):
    """One of the methods tried.

    Attributes
    ----------
    method : str
        Its name.
    weight : float
        Its weight in the repair, from 0 to 1.
    gain : float
        By how much it alone lowers the log-loss of held-out rows.
    """

    method: str
    weight: float
    gain: float


class GroupTrial(NamedTuple):
    """Whether groups of rows have their own maps.

    Attributes
    ----------
    n : int
        Number of groups.
    used : bool
        Whether they do.
    evidence : float
        Logarithm of how many times more probable the labels of held-out rows are
        under their maps than under the common map.
    gain : Bounds
        By how much their maps lower the log-loss of these rows.
    """

    n: int
    used: bool
    evidence: float
    gain: Bounds


@dataclass(frozen=True, repr=False)
class Certificate:
    """What was tried for an automatic repair, and what it gains.

    All gains were measured by cross-validation: on rows that neither the maps nor
    their weights were fitted on. Whether to repair at all was decided by all rows.

    Attributes
    ----------
    tried : tuple of Trial
        Methods that were compared, with their weights. The original predictions have
        the remaining weight.
    rounded : bool
        Whether predictions of exactly 0 and 1 are treated as rounded, because
        predictions come in steps or labels contradict them.
    log_loss_gain, brier_gain : Bounds
        By how much the repair lowers log-loss and Brier score, with intervals.
    error_before, error_after : Bounds
        Calibration error by ``smooth``, before and after the repair; for several
        classes, that of the top label. After a repair the same rows show hardly any
        error; by how much the repair is off may be as large as the upper limit.
    evidence : float
        Logarithm of how many times more probable labels are if predictions are repaired
        by ``smooth`` than if they are calibrated (a Bayes factor).
    needed : float
        The evidence above which predictions are repaired: the chance of miscalibration
        is then more than 40 %.
    n : int
        Number of rows, whatever their weights.
    folds : int
        Number of folds of the cross-validation.
    confidence : float
        Level of the intervals.
    data : str
        A hash of predictions, labels and weights; it does not depend on the order of
        rows.
    groups : GroupTrial, optional
        What maps of groups gain beyond the common map, if there are groups.
    classes : int
        Number of classes; 1 for one event.

    See Also
    --------
    make_calibrator : makes the calibrator, whose ``certificate_`` this is.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("bayes")
    >>> certificate = cb.make_calibrator().fit(p, y).certificate_
    >>> certificate.changed
    True
    >>> [trial.method for trial in certificate.tried]
    ['smooth', 'temperature', 'quadratic', 'venn-abers']
    >>> round(certificate.chance, 3)
    1.0
    """

    tried: tuple[Trial, ...]
    rounded: bool
    log_loss_gain: Bounds
    brier_gain: Bounds
    error_before: Bounds
    error_after: Bounds
    evidence: float
    needed: float
    n: int
    folds: int
    confidence: float
    data: str
    groups: GroupTrial | None = None
    classes: int = 1

    @property
    def changed(self) -> bool:
        """Tell whether the repair changes any predictions."""
        return self.rounded or bool(self._total or self._own_maps)

    @property
    def chance(self) -> float:
        """Return the chance of miscalibration, if it was one half before."""
        return float(expit(self.evidence))

    def frame(self) -> Frame:
        """Return methods, weights and gains as columns; the first row is no repair."""
        unchanged = Trial("none", 1.0 - self._total, 0.0)
        methods, weights, gains = zip(unchanged, *self.tried, strict=True)
        return {
            "method": np.array(methods),
            "weight": np.array(weights),
            "gain": np.array(gains),
        }

    def __repr__(self) -> str:
        return f"<Certificate: {self._summary}>"

    @property
    def _summary(self) -> str:
        """Return in a few words what is repaired by which methods."""
        rows = f"{self.n:,} rows"
        if self.classes > 1:
            rows += f" of {self.classes} classes"
        if not self.changed:
            return f"unchanged, {rows}"
        by = ", ".join(filter(None, (self._mixture(), self._own_maps)))
        return f"repaired by {by or 'rounding'}, {rows}"

    @property
    def _total(self) -> float:
        """Return by which part predictions move to what the methods make of them."""
        return sum(one.weight for one in self.tried)

    @property
    def _own_maps(self) -> str:
        """Return which maps groups have, or nothing if they share one."""
        if self.groups is None or not self.groups.used:
            return ""
        return f"maps of {self.groups.n:,} groups"

    def __str__(self) -> str:
        """Return the certificate in words."""
        level = f"{100 * self.confidence:g} % interval"
        if not self.tried:
            rows = "1 row is" if self.n == 1 else f"{self.n:,} rows are"
            return f"Predictions stay unchanged: {rows} too few."
        if not self.changed:
            best = max(self.tried, key=lambda trial: trial.gain)
            of_best = (
                f"On held-out rows, the best repair, {best.method}, lowers the "
                f"log-loss by {best.gain:.4f}."
                if best.gain > 0.0
                else "No repair lowers the log-loss on held-out rows; the nearest, "
                f"{best.method}, raises it by {-best.gain:.4f}."
            )
            why = f"; they are repaired only above {100 * MIN_PROBABILITY:.0f} %"
            if self.evidence > self.needed:
                why = ", but held-out rows support no repair"
            return (
                f"Predictions stay unchanged: {self._likely()}{why}. {of_best}"
                f"{self._of_groups()}"
            )
        summed = " (summed over classes)" if self.classes > 1 else ""
        log_loss = _change("the log-loss", self.log_loss_gain, level)
        brier = _change(f"the Brier score{summed}", self.brier_gain, "")
        return (
            f"{self._repair()} On held-out rows, {log_loss} and {brier}; the "
            f"calibration error {'of the top label ' if self.classes > 1 else ''}was "
            f"{self.error_before.said()} before and is {self.error_after.said()} "
            f"after.{self._of_groups()}"
        )

    def _likely(self) -> str:
        return (
            f"the probability of miscalibration, given these {self.n:,} rows, is "
            f"{100 * self.chance:.0f} %"
        )

    def _repair(self) -> str:
        """Return what the repair consists of, and why."""
        mixture, own, total = self._mixture(), self._own_maps, self._total
        if not mixture and own:
            return f"Repaired by {own}."
        if not mixture:
            return (
                f"Repaired by rounding 0 and 1: {self.n:,} rows suggest that these are "
                "rounded values."
            )
        mixture = f"{mixture}, with {own}" if own else mixture
        if self.chance >= SURE:
            part = f" Predictions move {100 * total:.0f} % of the way." * (total < SURE)
            return (
                f"Repaired by {mixture}: {self.n:,} rows show that predictions are "
                f"miscalibrated.{part}"
            )
        return (
            f"Repaired in part: {self._likely()}, so predictions move "
            f"{100 * total:.0f} % of the way to what {mixture} would make of them."
        )

    def _mixture(self) -> str:
        """Return the methods of the map, with their shares of it if several."""
        total = self._total
        used = [one for one in self.tried if one.weight > LEAST_SHARE * total]
        if len(used) == 1:
            return used[0].method
        *others, last = [
            f"{one.method} ({100 * one.weight / total:.0f} %)" for one in used
        ] or [""]
        return f"{', '.join(others)} and {last}" if others else last

    def _of_groups(self) -> str:
        """Return what maps of groups gain, or nothing if there are no groups."""
        if self.groups is None:
            return ""
        if self.groups.used:
            return (
                " Separate maps of the groups lower the log-loss further than one map "
                f"for all rows does, by {self.groups.gain.said()}."
            )
        return (
            f" The {self.groups.n:,} groups share one map: separate maps do not lower "
            "the log-loss of held-out rows by more than chance would (they "
            f"change it by {-self.groups.gain.value:+.4f})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain numbers, ready for JSON."""
        return plain_fields(self)

    @classmethod
    def from_dict(cls, stored: Any, _field: str = "certificate") -> Certificate:
        """Build the certificate from `to_dict`, or raise MapFormatError."""
        try:
            return _rebuilt(cls, stored)  # type: ignore[no-any-return]
        except (AttributeError, KeyError, TypeError) as error:
            raise MapFormatError(
                f"the certificate of a map is damaged: {error}."
            ) from None


def _change(score: str, gain: Bounds, level: str) -> str:
    """Return by how much a score falls or rises, and whether that may be chance."""
    what = gain if gain.value >= 0.0 else gain.negative()
    verb = "falls" if gain.value >= 0.0 else "rises"
    sure = "" if gain.low > 0.0 or gain.high < 0.0 else ", not significantly,"
    return f"{score} {verb}{sure} by {what.said(level)}"


KINDS: dict[str, Any] = {"str": str, "float": int | float, "int": int, "bool": bool}
PARTS: dict[str, Any] = {"Bounds": Bounds, "GroupTrial | None": GroupTrial}


def _rebuilt(kind: type[Any], stored: JsonObject) -> Any:
    """Return a value by its fields; raise if text is in place of a number, or so."""
    values: dict[str, Any] = {}
    for name, annotation in kind.__annotations__.items():
        # Named tuples wrap the texts of annotations.
        wanted: Any = getattr(annotation, "__forward_arg__", annotation)
        value = stored[name]
        if wanted == "tuple[Trial, ...]":
            value = tuple(_rebuilt(Trial, trial) for trial in value)
        elif wanted in PARTS and not (value is None and "None" in wanted):
            value = _rebuilt(PARTS[wanted], value)
        elif not isinstance(value, KINDS.get(wanted, object)):
            raise TypeError(f"{name} must be of type {wanted}")
        values[name] = value
    return kind(**values)


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedMap(CalibrationMap):
    """A map of one event with its certificate.

    Parameters
    ----------
    map : CalibrationMap
        The map.
    certificate : Certificate
        What it was found to bring.
    """

    kind: ClassVar[str] = "certified"
    map: CalibrationMap
    certificate: Certificate = field(metadata={"read": Certificate.from_dict})

    def __repr__(self) -> str:
        return f"<CertifiedMap: {self.certificate._summary}>"

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        return self.map.values(p)

    def _check_fields(self) -> None:
        check_events(self.map)
        once = not isinstance(self.map, CertifiedMap)
        require(once, "field 'map' of a certified map must be a plain map.")

    @property
    def _degree(self) -> int | None:
        return self.map._degree

    def _joints(self) -> FloatVector:
        return self.map._joints()

    def _formula(self, language: Language, name: str) -> str | None:
        return self.map._formula(language, name)


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedClassMap(MulticlassMap):
    """A map of several classes with its certificate.

    Parameters
    ----------
    map : MulticlassMap
        The map.
    certificate : Certificate
        What it was found to bring.
    """

    kind: ClassVar[str] = "certified-classes"
    map: MulticlassMap
    certificate: Certificate = field(metadata={"read": Certificate.from_dict})

    def __repr__(self) -> str:
        return f"<CertifiedClassMap: {self.certificate._summary}>"

    @property
    def scale(self) -> Scale:  # type: ignore[override]
        """Return what predictions are."""
        return self.map.scale

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return self.map.n_classes

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities."""
        return self.map.calibrated(scores)

    def _python_body(self, accuracy: float) -> str:
        return self.map._python_body(accuracy)

    def _check_fields(self) -> None:
        several = isinstance(self.map, MulticlassMap)
        require(several, "field 'map' of this map must be a map of several classes.")
        once = not isinstance(self.map, CertifiedClassMap)
        require(once, "field 'map' of a certified map must be a plain map.")
