"""Intra-order-preserving networks (Rahimi et al. 2020), fitted by torch.

Each fold trains a network on the other rows, from their temperature scaling, and keeps
the state with the least loss on its own rows, the first one included; the map is the
mean over folds. Fitted maps are plain numbers and need no torch.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.options import (
    check_count,
    check_positive,
    legacy_generator,
)
from calibrant.calibrators.multiclass import MulticlassFit
from calibrant.exceptions import MissingDependencyError, OptionError
from calibrant.maps.multiclass import multiclass_mean
from calibrant.maps.order_preserving import DiagonalMap, Layer, OrderPreservingMap
from calibrant.maps.softmax import linear_inputs
from calibrant.numerics.folds import class_fold_numbers
from calibrant.numerics.softmax import weight_shares
from calibrant.numerics.temperature import inverse_temperature

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calibrant._typing import FloatMatrix, FloatVector, IntVector, Seed
    from calibrant._validation.class_sample import ClassSample

ONE = float(np.log(np.expm1(1.0)))
"""What softplus turns into 1."""
KNOTS = 65
"""How many quantiles, and how many equal steps, the diagonal function has knots at."""
LBFGS_ROUND = 10
"""Steps of L-BFGS between looks at the rows held out."""


@contextmanager
def _torch(method: str) -> Iterator[Any]:
    """Import torch and hold it to one thread, so that results do not depend on more."""
    try:
        import torch
    except ImportError:
        raise MissingDependencyError.for_extra(
            f"fitting {method}", "torch", "torch"
        ) from None
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield torch
    finally:
        torch.set_num_threads(threads)


@dataclass(frozen=True, eq=False)
class _Part:
    """Rows to train on, or held out."""

    logits: FloatMatrix
    column: IntVector
    share: FloatVector

    @property
    def inverse(self) -> float:
        """Return one over the best temperature."""
        return inverse_temperature(self.logits, self.column, self.share)

    @property
    def size(self) -> float:
        """Return how large logits are."""
        return float(np.sqrt(np.mean(self.logits**2))) or 1.0


def _parts(sample: ClassSample, folds: int, rng: Any) -> Iterator[tuple[_Part, _Part]]:
    logits = linear_inputs(sample.scores, sample.scale, "centred")
    share = weight_shares(sample.weight, sample.n)
    fold = class_fold_numbers(logits, sample.column, share, folds, rng)
    for i in range(folds):
        yield tuple(  # type: ignore[misc]
            _Part(logits[w], sample.column[w], share[w] / share[w].sum())
            for w in (fold != i, fold == i)
            if w.any()
        ) * (1 if folds > 1 else 2)


def _check_hidden(hidden: Any) -> None:
    if not isinstance(hidden, list | tuple):
        raise OptionError(
            f"hidden must be a tuple of layer sizes, as (150, 150); got {hidden!r}."
        )
    for units in hidden:
        check_count(units, name="hidden")


def _layers(
    sizes: list[int], last_bias: float, rng: Any, torch: Any, dtype: Any
) -> list[tuple[Any, Any]]:
    """Return random hidden layers, and a last one that is constant."""
    layers = []
    for inputs, outputs in pairwise(sizes):
        weights = rng.normal(size=(outputs, inputs)) * np.sqrt(2.0 / inputs)
        layers.append([weights, np.zeros(outputs)])
    layers[-1] = [np.zeros_like(layers[-1][0]), np.full(sizes[-1], last_bias)]
    return [
        tuple(torch.tensor(a, dtype=dtype, requires_grad=True) for a in layer)
        for layer in layers
    ]


def _forward(torch: Any, layers: list[tuple[Any, Any]], x: Any) -> Any:
    for weights, biases in layers[:-1]:
        x = torch.relu(x @ weights.T + biases)
    return x @ layers[-1][0].T + layers[-1][1]


class _Best:
    """The state of a network with the least held-out loss so far."""

    def __init__(self, layers: list[tuple[Any, Any]]) -> None:
        self.layers = layers
        self.loss = np.inf
        self.state: list[tuple[FloatMatrix, FloatVector]] = []

    def look(self, loss: float) -> None:
        """Keep the network's state where its loss is less."""
        if loss < self.loss:
            self.loss = loss
            self.state = [
                (w.detach().double().numpy().copy(), b.detach().double().numpy().copy())
                for w, b in self.layers
            ]


@dataclass(frozen=True, kw_only=True)
class OrderNetwork:
    """Gaps between sorted logits, each times a positive number from a network.

    Parameters
    ----------
    invariant : bool
        Whether the network sees sorted logits (order-invariant), or the logits in the
        order of their columns (order-preserving only).
    hidden : tuple of int
        Sizes of hidden layers.
    epochs, batch_size : int
        How long Adam goes on, and rows a step.
    learning_rate : float or None
        Of Adam; None: 0.005 where `invariant`, 0.001 where not, as published.
    weight_decay : float
        Adds half this times the squared weights to the loss.
    folds : int
        Number of folds.
    random_state : int, generator or None
        Shuffles rows and starts weights.
    """

    invariant: bool = True
    hidden: tuple[int, ...] = (150, 150)
    epochs: int = 40
    batch_size: int = 256
    learning_rate: float | None = None
    weight_decay: float = 5e-4
    folds: int = 5
    random_state: Seed = 0

    def __post_init__(self) -> None:
        _check_hidden(self.hidden)
        check_count(self.epochs, name="epochs")
        check_count(self.batch_size, name="batch_size")
        check_count(self.folds, name="folds", least=2)
        if self.learning_rate is not None:
            check_positive(self.learning_rate, name="learning_rate")
        if self.weight_decay:
            check_positive(self.weight_decay, name="weight_decay")

    def fit(self, sample: ClassSample) -> MulticlassFit:
        """Train one network a fold."""
        rng = legacy_generator(self.random_state)
        with _torch("iop-oi" if self.invariant else "iop-op") as torch:
            maps = tuple(
                self._train(torch, training, held_out, sample, rng)
                for training, held_out in _parts(sample, min(self.folds, sample.n), rng)
            )
        return MulticlassFit(multiclass_mean(maps))

    def _train(
        self,
        torch: Any,
        training: _Part,
        held_out: _Part,
        sample: ClassSample,
        rng: Any,
    ) -> OrderPreservingMap:
        size, inverse, k = training.size, training.inverse, sample.n_classes
        layers = _layers([k, *self.hidden, k - 1], ONE, rng, torch, torch.float32)
        rate = self.learning_rate or (0.005 if self.invariant else 0.001)
        adam = torch.optim.Adam(
            [part for layer in layers for part in layer],
            lr=rate,
            weight_decay=self.weight_decay,
            fused=True,
        )
        rows = self._sorted(torch, training, size, inverse)
        ahead = self._sorted(torch, held_out, size, inverse)
        best = _Best(layers)
        for _ in range(self.epochs):
            with torch.no_grad():
                best.look(float(self._loss(torch, layers, ahead, slice(None))))
            order = rng.permutation(training.column.size)
            for start in range(0, order.size, self.batch_size):
                adam.zero_grad()
                which = torch.from_numpy(order[start : start + self.batch_size])
                self._loss(torch, layers, rows, which).backward()
                adam.step()
        with torch.no_grad():
            best.look(float(self._loss(torch, layers, ahead, slice(None))))
        found = tuple(Layer(weights, biases) for weights, biases in best.state)
        return OrderPreservingMap(found, self.invariant, size, inverse, sample.scale)

    def _sorted(
        self, torch: Any, part: _Part, size: float, inverse: float
    ) -> tuple[Any, ...]:
        order = np.argsort(-part.logits, axis=1, kind="stable")
        falling = np.take_along_axis(part.logits, order, axis=1)
        place = np.argmax(order == part.column[:, np.newaxis], axis=1)
        seen = (falling if self.invariant else part.logits) / size
        gaps = inverse * (falling[:, :-1] - falling[:, 1:])
        single = (a.astype(np.float32) for a in (seen, gaps, part.share))
        return tuple(map(torch.from_numpy, (*single, place)))

    def _loss(
        self,
        torch: Any,
        layers: list[tuple[Any, Any]],
        rows: tuple[Any, ...],
        which: Any,
    ) -> Any:
        """Return the mean log-loss; classes stay sorted, so does what happened."""
        seen, gaps, share, place = (array[which] for array in rows)
        factor = torch.nn.functional.softplus(_forward(torch, layers, seen))
        steps = torch.nn.functional.pad(gaps * factor, (0, 1))
        climbed = steps.flip(1).cumsum(1).flip(1)
        log_prob = climbed.log_softmax(1).gather(1, place[:, None])[:, 0]
        return -(share * log_prob).sum() / share.sum()


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
        _check_hidden(self.hidden)
        check_count(self.max_steps, name="max_steps")
        check_count(self.folds, name="folds", least=2)

    def fit(self, sample: ClassSample) -> MulticlassFit:
        """Fit one function a fold."""
        rng = legacy_generator(self.random_state)
        with _torch("iop-diag") as torch:
            maps = tuple(
                self._train(torch, training, held_out, sample, rng)
                for training, held_out in _parts(sample, min(self.folds, sample.n), rng)
            )
        return MulticlassFit(multiclass_mean(maps))

    def _train(
        self,
        torch: Any,
        training: _Part,
        held_out: _Part,
        sample: ClassSample,
        rng: Any,
    ) -> DiagonalMap:
        knots = _knots(training.logits)
        size, inverse = training.size, training.inverse
        layers = _layers([1, *self.hidden, 1], 0.0, rng, torch, torch.float64)
        inputs, widths = (
            torch.from_numpy(knots / size),
            torch.from_numpy(np.diff(knots)),
        )

        def heights() -> Any:
            raw = _forward(torch, layers, inputs[:, None])[:, 0]
            slope = torch.nn.functional.elu(raw) + 1.0
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


def _placed(torch: Any, part: _Part, knots: FloatVector) -> tuple[Any, ...]:
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
