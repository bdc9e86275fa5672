"""Methods made of other calibrators.

Binary methods are applied to k classes, one against the rest or the top label; and any
object with ``fit(p, y)`` and ``transform(p)`` that a user brings is a method, too.
"""

from __future__ import annotations

import copy
import inspect
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant.calibrators.base import ClassCalibrator, EventCalibrator
from calibrant.calibrators.fits import WHOLE_RANGE, CurveFit, MulticlassFit
from calibrant.core.sample import BinarySample
from calibrant.core.scales import ROW_SUM_TOLERANCE
from calibrant.exceptions import CalibrantError, OptionError, Setting
from calibrant.maps.base import CalibrationMap
from calibrant.maps.multiclass import MulticlassMap, OneVsRestMap, TopLabelMap
from calibrant.numerics.class_probabilities import class_probabilities

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector, Scale
    from calibrant.core.sample import ClassSample
    from calibrant.numerics.resampling import Resamples


@dataclass(kw_only=True, eq=False, repr=False)
class Wrapper(ClassCalibrator):
    """A binary method applied to several classes."""

    calibrator: EventCalibrator

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        self.calibrator.checked()


@dataclass(kw_only=True, eq=False, repr=False)
class OneVsRest(Wrapper):
    """Each class against the rest by a binary method, then divided by the sum.

    Parameters
    ----------
    calibrator : EventCalibrator
        The binary method.
    """

    def fit_classes(self, sample: ClassSample) -> MulticlassFit:
        """Fit one binary map per class."""
        prob = class_probabilities(sample.scores, sample.scale)
        maps = tuple(
            self.calibrator.fit_event(_event(sample, p, sample.column == j)).map
            for j, p in enumerate(prob.T)
        )
        return MulticlassFit(OneVsRestMap(maps, sample.scale))


@dataclass(kw_only=True, eq=False, repr=False)
class TopLabel(Wrapper):
    """Whether the top label is right, by a binary method on its probability.

    Parameters
    ----------
    calibrator : EventCalibrator
        The binary method.
    """

    def fit_classes(self, sample: ClassSample) -> MulticlassFit:
        """Fit the binary map of the top label."""
        prob = class_probabilities(sample.scores, sample.scale)
        top = prob.argmax(axis=1)
        p = prob[np.arange(top.size), top]
        map_ = self.calibrator.fit_event(_event(sample, p, top == sample.column)).map
        return MulticlassFit(TopLabelMap(map_, sample.n_classes, sample.scale))


def _event(sample: ClassSample, p: np.ndarray, y: np.ndarray) -> BinarySample:
    p = np.ascontiguousarray(p)
    return BinarySample(p, y.astype(np.float64), sample.weight)


def is_calibrator(method: object) -> bool:
    """Tell whether something can be fitted and gives calibrated probabilities."""
    fits = callable(getattr(method, "fit", None))
    gives = any(callable(getattr(method, n, None)) for n in ("transform", "predict"))
    return fits and gives and not isinstance(method, type | str)


@dataclass(frozen=True)
class NamedCalibrator:
    """A calibrator under a name that differs from those of others of its class."""

    name: str
    calibrator: Any


def name_apart(methods: Sequence[Any]) -> tuple[Any, ...]:
    """Return methods, with numbers in the names of calibrators of the same class.

    Examples
    --------
    >>> from sklearn.isotonic import IsotonicRegression
    >>> several = name_apart(["es15", IsotonicRegression(), IsotonicRegression()])
    >>> [one.name for one in several[1:]]
    ['IsotonicRegression 1', 'IsotonicRegression 2']
    """
    classes = [type(one).__name__ for one in methods if is_calibrator(one)]
    seen: Counter[str] = Counter()

    def named(method: Any) -> Any:
        name = type(method).__name__
        if not is_calibrator(method) or classes.count(name) == 1:
            return method
        seen[name] += 1
        return NamedCalibrator(f"{name} {seen[name]}", method)

    return tuple(map(named, methods))


@dataclass(frozen=True, eq=False)
class UserMap(CalibrationMap):
    """The map of a fitted calibrator of the user's own.

    Attributes
    ----------
    calibrator : object
        With ``transform(p)``, or ``predict(p)``.
    """

    kind: ClassVar[str] = "user"
    calibrator: Any

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions, or rows of them, that have been checked."""
        if p.size == 0:
            return p.copy()
        name = "transform" if hasattr(self.calibrator, "transform") else "predict"
        with _explained(self.calibrator, name, p):
            values = np.asarray(getattr(self.calibrator, name)(p), dtype=np.float64)
        if values.shape != p.shape or not np.isfinite(values).all():
            raise OptionError(
                f"{name} of {type(self.calibrator).__name__} must return one finite "
                f"probability for each prediction; for {p.shape[0]} predictions it "
                f"returned an array of shape {values.shape}."
            )
        outside = (values < 0.0) | (values > 1.0)
        if outside.any():
            row = np.unravel_index(np.argmax(outside), p.shape)
            raise OptionError(
                f"{name} of {type(self.calibrator).__name__} must return probabilities "
                f"in [0, 1]; for prediction {p[row]:g} it returned {values[row]:g}."
            )
        return values

    def to_dict(self) -> dict[str, Any]:
        """Raise: only the user's own code can store such a map."""
        raise OptionError(
            f"a map by {type(self.calibrator).__name__} cannot be stored as JSON; keep "
            f"the calibrator itself."
        )

    def _joints(self) -> FloatVector:
        """Raise: where such a map jumps is unknown, so it cannot be tabulated."""
        raise OptionError(
            f"a map by {type(self.calibrator).__name__} cannot be written as SQL or "
            "Python; keep the calibrator itself."
        )

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


@dataclass(frozen=True, eq=False)
class UserClassMap(MulticlassMap):
    """The map of all classes of a fitted calibrator of the user's own.

    Attributes
    ----------
    user : UserMap
        The calibrator, which is given matrices of probabilities.
    classes : int
        Number of classes.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are.
    """

    kind: ClassVar[str] = "user-classes"
    user: UserMap
    classes: int
    scale: Scale

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities, or raise where rows do not sum to 1."""
        values = self.user.values(class_probabilities(scores, self.scale))
        off = np.abs(values.sum(axis=1) - 1.0) > ROW_SUM_TOLERANCE
        if off.any():
            row = int(np.argmax(off))
            raise OptionError(
                f"rows that {type(self.user.calibrator).__name__} returns must sum to "
                f"1; row {row} sums to {values[row].sum():g}."
            )
        return values

    def to_dict(self) -> dict[str, Any]:
        """Raise: only the user's own code can store such a map."""
        return self.user.to_dict()


@dataclass(kw_only=True, eq=False, repr=False)
class UserMethod(ClassCalibrator, EventCalibrator):
    """A calibrator of the user's own, as a method.

    Attributes
    ----------
    calibrator : object
        With ``fit(p, y)`` or ``fit(p, y, sample_weight=...)``; it is copied before it
        is fitted.
    """

    calibrator: Any

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        map_ = self._fit_copy(sample.p, sample.y, sample.weight)
        return CurveFit(map_, 1, WHOLE_RANGE, self._refit)

    def fit_classes(self, sample: ClassSample) -> MulticlassFit:
        """Fit a matrix of probabilities, and columns of classes as labels."""
        p = class_probabilities(sample.scores, sample.scale)
        map_ = self._fit_copy(p, sample.column, sample.weight)
        return MulticlassFit(UserClassMap(map_, sample.n_classes, sample.scale))

    def _refit(self, resamples: Resamples) -> FloatMatrix:
        p, values = resamples.p, []
        for weight, events in zip(resamples.weight, resamples.label_sum, strict=True):
            counts = np.concatenate([events, weight - events])
            rows = counts > 0.0
            y = np.repeat([1.0, 0.0], p.size)[rows]
            map_ = self._fit_copy(np.tile(p, 2)[rows], y, counts[rows])
            values.append(map_.values(p))
        return np.stack(values)

    def _fit_copy(
        self, p: FloatVector, y: FloatVector | IntVector, weight: FloatVector | None
    ) -> UserMap:
        calibrator = copy.deepcopy(self.calibrator)
        if weight is None or (weight == 1.0).all():
            with _explained(calibrator, "fit", p):
                return UserMap(calibrator.fit(p, y) or calibrator)
        if "sample_weight" not in inspect.signature(calibrator.fit).parameters:
            raise OptionError(
                f"fit of {type(calibrator).__name__} does not accept "
                "sample_weight, which comparisons and weighted rows need; write it as "
                "fit(self, p, y, sample_weight=None)."
            )
        with _explained(calibrator, "fit", p):
            return UserMap(calibrator.fit(p, y, sample_weight=weight) or calibrator)


@contextmanager
def _explained(calibrator: Any, action: str, p: FloatVector) -> Iterator[None]:
    """Say of errors in the user's code what was passed to it, and what to do."""
    try:
        yield
    except (CalibrantError, MemoryError):
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        failed = f"{action} of {type(calibrator).__name__} failed ({what}). It got "
        if p.ndim == 1:
            raise OptionError(
                f"{failed}predictions of one event, of shape {p.shape}, as in every "
                "task but canonical. If it calibrates all classes, pass ",
                Setting("task", "canonical"),
                ", or apply it to the matrix first and evaluate what it returns.",
            ) from error
        raise OptionError(
            f"{failed}probabilities of all classes, of shape {p.shape}, and column "
            "numbers as labels. If it calibrates one event, pass it one column, or "
            "evaluate it with ",
            Setting("task", "confidence"),
            ", ",
            Setting("task", "classwise"),
            " or one class.",
        ) from error
