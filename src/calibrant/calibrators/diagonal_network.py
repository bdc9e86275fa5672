"""One rising function of each logit, the integral of a positive network (torch).

The diagonal case of the order-preserving networks (Rahimi et al. 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.calibrators.base import MulticlassFit
from calibrant.calibrators.networks import (
    check_hidden,
    forward,
    held_out_parts,
    new_layers,
    torch_on_one_thread,
)
from calibrant.core.options import check_count, legacy_generator
from calibrant.maps.multiclass import multiclass_mean
from calibrant.maps.softmax import MIN_FACTOR, DiagonalMap

if TYPE_CHECKING:
    from calibrant.calibrators.networks import Part
    from calibrant.core.array_types import FloatMatrix, FloatVector, Seed
    from calibrant.core.class_sample import ClassSample

KNOTS = 65
"""How many quantiles, and how many equal steps, the function has knots at."""
LBFGS_ROUND = 10
"""Steps of L-BFGS between looks at the rows held out."""


@dataclass(frozen=True, kw_only=True)
class DiagonalNetwork:
    """The same rising function of each logit: the integral of a positive network.

    Parameters
    ----------
    hidden : tuple of int
        Sizes of hidden layers of the derivative.
    max_steps : int
        Most steps of L-BFGS.
    folds : int
        Number of folds.
    random_state : int, generator or None
        Shuffles rows and starts weights.
    """

    hidden: tuple[int, ...] = (10, 10)
    max_steps: int = 200
    folds: int = 5
    random_state: Seed = 0

    def __post_init__(self) -> None:
        check_hidden(self.hidden)
        check_count(self.max_steps, name="max_steps")
        check_count(self.folds, name="folds", least=2)

    def fit(self, sample: ClassSample) -> MulticlassFit:
        """Fit one function a fold."""
        rng = legacy_generator(self.random_state)
        with torch_on_one_thread("iop-diag") as torch:
            maps = tuple(
                self._train(torch, training, held_out, sample, rng)
                for training, held_out in held_out_parts(
                    sample, min(self.folds, sample.n), rng
                )
            )
        return MulticlassFit(multiclass_mean(maps))

    def _train(
        self,
        torch: Any,
        training: Part,
        held_out: Part,
        sample: ClassSample,
        rng: Any,
    ) -> DiagonalMap:
        knots = _knots(training.logits)
        size, inverse = training.size, training.inverse
        layers = new_layers([1, *self.hidden, 1], 0.0, rng, torch, torch.float64)
        inputs, widths = (
            torch.from_numpy(knots / size),
            torch.from_numpy(np.diff(knots)),
        )

        def heights() -> Any:
            raw = forward(torch, layers, inputs[:, None])[:, 0]
            slope = (1.0 - MIN_FACTOR) * (torch.nn.functional.elu(raw) + 1.0)
            slope = slope + MIN_FACTOR
            rises = inverse * widths * (slope[1:] + slope[:-1]) / 2.0
            return torch.nn.functional.pad(rises.cumsum(0), (1, 0))

        rows = _placed(torch, training, knots)
        ahead = _placed(torch, held_out, knots)
        search = torch.optim.LBFGS(
            [part for layer in layers for part in layer],
            max_iter=LBFGS_ROUND,
            line_search_fn="strong_wolfe",
        )

        def closure() -> Any:
            search.zero_grad()
            loss = _diagonal_loss(heights(), rows)
            loss.backward()
            return loss

        best, kept = np.inf, inverse * (knots - knots[0])
        for step in range(0, self.max_steps + LBFGS_ROUND, LBFGS_ROUND):
            with torch.no_grad():
                now = heights()
                loss = float(_diagonal_loss(now, ahead))
            if not loss < best:
                break
            best, kept = loss, now.numpy().copy()
            if step < self.max_steps:
                search.step(closure)
        return DiagonalMap(knots, kept, sample.n_classes, sample.scale)


def _knots(logits: FloatMatrix) -> FloatVector:
    low, high = float(logits.min()), float(logits.max())
    if low == high:
        return np.array([low - 1.0, high + 1.0])
    quantiles = np.quantile(logits, np.linspace(0.0, 1.0, KNOTS))
    knots = np.unique(np.concatenate([quantiles, np.linspace(low, high, KNOTS)]))
    apart = np.diff(knots, prepend=-np.inf) > 1e-9 * (high - low)
    return np.asarray(knots[apart])


def _placed(torch: Any, part: Part, knots: FloatVector) -> tuple[Any, ...]:
    """Return between which knots each logit lies, how far, and what happened."""
    last = knots.size - 2
    index = np.clip(np.searchsorted(knots, part.logits, side="right") - 1, 0, last)
    along = (part.logits - knots[index]) / (knots[index + 1] - knots[index])
    return tuple(map(torch.from_numpy, (index, along, part.column, part.share)))


def _diagonal_loss(heights: Any, rows: tuple[Any, ...]) -> Any:
    index, along, column, share = rows
    scores = heights[index] + along * (heights[index + 1] - heights[index])
    log_prob = scores.log_softmax(1).gather(1, column[:, None])[:, 0]
    return -(share * log_prob).sum()
