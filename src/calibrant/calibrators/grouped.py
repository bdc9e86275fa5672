"""A map for each group of rows, drawn to the common map of all rows.

The common map is that of `auto`. Each group corrects its log-odds by the terms of a
smooth map, whose penalties all groups share: they say how much groups differ, in level,
slope and shape. So groups of few rows have nearly the common map, large ones their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import expit

from calibrant.calibrators.auto import FINE, Auto, certify, event_families, mean_bounds
from calibrant.calibrators.auto_held_out import (
    MIN_HELD_OUT_GAIN,
    EventRows,
    HeldOut,
    event_log_prob,
)
from calibrant.core.arrays import row_hash
from calibrant.core.parameters import legacy_generator
from calibrant.core.sample import BinarySample
from calibrant.maps.certificate import CertifiedMap, GroupTrial
from calibrant.maps.grouped import GroupedMap
from calibrant.maps.smooth import SmoothMap
from calibrant.numerics.cluster_dependence import row_factor
from calibrant.numerics.cross_validation import folded_rows
from calibrant.numerics.links import logit, logit_within, regression_ends
from calibrant.numerics.marginal_likelihood import SharedFit, fit_shared
from calibrant.numerics.pooling import log_losses
from calibrant.numerics.smooth_terms import NODES, Terms, spread_nodes
from calibrant.numerics.supported_shifts import rising_shifts
from calibrant.numerics.weighted_points import compress_to_at_most

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector
    from calibrant.maps.base import CalibrationMap
    from calibrant.maps.grouped import Key

KNOTS = 10
"""Of the curves by which a group may differ."""


@dataclass(frozen=True, eq=False)
class GroupCurves:
    """How the log-odds of groups differ from common ones.

    Attributes
    ----------
    terms : Terms
        The terms of a smooth map of the common predictions.
    fit : SharedFit
        Their coefficients in each group.
    """

    terms: Terms
    fit: SharedFit

    @classmethod
    def of(
        cls,
        sample: BinarySample,
        group: IntVector,
        count: int,
        penalties: FloatVector | None = None,
    ) -> Self:
        """Fit the groups, numbered from 0, of a sample of common predictions."""
        terms = Terms.of(compress_to_at_most(sample), KNOTS)
        parts = map(compress_to_at_most, _parts(sample, group, count))
        problems = [terms.problem(one.p, one.weight, one.label_sum) for one in parts]
        return cls(terms, fit_shared(problems, penalties))

    def values(self, p: FloatVector, group: IntVector) -> FloatVector:
        """Return the predictions of groups for common predictions."""
        own = self.fit.coefficients[group]
        moves = np.einsum("ij,ij->i", self.terms.design(p), own)
        return np.asarray(expit(self.terms.logits(p) + moves))


def _parts(sample: BinarySample, group: IntVector, count: int) -> list[BinarySample]:
    """Return the rows of each group."""
    order = np.argsort(group, kind="stable")
    boundaries = np.cumsum(np.bincount(group, minlength=count))[:-1]
    return [
        BinarySample(sample.p[rows], sample.y[rows], sample.weights[rows])
        for rows in np.split(order, boundaries)
    ]


@dataclass(frozen=True, eq=False)
class GroupedFit:
    """The map of all groups, or the common map where they share it."""

    map: GroupedMap | CertifiedMap


@dataclass(frozen=True, eq=False)
class GroupedAuto:
    """The repair of an event that differs by group where held-out rows support it.

    Parameters
    ----------
    auto : Auto
        How the common map is found.
    by : tuple of str
        Names of the columns that define groups.
    keys : tuple of tuple
        The values of each group.
    group : ndarray of shape (n,)
        The group of each row, as a number.
    """

    auto: Auto
    by: tuple[str, ...]
    keys: tuple[Key, ...]
    group: IntVector

    @classmethod
    def of(cls, auto: Auto, by: Sequence[str], row_keys: Sequence[Key]) -> Self:
        """Return the method for rows whose groups are numbered."""
        keys = tuple(sorted(set(row_keys), key=lambda key: [str(part) for part in key]))
        number = {key: place for place, key in enumerate(keys)}
        return cls(auto, tuple(by), keys, np.array([number[key] for key in row_keys]))

    def fit(self, sample: BinarySample) -> GroupedFit:
        """Choose the common repair, then whether groups have their own."""
        rows, group = self._folded(sample)
        held_out = HeldOut.of(rows, event_families(sample, monotone=self.auto.monotone))
        common = self.auto.map_of(sample, held_out)
        data = row_hash(sample.p, sample.y, sample.weight, self.group)
        if not held_out.names:
            certificate = certify(held_out, sample.n_data, data)
            return GroupedFit(CertifiedMap(common, certificate))
        curves, after = self._held_out_curves(held_out, group)
        trial = self._trial(held_out, after)
        certificate = certify(held_out, sample.n_data, data, trial, after)
        if not trial.used:
            return GroupedFit(CertifiedMap(common, certificate))
        maps = self._maps(sample, common, curves)
        return GroupedFit(GroupedMap(common, self.by, self.keys, maps, certificate))

    def _folded(self, sample: BinarySample) -> tuple[EventRows, IntVector]:
        """Return rows in folds, those of each group spread over all, and groups.

        Rows of clusters are not spread: whole clusters are held out.
        """
        folds = self.auto.n_folds(sample)
        if sample.clusters is not None:
            return EventRows.of(sample, folds, self.auto.random_state), self.group
        rng = legacy_generator(self.auto.random_state)
        columns: list[FloatMatrix] = []
        for number, part in enumerate(_parts(sample, self.group, len(self.keys))):
            rows, fold = folded_rows(part, folds, rng)
            fold = rng.permutation(folds)[fold]  # small groups are in any of them
            weight = np.ones(rows.p.size) if rows.weight is None else rows.weight
            each = np.full(rows.p.size, number)
            columns.append(np.stack([rows.p, rows.y, weight, fold, each]))
        p, y, weight, fold, group = np.concatenate(columns, axis=1)
        return EventRows(p, y, weight, fold.astype(np.intp)), group.astype(np.intp)

    def _held_out_curves(
        self, held_out: HeldOut[EventRows], group: IntVector
    ) -> tuple[GroupCurves, FloatMatrix]:
        """Return the curves of all rows, and log-probabilities by those of other folds.

        Curves start from common predictions that are held out themselves: those of the
        map of all rows would be nearer to the labels than they are of new rows.
        """
        rows, fold = held_out.rows.event(held_out.after), held_out.rows.fold
        weight = rows.weights / row_factor(rows)
        sample = BinarySample(rows.p, rows.y, weight)
        curves = GroupCurves.of(sample, group, len(self.keys))
        p = np.empty_like(sample.p)
        for number in range(int(fold.max()) + 1):
            held, rest = fold == number, fold != number
            training = BinarySample(
                sample.p[rest], sample.y[rest], sample.weights[rest]
            )
            start = curves.fit.penalties
            part = GroupCurves.of(training, group[rest], len(self.keys), start)
            p[held] = part.values(sample.p[held], group[held])
        return curves, event_log_prob(p)

    def _trial(self, held_out: HeldOut[EventRows], after: FloatMatrix) -> GroupTrial:
        """Return what maps of groups bring beyond the common one."""
        rows = held_out.rows
        target, weight, clusters = rows.target, rows.weight, rows.clusters
        gain = log_losses(held_out.after, target) - log_losses(after, target)
        evidence = float(weight @ gain) / row_factor(rows.event(held_out.after))
        bounds = mean_bounds(gain, weight, clusters)
        return GroupTrial(
            len(self.keys), evidence > MIN_HELD_OUT_GAIN, evidence, bounds
        )

    def _maps(
        self, sample: BinarySample, common: CalibrationMap, curves: GroupCurves
    ) -> tuple[SmoothMap, ...]:
        """Return the maps of groups, straight between some of the logits."""
        cells = compress_to_at_most(sample)
        ends = regression_ends(cells.p, cells.weight)
        u = logit_within(cells.p, ends)
        knots = spread_nodes(u, cells.weight, NODES)
        p = common.values(expit(knots))
        shifts = logit(p) - knots
        shifts = shifts + curves.fit.coefficients @ curves.terms.design(p).T
        if self.auto.monotone:
            rising = [rising_shifts(knots, one, u, cells.weight) for one in shifts]
            shifts = np.array(rising)
        return tuple(
            SmoothMap.through(knots, one, ends).thinned(FINE) for one in shifts
        )
