import json

import duckdb
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import MapFormatError
from calibrant.maps.piecewise import MeanMap, PiecewiseLinearMap, mean_map

P = np.concatenate([[0.0, 1.0, 1e-300, 1 - 1e-16], np.linspace(0, 1, 101)])


@pytest.mark.parametrize("method", ["pl", "pl-mse", "pl3", "pl3-mse"])
def test_json_round_trip_is_exact(smooth_sample, method):
    map_ = cb.make_calibrator(method).fit(*smooth_sample).map_
    again = cb.map_from_dict(json.loads(json.dumps(map_.to_dict())))
    assert again == map_
    assert hash(again) == hash(map_)
    assert np.array_equal(again(P), map_(P))


@pytest.mark.parametrize("method", ["pl", "pl3"])
@pytest.mark.parametrize("ensemble", ["folds", "refit"])
def test_sql_gives_what_the_map_gives(smooth_sample, method, ensemble):
    fitted = cb.make_calibrator(method, pieces=3, ensemble=ensemble).fit(*smooth_sample)
    frame = pd.DataFrame({"p": P})
    query = f"SELECT {fitted.map_.to_sql('p', accuracy=0.0)} AS c FROM frame"  # noqa: S608
    found = duckdb.sql(query).fetchnumpy()["c"]
    assert len(frame) == len(found)
    assert_allclose(np.asarray(found, dtype=float), fitted.transform(P), atol=1e-9)


def test_mean_in_probability_scale_is_one_map():
    rng = np.random.default_rng(0)
    maps = [
        PiecewiseLinearMap(
            np.array([0, *np.sort(rng.random(2)), 1]), np.sort(rng.random(4))
        )
        for _ in range(5)
    ]
    mean = mean_map(maps)
    assert isinstance(mean, PiecewiseLinearMap)
    assert_allclose(mean(P), np.mean([map_(P) for map_ in maps], axis=0), atol=1e-12)


def test_mean_of_logit_maps_is_the_mean_of_their_values():
    maps = [
        PiecewiseLinearMap(np.array([-2.0, 2.0]), np.array([a, 1.0]), "logit")
        for a in (-1, 0)
    ]
    mean = mean_map(maps)
    assert isinstance(mean, MeanMap)
    assert_allclose(mean(P), (maps[0](P) + maps[1](P)) / 2)
    assert mean != maps[0]
    assert maps[0] != mean


def test_lines_go_on_beyond_the_outer_knots():
    map_ = PiecewiseLinearMap(np.array([-1.0, 1.0]), np.array([-2.0, 2.0]), "logit")
    assert_allclose(map_(np.array([1 / (1 + np.exp(-3.0))])), [1 / (1 + np.exp(-6.0))])


GOOD = {"kind": "piecewise-linear", "scale": "prob", "knots": [0, 1], "heights": [0, 1]}
MEAN = {"kind": "mean", "maps": [GOOD], "weights": [1]}
BINNED = {"kind": "binned", "edges": [0, 1], "intercepts": [0.1], "slopes": [1]}
PARABOLA = {"kind": "parabolas", "knots": [0, 1], "heights": [0, 1], "middles": [0.5]}


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (GOOD | {"scale": "log"}, "unknown scale"),
        (GOOD | {"knots": [0], "heights": [1]}, "at least two"),
        (GOOD | {"knots": [1, 0]}, "ascend"),
        (GOOD | {"heights": [1]}, "must contain 2 numbers"),
        ({"kind": "mean", "maps": [], "weights": []}, "list of maps"),
        ({"kind": "mean", "maps": [GOOD]}, "list of numbers"),
        ({"kind": "mean", "maps": [GOOD], "weights": [0.5]}, "sum to 1"),
        ({"kind": "mean", "maps": [1], "weights": [1]}, "JSON object"),
        ({"kind": "mean", "maps": [MEAN], "weights": [1]}, "of kind piecewise-linear"),
        (
            {"kind": "mean", "maps": [BINNED], "weights": [1]},
            "of kind piecewise-linear",
        ),
        (PARABOLA | {"middles": []}, "must contain 1 numbers"),
    ],
)
def test_damaged_maps_are_refused(stored, words):
    with pytest.raises(MapFormatError, match=words):
        cb.map_from_dict(stored)
