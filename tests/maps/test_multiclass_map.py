import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import MapFormatError
from calibrant.maps.multiclass import MulticlassMeanMap
from calibrant.maps.softmax import (
    DiagonalMap,
    Layer,
    OrderPreservingMap,
    SoftmaxMap,
    TemperatureMap,
)

PROB = np.array([[0.7, 0.2, 0.1], [1 / 3, 1 / 3, 1 / 3], [0.0, 0.0, 1.0]])


def test_identities_give_predictions_back():
    one = float(np.log(np.expm1(1.0 - 1e-4)))
    layer = Layer(np.zeros((2, 3)), np.full(2, one))
    ramp = np.array([-50.0, 50.0])
    for map_ in (
        TemperatureMap(1.0, 3),
        SoftmaxMap(np.ones(3), np.zeros(3)),
        SoftmaxMap(np.eye(3), np.zeros(3), "log-prob"),
        OrderPreservingMap((layer,), invariant=True, size=1.0),
        DiagonalMap(ramp, ramp, 3),
    ):
        assert_allclose(map_(PROB), PROB, atol=1e-12)
        assert_allclose(MulticlassMeanMap((map_, map_))(PROB), PROB, atol=1e-12)


def test_gaps_are_multiplied_by_the_network():
    layers = (
        Layer(np.array([[1.0, 0.0, 0.0]]), np.zeros(1)),
        Layer(np.array([[1.0], [0.0]]), np.zeros(2)),
    )
    map_ = OrderPreservingMap(layers, invariant=True, size=2.0, scale="logit")
    logits = np.array([[0.0, 3.0, 1.0]])  # sorted and centred: 5/3, -1/3, -4/3
    first = (np.log1p(np.exp(5 / 6)) + 1e-4) * 2.0
    second = np.log(2.0) + 1e-4
    raised = np.exp([0.0, first + second, second])
    assert_allclose(map_(logits)[0], raised / raised.sum())


LAYER = {"weights": [[1.0, 0.0]], "biases": [0.0]}
ORDER = {
    "kind": "order-preserving",
    "scale": "prob",
    "invariant": True,
    "size": 1.0,
    "inverse": 1.0,
    "layers": [LAYER],
}
TEMPERATURE = {"kind": "temperature", "scale": "prob", "inverse": 1.0, "classes": 2}
SOFTMAX = {
    "kind": "softmax",
    "scale": "prob",
    "inputs": "centred",
    "weights": [1.0, 1.0],
    "intercepts": [0.0, 0.0],
}
BINNED = {"kind": "binned", "edges": [0, 1], "intercepts": [0.1], "slopes": [1]}
TOP = {"kind": "top-label", "scale": "prob", "classes": 2, "map": BINNED}
REST = {"kind": "one-vs-rest", "scale": "prob", "maps": [BINNED, BINNED]}
DIAGONAL = {
    "kind": "diagonal",
    "scale": "prob",
    "classes": 2,
    "knots": [0, 1],
    "heights": [0, 1],
}
MEAN = {"kind": "multi-class-mean", "maps": [TEMPERATURE, SOFTMAX]}


@pytest.mark.parametrize(
    "stored", [ORDER, TEMPERATURE, SOFTMAX, TOP, REST, DIAGONAL, MEAN]
)
def test_whole_maps_are_read(stored):
    assert cb.map_from_dict(stored)([[0.5, 0.5]]).shape == (1, 2)


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (TEMPERATURE | {"inverse": 0.0}, "above 0"),
        (TEMPERATURE | {"inverse": None}, "must be a number"),
        (TEMPERATURE | {"classes": 1}, "whole number from 2"),
        (TEMPERATURE | {"classes": 10**9}, "whole number from 2"),
        (TEMPERATURE | {"scale": "log"}, "unknown scale"),
        (SOFTMAX | {"inputs": "raw"}, "unknown inputs"),
        (SOFTMAX | {"intercepts": [0.0]}, "at least two"),
        (SOFTMAX | {"weights": [1.0]}, "must contain 2 numbers"),
        (SOFTMAX | {"weights": [[1.0, 0.0]]}, "2 rows of 2"),
        (SOFTMAX | {"weights": [[1.0, 0.0], 3]}, "list of numbers"),
        (SOFTMAX | {"weights": [float("nan"), 1.0]}, "finite"),
        (TOP | {"map": TEMPERATURE}, "maps of one event"),
        (TOP | {"map": 3}, "JSON object"),
        (REST | {"maps": [BINNED]}, "two or more maps"),
        (REST | {"maps": [BINNED, REST]}, "maps of one event"),
        (REST | {"maps": [BINNED, SOFTMAX]}, "maps of one event"),
        (MEAN | {"maps": []}, "list of maps"),
        (MEAN | {"maps": [BINNED]}, "same classes"),
        (MEAN | {"maps": [TEMPERATURE, TEMPERATURE | {"classes": 3}]}, "same classes"),
        (ORDER | {"invariant": 1}, "true or false"),
        (ORDER | {"layers": []}, "list of layers"),
        (ORDER | {"layers": [3]}, "list of layers"),
        (ORDER | {"layers": [LAYER | {"biases": [0.0, 0.0]}]}, "one row per bias"),
        (ORDER | {"layers": [LAYER, LAYER]}, "fit each other"),
        (ORDER | {"size": 0.0}, "above 0"),
        (DIAGONAL | {"knots": [1, 0]}, "must increase"),
        (DIAGONAL | {"heights": [1, 0]}, "must increase"),
    ],
)
def test_damaged_maps_are_refused(stored, words):
    with pytest.raises(MapFormatError, match=words):
        cb.map_from_dict(stored)


def test_maps_nested_without_end_are_refused():
    nested = MEAN
    for _ in range(1000):
        nested = MEAN | {"maps": [nested]}
    with pytest.raises(MapFormatError, match="nested too deeply"):
        cb.map_from_dict(nested)
