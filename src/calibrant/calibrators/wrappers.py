"""Binary methods applied to k classes: one against the rest, or the top label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.calibrators.base import ClassCalibrator, EventCalibrator
from calibrant.calibrators.fits import MulticlassFit
from calibrant.core.sample import BinarySample
from calibrant.maps.multiclass import OneVsRestMap, TopLabelMap
from calibrant.numerics.class_probabilities import class_probabilities

if TYPE_CHECKING:
    from calibrant.core.sample import ClassSample


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
