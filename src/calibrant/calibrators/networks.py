"""Intra-order-preserving networks (Rahimi et al. 2020), fitted by torch.

Each fold trains on the other rows, from their temperature scaling, and keeps the state
with the least loss on its own rows, the first one included; the map is the mean over
folds. Fitted maps are plain numbers and need no torch.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.calibrators.base import ClassCalibrator
from calibrant.calibrators.fits import MulticlassFit
from calibrant.core.parameters import check_count, check_positive, legacy_generator
from calibrant.exceptions import MissingDependencyError, OptionError
from calibrant.maps.multiclass import multiclass_mean
from calibrant.maps.softmax import (
    MIN_FACTOR,
    DiagonalMap,
    Layer,
    OrderPreservingMap,
    linear_inputs,
)
from calibrant.numerics.class_probabilities import inverse_temperature, weight_shares
from calibrant.numerics.cross_validation import class_fold_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calibrant.core.array_types import (
        FloatMatrix,
        FloatVector,
        IntVector,
        Scale,
        Seed,
    )
    from calibrant.core.sample import ClassSample
    from calibrant.maps.multiclass import MulticlassMap

ONE = float(np.log(np.expm1(1.0 - MIN_FACTOR)))
"""Softplus of it, plus the least factor, is 1."""
KNOTS = 65
"""How many quantiles, and how many equal steps, the diagonal function has knots at."""
LBFGS_ROUND = 10
"""Steps of L-BFGS between evaluations on the held-out rows."""


@contextmanager
def torch_on_one_thread(method: str) -> Iterator[Any]:
    """Import torch and limit it to one thread, so that results do not depend on it."""
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
class Rows:
    """Rows to train on, or held out."""

    logits: FloatMatrix
    column: IntVector
    share: FloatVector

    @cached_property
    def inverse(self) -> float:
        """Return one over the best temperature."""
        return inverse_temperature(self.logits, self.column, self.share)

    @cached_property
    def size(self) -> float:
        """Return the root mean square of the logits."""
        return float(np.sqrt(np.mean(self.logits**2))) or 1.0


def _fit_folds(
    network: OrderNetwork | DiagonalNetwork, sample: ClassSample, name: str
) -> MulticlassFit:
    """Return the mean of the maps trained on the rows of each fold's complement."""
    rng, folds = legacy_generator(network.random_state), min(network.folds, sample.n)
    logits = linear_inputs(sample.scores, sample.scale, "centred")
    share = weight_shares(sample.weight, sample.n)
    fold = class_fold_numbers(logits, sample.column, share, folds, rng)

    def rows(which: Any) -> Rows:
        part = share[which]
        return Rows(logits[which], sample.column[which], part / part.sum())

    maps: list[MulticlassMap] = []
    with torch_on_one_thread(name) as torch:
        for i in range(folds):
            held_out = rows(fold == i)
            training = rows(fold != i) if folds > 1 else held_out  # of a single row
            map_ = network._train(torch, training, held_out, rng, sample.scale)  # noqa: SLF001
            maps.append(map_)
    return MulticlassFit(multiclass_mean(tuple(maps)))


def _check_hidden(hidden: Any) -> None:
    """Raise where the sizes of hidden layers are invalid."""
    if not isinstance(hidden, list | tuple):
        raise OptionError(
            "hidden must be a tuple of layer sizes, such as (150, 150); got "
            f"{hidden!r}."
        )
    for units in hidden:
        check_count(units, name="hidden")


def _new_layers(
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
    """Return the outputs of a network, rectified between layers."""
    for weights, biases in layers[:-1]:
        x = torch.relu(x @ weights.T + biases)
    return x @ layers[-1][0].T + layers[-1][1]


@dataclass(kw_only=True, eq=False, repr=False)
class OrderNetwork(ClassCalibrator):
    """Gaps between sorted logits, each times a positive number from a network.

    Parameters
    ----------
    invariant : bool
        Whether the network sees sorted logits (order-invariant), or the logits in the
        order of their columns (order-preserving only).
    hidden : tuple of int
        Sizes of hidden layers.
    epochs : int
        Number of epochs of Adam.
    batch_size : int
        Rows per step of Adam.
    learning_rate : float or None
        Of Adam; None: 0.005 where `invariant`, 0.001 where not, as published.
    weight_decay : float
        Adds half this times the squared weights to the loss.
    folds : int
        Number of folds.
    random_state : int, generator or None
        Shuffles rows and initialises weights.
    """

    invariant: bool = True
    hidden: tuple[int, ...] = (150, 150)
    epochs: int = 40
    batch_size: int = 256
    learning_rate: float | None = None
    weight_decay: float = 5e-4
    folds: int = 5
    random_state: Seed = 0

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        _check_hidden(self.hidden)
        check_count(self.epochs, name="epochs")
        check_count(self.batch_size, name="batch_size")
        check_count(self.folds, name="folds", least=2)
        if self.learning_rate is not None:
            check_positive(self.learning_rate, name="learning_rate")
        if self.weight_decay:
            check_positive(self.weight_decay, name="weight_decay")

    def fit_classes(self, sample: ClassSample) -> MulticlassFit:
        """Train one network per fold."""
        return _fit_folds(self, sample, "iop-oi" if self.invariant else "iop-op")

    def _train(
        self, torch: Any, training: Rows, held_out: Rows, rng: Any, scale: Scale
    ) -> OrderPreservingMap:
        """Return the map with the least held-out loss."""
        k = training.logits.shape[1]
        layers = _new_layers([k, *self.hidden, k - 1], ONE, rng, torch, torch.float32)
        rate = self.learning_rate or (0.005 if self.invariant else 0.001)
        parameters = [part for layer in layers for part in layer]
        adam = torch.optim.Adam(
            parameters, lr=rate, weight_decay=self.weight_decay, fused=True
        )
        size, inverse = training.size, training.inverse
        rows = self._sorted(torch, training, size, inverse)
        ahead = self._sorted(torch, held_out, size, inverse)
        least = np.inf
        best: tuple[Layer, ...] = ()
        for epoch in range(self.epochs + 1):
            with torch.no_grad():
                loss = float(_order_loss(torch, layers, ahead, slice(None)))
            if loss < least:
                least, best = loss, tuple(Layer(*map(_copied, one)) for one in layers)
            if epoch == self.epochs:
                break
            order = rng.permutation(training.column.size)
            for start in range(0, order.size, self.batch_size):
                adam.zero_grad()
                which = torch.from_numpy(order[start : start + self.batch_size])
                _order_loss(torch, layers, rows, which).backward()
                adam.step()
        return OrderPreservingMap(best, self.invariant, size, inverse, scale)

    def _sorted(
        self, torch: Any, part: Rows, size: float, inverse: float
    ) -> tuple[Any, ...]:
        """Return what the network sees, gaps, shares, and each label's rank."""
        order = np.argsort(-part.logits, axis=1, kind="stable")
        falling = np.take_along_axis(part.logits, order, axis=1)
        rank = np.argmax(order == part.column[:, np.newaxis], axis=1)
        seen = (falling if self.invariant else part.logits) / size
        gaps = inverse * (falling[:, :-1] - falling[:, 1:])
        single = (a.astype(np.float32) for a in (seen, gaps, part.share))
        return tuple(map(torch.from_numpy, (*single, rank)))


def _copied(parameter: Any) -> FloatMatrix:
    return np.asarray(parameter.detach().double().numpy().copy())


def _order_loss(
    torch: Any, layers: list[tuple[Any, Any]], rows: tuple[Any, ...], which: Any
) -> Any:
    """Return the mean log-loss, of classes in the order of their logits."""
    seen, gaps, share, rank = (array[which] for array in rows)
    factor = torch.nn.functional.softplus(_forward(torch, layers, seen))
    steps = torch.nn.functional.pad(gaps * (factor + MIN_FACTOR), (0, 1))
    climbed = steps.flip(1).cumsum(1).flip(1)
    log_prob = climbed.log_softmax(1).gather(1, rank[:, None])[:, 0]
    return -(share * log_prob).sum() / share.sum()


@dataclass(kw_only=True, eq=False, repr=False)
class DiagonalNetwork(ClassCalibrator):
    """The same rising function of each logit: the integral of a positive network.

    Parameters
    ----------
    hidden : tuple of int
        Sizes of hidden layers of the derivative.
    max_steps : int
        At most so many steps of L-BFGS.
    folds : int
        Number of folds.
    random_state : int, generator or None
        Shuffles rows and initialises weights.
    """

    hidden: tuple[int, ...] = (10, 10)
    max_steps: int = 200
    folds: int = 5
    random_state: Seed = 0

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        _check_hidden(self.hidden)
        check_count(self.max_steps, name="max_steps")
        check_count(self.folds, name="folds", least=2)

    def fit_classes(self, sample: ClassSample) -> MulticlassFit:
        """Fit one function per fold."""
        return _fit_folds(self, sample, "iop-diag")

    def _train(
        self, torch: Any, training: Rows, held_out: Rows, rng: Any, scale: Scale
    ) -> DiagonalMap:
        """Return the map with the least held-out loss."""
        knots = _knots(training.logits)
        layers = _new_layers([1, *self.hidden, 1], 0.0, rng, torch, torch.float64)
        inputs = torch.from_numpy(knots / training.size)
        widths = training.inverse * torch.from_numpy(np.diff(knots))

        def heights() -> Any:
            raw = _forward(torch, layers, inputs[:, None])[:, 0]
            slope = (1.0 - MIN_FACTOR) * (torch.nn.functional.elu(raw) + 1.0)
            slope = slope + MIN_FACTOR
            rises = widths * (slope[1:] + slope[:-1]) / 2.0
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

        least, best = np.inf, training.inverse * (knots - knots[0])
        for step in range(0, self.max_steps + LBFGS_ROUND, LBFGS_ROUND):
            with torch.no_grad():
                now = heights()
                loss = float(_diagonal_loss(now, ahead))
            if not loss < least:
                break
            least, best = loss, now.numpy().copy()
            if step < self.max_steps:
                search.step(closure)
        return DiagonalMap(knots, best, training.logits.shape[1], scale)


def _knots(logits: FloatMatrix) -> FloatVector:
    low, high = float(logits.min()), float(logits.max())
    if low == high:
        return np.array([low - 1.0, high + 1.0])
    quantiles = np.quantile(logits, np.linspace(0.0, 1.0, KNOTS))
    knots = np.unique(np.concatenate([quantiles, np.linspace(low, high, KNOTS)]))
    apart = np.diff(knots, prepend=-np.inf) > 1e-9 * (high - low)
    return np.asarray(knots[apart])


def _placed(torch: Any, part: Rows, knots: FloatVector) -> tuple[Any, ...]:
    """Return each logit's piece and place in it, the labels and the shares."""
    last = knots.size - 2
    index = np.clip(np.searchsorted(knots, part.logits, side="right") - 1, 0, last)
    along = (part.logits - knots[index]) / (knots[index + 1] - knots[index])
    return tuple(map(torch.from_numpy, (index, along, part.column, part.share)))


def _diagonal_loss(heights: Any, rows: tuple[Any, ...]) -> Any:
    index, along, column, share = rows
    scores = heights[index] + along * (heights[index + 1] - heights[index])
    log_prob = scores.log_softmax(1).gather(1, column[:, None])[:, 0]
    return -(share * log_prob).sum()
