"""What the order-preserving networks share: torch, folds and layers."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.options import check_count
from calibrant.exceptions import MissingDependencyError, OptionError
from calibrant.maps.softmax import linear_inputs
from calibrant.numerics.class_probabilities import inverse_temperature, weight_shares
from calibrant.numerics.cross_validation import class_fold_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector
    from calibrant.core.class_sample import ClassSample


@contextmanager
def torch_on_one_thread(method: str) -> Iterator[Any]:
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
class Part:
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


def held_out_parts(
    sample: ClassSample, folds: int, rng: Any
) -> Iterator[tuple[Part, Part]]:
    """Yield the rows to train on and those held out, for each fold."""
    logits = linear_inputs(sample.scores, sample.scale, "centred")
    share = weight_shares(sample.weight, sample.n)
    fold = class_fold_numbers(logits, sample.column, share, folds, rng)
    for i in range(folds):
        yield tuple(  # type: ignore[misc]
            Part(logits[w], sample.column[w], share[w] / share[w].sum())
            for w in (fold != i, fold == i)
            if w.any()
        ) * (1 if folds > 1 else 2)


def check_hidden(hidden: Any) -> None:
    """Raise where the sizes of hidden layers cannot be."""
    if not isinstance(hidden, list | tuple):
        raise OptionError(
            f"hidden must be a tuple of layer sizes, as (150, 150); got {hidden!r}."
        )
    for units in hidden:
        check_count(units, name="hidden")


def new_layers(
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


def forward(torch: Any, layers: list[tuple[Any, Any]], x: Any) -> Any:
    """Return the outputs of a network, rectified between layers."""
    for weights, biases in layers[:-1]:
        x = torch.relu(x @ weights.T + biases)
    return x @ layers[-1][0].T + layers[-1][1]
