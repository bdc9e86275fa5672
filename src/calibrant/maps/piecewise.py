"""Continuous maps of lines or parabolas between knots, and their means."""
# ruff: noqa: SLF001 (a mean is written in terms of its parts)

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from scipy.special import expit

from calibrant.maps.base import CalibrationMap, check_line, require, stored_maps
from calibrant.maps.dialects import lines_between
from calibrant.numerics.cross_validation import ROUNDING
from calibrant.numerics.line_problems import lines_at
from calibrant.numerics.short_formulas import with_clips

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from calibrant.core.array_types import FloatVector, Space
    from calibrant.maps.dialects import Language


@dataclass(frozen=True, eq=False)
class PiecewiseLinearMap(CalibrationMap):
    """Straight lines from knot to knot, continued beyond the last ones.

    Parameters
    ----------
    knots, heights : ndarray of shape (k + 1,)
        Where pieces meet, ascending, and the value there.
    scale : {"prob", "logit"}
        With "logit" knots and heights are logits: the map is
        ``expit(line(logit(p)))``. With "prob" its values are clipped to [0, 1].

    Examples
    --------
    >>> map_ = PiecewiseLinearMap(np.array([0.0, 0.5, 1.0]), np.array([0.1, 0.4, 1.0]))
    >>> map_(np.array([0.25, 0.5, 0.75]))
    array([0.25, 0.4 , 0.7 ])
    """

    kind: ClassVar[str] = "piecewise-linear"
    knots: FloatVector
    heights: FloatVector
    scale: Space = "prob"

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        (value,) = lines_at(p, [(self.knots, self.heights)], self.scale)
        return np.asarray(value, dtype=np.float64)

    @property
    def bends(self) -> FloatVector:
        """Return the inner knots, as probabilities."""
        inner = self.knots[1:-1]
        return np.asarray(expit(inner) if self.scale == "logit" else inner)

    def _check_fields(self) -> None:
        self._check_sizes(self.knots.size, "heights")
        check_line(self.knots, self.heights)

    @property
    def _degree(self) -> int | None:
        return None if self.scale == "logit" else 1

    def _formula(self, language: Language, name: str) -> str | None:
        if self.scale == "prob":
            return None
        lines = lines_between(self.knots, self.heights)
        return language.expit(language.piecewise(name, lines, language.logit(name)))

    def _joints(self) -> FloatVector:
        return with_clips(self.values, self.bends) if self._degree else self.bends


def map_through(p: FloatVector, values: FloatVector) -> PiecewiseLinearMap:
    """Return the map through points with ascending p, flat beyond the outer ones.

    Examples
    --------
    >>> map_through(np.array([0.2, 0.6]), np.array([0.3, 0.5])).heights
    array([0.3, 0.3, 0.5, 0.5])
    """
    if p[0] > 0.0:
        p, values = np.append(0.0, p), np.append(values[0], values)
    if p[-1] < 1.0:
        p, values = np.append(p, 1.0), np.append(values, values[-1])
    return PiecewiseLinearMap(p, values)


@dataclass(frozen=True, eq=False)
class ParabolasMap(CalibrationMap):
    """Parabolas from knot to knot, level beyond the last ones.

    Parameters
    ----------
    knots, heights : ndarray of shape (k + 1,)
        Where parabolas meet, ascending, and the value there.
    middles : ndarray of shape (k,)
        The value midway between knots.

    Examples
    --------
    >>> bow = ParabolasMap(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0.25]))
    >>> bow(np.array([0.1, 0.5, 0.9]))
    array([0.01, 0.25, 0.81])
    """

    kind: ClassVar[str] = "parabolas"
    knots: FloatVector
    heights: FloatVector
    middles: FloatVector

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        x = np.clip(p, self.knots[0], self.knots[-1])
        piece = np.searchsorted(self.knots[1:-1], x, side="right")
        start, linear, square = (c[piece] for c in self._coefficients())
        along = x - self.knots[piece]
        return np.clip(start + along * (linear + along * square), 0.0, 1.0)

    def _coefficients(self) -> tuple[FloatVector, FloatVector, FloatVector]:
        """Return the powers 0, 1 and 2 of the distance from the left knot."""
        width = np.diff(self.knots)
        left, right = self.heights[:-1], self.heights[1:]
        linear = (4.0 * self.middles - 3.0 * left - right) / width
        return left, linear, 2.0 * (left + right - 2.0 * self.middles) / width**2

    @property
    def bends(self) -> FloatVector:
        """Return the inner knots."""
        return self.knots[1:-1]

    def _check_fields(self) -> None:
        self._check_sizes(self.knots.size, "heights")
        self._check_sizes(self.knots.size - 1, "middles")
        check_line(self.knots, self.heights)
        finite = np.isfinite(self._coefficients()).all()
        require(finite, "parabolas of a map must be finite.")

    @property
    def _degree(self) -> int:
        return 2

    def _joints(self) -> FloatVector:
        return with_clips(self.values, self.knots)


Part: TypeAlias = PiecewiseLinearMap | ParabolasMap


@dataclass(frozen=True, eq=False)
class MeanMap(CalibrationMap):
    """The mean of several maps, such as those of the folds of a cross-validation.

    Parameters
    ----------
    maps : tuple of PiecewiseLinearMap or ParabolasMap
        At least one.
    weights : ndarray of shape (m,)
        The weight of each; their sum is 1.
    """

    kind: ClassVar[str] = "mean"
    maps: tuple[Part, ...] = field(metadata={"read": stored_maps})
    weights: FloatVector

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        lines = [map_ for map_ in self.maps if isinstance(map_, PiecewiseLinearMap)]
        scales = {line.scale for line in lines}
        values: Iterable[FloatVector] = (map_.values(p) for map_ in self.maps)
        if len(lines) == len(self.maps) and len(scales) == 1:  # one axis for all
            pairs = ((line.knots, line.heights) for line in lines)
            values = lines_at(p, pairs, scales.pop())
        weighted = zip(self.weights, values, strict=True)
        return np.asarray(sum(weight * value for weight, value in weighted))

    @property
    def bends(self) -> FloatVector:
        """Return the inner knots of all maps, as probabilities."""
        return np.concatenate([map_.bends for map_ in self.maps])

    def _check_fields(self) -> None:
        parts = self.maps and all(isinstance(map_, Part) for map_ in self.maps)
        kinds = f"{PiecewiseLinearMap.kind}, {ParabolasMap.kind}"
        require(parts, f"field 'maps' must be a list of maps of kind {kinds}.")
        self._check_sizes(len(self.maps), "weights")
        share = (self.weights >= 0.0).all() and abs(self.weights.sum() - 1) <= ROUNDING
        require(share, "weights of a mean must be 0 or more and sum to 1.")

    @property
    def _degree(self) -> int | None:
        degrees = [map_._degree for map_ in self.maps]
        return None if None in degrees else max(filter(None, degrees))

    def _formula(self, language: Language, name: str) -> str | None:
        texts = [map_._formula(language, name) for map_ in self.maps]
        pairs = zip(map(language.number, self.weights), texts, strict=True)
        return None if None in texts else " + ".join(f"{w} * ({t})" for w, t in pairs)

    def _joints(self) -> FloatVector:
        return np.concatenate([map_._joints() for map_ in self.maps])


def mean_map(
    maps: Sequence[Part], weights: FloatVector | None = None
) -> Part | MeanMap:
    """Return the mean of maps, as a single map where possible.

    The mean of lines between probabilities is piecewise linear again, with all their
    knots, unless some of them must be clipped to [0, 1].

    Examples
    --------
    >>> flat = PiecewiseLinearMap(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> bent = PiecewiseLinearMap(np.array([0.0, 0.2, 1.0]), np.array([0.0, 0.5, 1.0]))
    >>> mean_map([flat, bent]).heights
    array([0.25, 0.5 , 0.75])
    """
    if len(maps) == 1:
        return maps[0]
    share = np.full(len(maps), 1.0) if weights is None else weights
    share = share / share.sum()
    if not all(_is_straight(map_) for map_ in maps):
        return MeanMap(tuple(maps), share)
    knots = np.unique(np.concatenate([map_.knots for map_ in maps]))
    heights = share @ np.array([map_(knots) for map_ in maps])
    return PiecewiseLinearMap(knots, heights)


def _is_straight(map_: Part) -> bool:
    """Tell whether a map is straight between its knots over all of [0, 1]."""
    if not isinstance(map_, PiecewiseLinearMap) or map_.scale == "logit":
        return False
    whole = map_.knots[0] <= 0.0 and map_.knots[-1] >= 1.0
    return bool(whole and map_.heights.min() >= 0.0 and map_.heights.max() <= 1.0)
