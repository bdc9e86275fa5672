"""Intra-order-preserving networks (Rahimi et al. 2020), fitted by torch.

Each fold trains a network on the other rows, from their temperature scaling, and keeps
the state with the least loss on its own rows, the first one included; the map is the
mean over folds. Fitted maps are plain numbers and need no torch.
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
from calibrant.core.options import (
    check_count,
    check_positive,
    legacy_generator,
)
from calibrant.maps.multiclass import multiclass_mean
from calibrant.maps.softmax import MIN_FACTOR, Layer, OrderPreservingMap

if TYPE_CHECKING:
    from calibrant.calibrators.networks import Part
    from calibrant.core.array_types import FloatMatrix, FloatVector, Seed
    from calibrant.core.class_sample import ClassSample

ONE = float(np.log(np.expm1(1.0 - MIN_FACTOR)))
"""What softplus turns into 1, less the least factor."""


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
        check_hidden(self.hidden)
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
        with torch_on_one_thread("iop-oi" if self.invariant else "iop-op") as torch:
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
    ) -> OrderPreservingMap:
        size, inverse, k = training.size, training.inverse, sample.n_classes
        layers = new_layers([k, *self.hidden, k - 1], ONE, rng, torch, torch.float32)
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
        self, torch: Any, part: Part, size: float, inverse: float
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
        factor = torch.nn.functional.softplus(forward(torch, layers, seen))
        steps = torch.nn.functional.pad(gaps * (factor + MIN_FACTOR), (0, 1))
        climbed = steps.flip(1).cumsum(1).flip(1)
        log_prob = climbed.log_softmax(1).gather(1, place[:, None])[:, 0]
        return -(share * log_prob).sum() / share.sum()
