"""Multi-class maps: what all can do, means, and binary maps applied to classes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from calibrant.core.arrays import as_array
from calibrant.core.probabilities import check_class_scores, row_sums, softmax
from calibrant.core.wording import CLASS_CALIBRATOR_WORDING
from calibrant.exceptions import Argument, OptionError, ShapeError
from calibrant.maps.base import StoredMap, check_events, require
from calibrant.maps.sql_and_python import (
    check_accuracy,
    function_of_classes,
    probabilities_text,
)
from calibrant.numerics.class_probabilities import (
    class_probabilities,
    log_probabilities,
)
from calibrant.numerics.links import CLIP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calibrant.core.array_types import ArrayLike, FloatMatrix, FloatVector, Scale
    from calibrant.maps.base import CalibrationMap


class MulticlassMap(StoredMap):
    """From predictions of k classes to calibrated probabilities of the same.

    Calling the map and `transform` are the same: rows of the result sum to 1. The
    field `scale` says what predictions are: "prob", "logit", "percent" or "logprob".
    A map whose other fields do not imply the number of classes has a field `classes`.
    """

    scale: Scale
    classes: int

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return self.classes

    @abstractmethod
    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities of validated predictions."""

    def __call__(self, p: ArrayLike) -> FloatMatrix:
        """Return calibrated probabilities of shape (n, k)."""
        array = as_array(p, name=CLASS_CALIBRATOR_WORDING.prob)
        if array.ndim == 2 and array.shape[1] != self.n_classes:  # noqa: PLR2004
            raise ShapeError(
                f"p must have the {self.n_classes} columns that the map was fitted "
                f"on; it has {array.shape[1]}."
            )
        return self.calibrated(
            check_class_scores(
                array, scale=self.scale, wording=CLASS_CALIBRATOR_WORDING
            )
        )

    def transform(self, p: ArrayLike) -> FloatMatrix:
        """Return calibrated probabilities of shape (n, k)."""
        return self(p)

    def to_sql(self, *_: Any, **__: Any) -> NoReturn:
        """Raise: the expression of one column cannot use those of all classes."""
        raise OptionError(
            f"this map calibrates {self.n_classes} classes; only maps of one event can "
            "be written as SQL. Use to_python(), or apply the map in Python."
        )

    def _python_body(self, accuracy: float) -> str:  # noqa: ARG002
        """Return the body of a function of the row p, up to the calibrated row."""
        raise OptionError(
            f"a map of kind {self.kind!r} cannot be written as Python; store it with "
            "save_map."
        )

    @property
    def _takes(self) -> Scale:
        return self.scale

    def _python(self, name: str, accuracy: float, scale: Scale) -> str:
        check_accuracy(accuracy)
        if scale != self.scale:
            raise OptionError(
                f"this map was fitted to predictions of scale {self.scale!r} and takes "
                "no others; remove ",
                Argument("scale"),
                ".",
            )
        body = self._python_body(accuracy)
        return function_of_classes(name, self.n_classes, self.scale, body)


@dataclass(frozen=True, eq=False)
class MulticlassMeanMap(MulticlassMap):
    """The mean of several maps, such as those of the folds of a cross-validation.

    Parameters
    ----------
    maps : tuple of MulticlassMap
        At least one, all of the same number of classes and scale.
    """

    kind: ClassVar[str] = "multi-class-mean"
    maps: tuple[MulticlassMap, ...]

    @property
    def scale(self) -> Scale:  # type: ignore[override]
        """Return what predictions are."""
        return self.maps[0].scale

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return self.maps[0].n_classes

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return the mean of the calibrated probabilities."""
        return np.asarray(sum(m.calibrated(scores) for m in self.maps) / len(self.maps))

    def _python_body(self, accuracy: float) -> str:
        functions, names = _functions(self.maps, accuracy)
        rows = f"zip(*[part(p) for part in [{names}]])"
        return f"{functions}return [sum(row) / {len(self.maps)} for row in {rows}]"

    def _check_fields(self) -> None:
        require(self.maps, "field 'maps' of a map must be a list of maps.")
        _check_alike(self.maps)


def _check_alike(maps: tuple[MulticlassMap, ...], *shape: tuple[int, Scale]) -> None:
    """Raise MapFormatError unless maps have the same number of classes and scale."""
    several = all(isinstance(map_, MulticlassMap) for map_ in maps)
    alike = several and len({*shape, *((m.n_classes, m.scale) for m in maps)}) <= 1
    require(alike, "maps of a mean must have the same classes and scale.")


def multiclass_mean(maps: tuple[MulticlassMap, ...]) -> MulticlassMap:
    """Return the mean of maps, or the only one."""
    return maps[0] if len(maps) == 1 else MulticlassMeanMap(maps)


@dataclass(frozen=True, eq=False)
class PooledMap(MulticlassMap):
    """Several maps and the predictions themselves, pooled as log-probabilities.

    Parameters
    ----------
    maps : tuple of MulticlassMap
        Maps of the same classes and scale; without any, predictions are unchanged.
    weights : ndarray of shape (m,)
        Weight of each map, positive. The predictions have the remaining weight.
    classes : int
        Number of classes.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are.
    floor : float
        What smaller predictions count as: those of exactly 0, if they are rounded.
    """

    kind: ClassVar[str] = "pooled"
    maps: tuple[MulticlassMap, ...]
    weights: FloatVector
    classes: int
    scale: Scale = "prob"
    floor: float = 0.0

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities."""
        prob = np.maximum(class_probabilities(scores, self.scale), self.floor)
        if not self.maps:
            return class_probabilities(prob, "prob")
        log_prob = (1.0 - self.weights.sum()) * log_probabilities(prob, "prob")
        for weight, map_ in zip(self.weights, self.maps, strict=True):
            repaired = log_probabilities(map_.calibrated(scores), "prob")
            log_prob = log_prob + weight * repaired
        return softmax(log_prob)

    def _python_body(self, accuracy: float) -> str:
        functions, names = _functions(self.maps, accuracy)
        text = f"{functions}x = {probabilities_text(self.scale)}\n"
        if self.floor:
            text += f"x = [max(v, {self.floor!r}) for v in x]\n"
        if not self.maps:
            return f"{text}return [v / total for total in [sum(x)] for v in x]"
        weights = [1.0 - float(self.weights.sum()), *self.weights.tolist()]
        return f"""\
{text}rows = zip(x, *[part(p) for part in [{names}]])
logs = [[logarithm(max(v, {CLIP!r})) for v in row] for row in rows]
return softmax([sum(w * v for w, v in zip({weights}, row)) for row in logs])"""

    def _check_fields(self) -> None:
        self._check_sizes(len(self.maps), "weights")
        share = (self.weights > 0.0).all() and self.weights.sum() <= 1.0 + CLIP
        require(share, "weights of a pooled map must sum to at most 1.")
        _check_alike(self.maps, (self.classes, self.scale))
        low = 0.0 <= self.floor < 1.0 / self.classes
        require(low, "the floor of a pooled map must be below 1 / classes.")


@dataclass(frozen=True, eq=False)
class OneVsRestMap(MulticlassMap):
    """A binary map for each class against the rest; rows are divided by their sum.

    A row whose classes all get probability 0 stays as it was.

    Parameters
    ----------
    maps : tuple of CalibrationMap
        One per class.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are.
    """

    kind: ClassVar[str] = "one-vs-rest"
    maps: tuple[CalibrationMap, ...]
    scale: Scale = "prob"

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return len(self.maps)

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities."""
        prob = class_probabilities(scores, self.scale)
        pairs = zip(self.maps, prob.T, strict=True)
        separate = np.column_stack([map_.transform(column) for map_, column in pairs])
        total = row_sums(separate)
        some = total > 0.0
        return np.where(some, separate / np.where(some, total, 1.0), prob)

    def _python_body(self, accuracy: float) -> str:
        functions, names = _functions(self.maps, accuracy)
        return f"""\
{functions}x = {probabilities_text(self.scale)}
parts = [part(min(v, 1.0)) for part, v in zip([{names}], x)]
total = sum(parts)
return [v / total for v in parts] if total > 0.0 else x"""

    def _check_fields(self) -> None:
        many = len(self.maps) > 1
        require(many, "field 'maps' of a map must be a list of two or more maps.")
        check_events(*self.maps)


@dataclass(frozen=True, eq=False)
class TopLabelMap(MulticlassMap):
    """A binary map of the top label's probability; the others share the rest.

    The others keep their proportions; where they all have probability 0, they share
    equally.

    Parameters
    ----------
    map : CalibrationMap
        From the probability of the top label to that of its being right.
    classes : int
        Number of classes.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are.
    """

    kind: ClassVar[str] = "top-label"
    map: CalibrationMap
    classes: int
    scale: Scale = "prob"

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities."""
        prob = class_probabilities(scores, self.scale)
        rows, top = np.arange(len(prob)), prob.argmax(axis=1)
        confidence = self.map.transform(prob[rows, top])
        others = prob.copy()
        others[rows, top] = 0.0
        rest = others.sum(axis=1, keepdims=True)
        alone = rest[:, 0] < np.finfo(np.float64).tiny
        others[alone] = 1.0
        others[rows[alone], top[alone]] = 0.0
        rest[alone] = self.classes - 1.0
        others *= (1.0 - confidence[:, np.newaxis]) / rest
        others[rows, top] = confidence
        return others

    def _python_body(self, accuracy: float) -> str:
        functions, name = _functions((self.map,), accuracy)
        return f"""\
{functions}x = {probabilities_text(self.scale)}
top = x.index(max(x))
confidence = {name}(min(x[top], 1.0))
rest = sum(x[:top] + x[top + 1:])
equal = {1.0 / (self.classes - 1)!r}
x = [(1.0 - confidence) * (v / rest if rest > 1e-300 else equal) for v in x]
return [*x[:top], confidence, *x[top + 1:]]"""

    def _check_fields(self) -> None:
        check_events(self.map)


def _functions(maps: Iterable[StoredMap], accuracy: float) -> tuple[str, str]:
    """Return the functions of maps in Python, and their names."""
    parts = [
        map_._python(f"part_{i}", accuracy, map_._takes)  # noqa: SLF001
        for i, map_ in enumerate(maps)
    ]
    return "".join(parts), ", ".join(f"part_{i}" for i in range(len(parts)))
