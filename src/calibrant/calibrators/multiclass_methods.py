"""The multi-class methods by name, as rows for the registry."""

from __future__ import annotations

from typing import Any

from calibrant.calibrators.diagonal_network import DiagonalNetwork
from calibrant.calibrators.lifted import OneTemperature
from calibrant.calibrators.order_preserving import OrderNetwork
from calibrant.calibrators.softmax_regression import MatrixScaling, VectorScaling
from calibrant.calibrators.temperature import Temperature

MULTICLASS_METHODS: tuple[tuple[str, str, type[Any], dict[str, Any]], ...] = (
    ("temperature", "one temperature for all classes", Temperature, {}),
    ("one-temp", "a temperature a class, one against the rest", OneTemperature, {}),
    ("vector", "a slope and an intercept a class", VectorScaling, {}),
    (
        "matrix-odir",
        "a matrix on logits, off-diagonals and intercepts held small",
        MatrixScaling,
        {"inputs": "centred", "regularisation": "odir"},
    ),
    (
        "dirichlet-l2",
        "a matrix on log-probabilities, all weights held small",
        MatrixScaling,
        {"inputs": "log-prob", "regularisation": "l2"},
    ),
    (
        "dirichlet-odir",
        "the same, off-diagonals and intercepts held small",
        MatrixScaling,
        {"inputs": "log-prob", "regularisation": "odir"},
    ),
    (
        "iop-oi",
        "intra-order-preserving network on sorted logits (torch)",
        OrderNetwork,
        {"invariant": True},
    ),
    (
        "iop-op",
        "intra-order-preserving network on logits (torch)",
        OrderNetwork,
        {"invariant": False},
    ),
    ("iop-diag", "one rising function of each logit (torch)", DiagonalNetwork, {}),
)
"""Name, summary, family and what the name fixes; all are fitted by log-loss."""
