"""Maps as text: length, quoting, accuracy and what is refused."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

import calibrant as cb
from calibrant.exceptions import OptionError
from calibrant.maps.dialects import DIALECTS
from calibrant.maps.multiclass import MulticlassMeanMap, PooledMap, TopLabelMap
from calibrant.maps.parametric import BetaMap
from calibrant.maps.smooth import SmoothMap
from calibrant.maps.softmax import DiagonalMap, TemperatureMap
from calibrant.numerics.short_formulas import grid

BETA = BetaMap(1.3, 0.6, 0.2)
P = grid(np.array([]))[::7]


def run(source):
    """Return the function of a source text."""
    namespace = {}
    exec(source, namespace)  # noqa: S102
    return namespace["calibrate"]


@pytest.fixture(scope="module")
def smooth_map():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 0.5, 5000)
    y = (rng.random(5000) < p**1.5).astype(float)
    return cb.make_calibrator("smooth").fit(p, y).map_


@pytest.mark.parametrize("dialect", DIALECTS)
def test_smooth_maps_are_short(smooth_map, dialect):
    assert len(smooth_map.to_sql("p", dialect)) < 6000
    assert len(smooth_map.to_sql("p", "duckdb", accuracy=0.0)) > 10_000


@pytest.mark.parametrize("accuracy", [1e-3, 1e-6, 1e-9])
def test_tables_are_as_accurate_as_they_say(smooth_map, accuracy):
    calibrate = run(smooth_map.to_python(accuracy=accuracy))
    found = [calibrate(p) for p in P.tolist()]
    assert_allclose(found, smooth_map.transform(P), rtol=0, atol=accuracy)


def test_tables_give_0_and_1_only_where_the_map_does():
    map_ = SmoothMap(np.linspace(-20, 20, 50), np.sin(np.linspace(-20, 20, 50)))
    calibrate = run(map_.to_python())
    found = np.array([calibrate(p) for p in P.tolist()])
    assert "within 1e-06" in map_.to_python()
    assert found.min() >= map_.transform(P).min() > 0.0
    assert found.max() <= map_.transform(P).max() < 1.0


@pytest.mark.parametrize("map_", [BETA, BetaMap(-40.0, 90.0, 900.0)])
def test_formulas_in_python_are_exact(map_):
    calibrate = run(map_.to_python())
    found = [calibrate(p) for p in P.tolist()]
    assert_allclose(found, map_.transform(P), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("p", [None, float("nan"), -0.1, 1.1])
def test_what_is_no_probability_is_none(p):
    assert run(BETA.to_python())(p) is None


@pytest.mark.parametrize(
    ("dialect", "quoted"),
    [
        ("ansi", '"a""b`c\\"'),
        ("bigquery", '`a"b\\`c\\\\`'),
        ("mysql", '`a"b``c\\`'),
        ("spark", '`a"b``c\\`'),
        ("sqlite", '`a"b``c\\`'),
        ("snowflake", '"a""b`c\\"'),
    ],
)
def test_names_are_quoted_as_the_dialect_does(dialect, quoted):
    assert BETA.to_sql('a"b`c\\', dialect).startswith(f"CASE WHEN {quoted} BETWEEN")


def test_unknown_dialects_are_refused_with_the_nearest():
    with pytest.raises(OptionError, match="did you mean 'postgres'"):
        BETA.to_sql("p", "postgresql")


@pytest.mark.parametrize("accuracy", [-1.0, 1e-12, 0.5, float("nan")])
def test_accuracies_that_make_no_sense_are_refused(accuracy):
    with pytest.raises(OptionError, match="accuracy must be"):
        BETA.to_sql("p", accuracy=accuracy)


def test_sqlite_gets_the_best_table_instead_of_a_formula():
    assert "/* within 1e-10 */" in BETA.to_sql("p", "sqlite", accuracy=0.0)


class Step(BetaMap):
    """A jump, by as much as the intercept, that the map does not tell of."""

    def values(self, p):
        return np.where(p < 0.43216, 0.2, 0.2 + self.intercept)


def test_jumps_are_found():
    expression = Step(1.0, 1.0, 0.5).to_sql("p", "sqlite")
    assert "WHEN CAST(`p` AS REAL)<0.43216 THEN" in expression
    assert len(expression) < 300


def test_a_table_that_is_off_says_by_how_much():
    expression = Step(1.0, 1.0, 3e-6).to_sql("p", "sqlite", accuracy=1e-9)
    assert re.search(r"/\* within \d(\.\d)?e-0[67] \*/", expression)


CLASS_METHODS = [
    "temperature",
    "one-temp",
    "vector",
    "matrix-odir",
    "dirichlet-l2",
    "sms",
    "smooth",
    "svs",
    "ovr-beta",
    "ovr-isotonic",
    "top-platt",
]


def class_data(scale):
    """Four classes whose logits are twice too large, on a scale."""
    rng = np.random.default_rng(3)
    logits = 2.0 * rng.standard_normal((400, 4))
    column = (0.5 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    prob = softmax(logits, axis=1)
    scores = {"logit": logits, "prob": prob, "percent": 100 * prob}
    return scores.get(scale, np.log(prob)), column


@pytest.mark.parametrize("scale", ["prob", "logit", "percent", "logprob"])
@pytest.mark.parametrize("method", CLASS_METHODS)
def test_classes_in_python(method, scale):
    x, column = class_data(scale)
    map_ = cb.make_calibrator(method, scale=scale).fit(x, column).map_
    calibrate = run(map_.to_python())
    found = [calibrate(row) for row in x[:50].tolist()]
    assert_allclose(found, map_.transform(x[:50]), atol=1e-9)
    assert calibrate([None, *x[0, 1:].tolist()]) is None


def test_means_and_certain_rows_in_python():
    x = np.array([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    top = TopLabelMap(BetaMap(0.5, 0.5, 0.0), 3)
    parts = (top, TemperatureMap(0.5, 3))
    weights = np.array([0.3, 0.5])
    for map_ in (
        MulticlassMeanMap(parts),
        PooledMap(parts, weights, 3),
        PooledMap(parts, weights, 3, floor=0.01),
        PooledMap((), np.array([]), 3, floor=0.01),
    ):
        calibrate = run(map_.to_python())
        assert_allclose([calibrate(row) for row in x.tolist()], map_(x), atol=1e-9)


def test_networks_are_not_written_as_python():
    map_ = DiagonalMap(np.array([0.0, 1.0]), np.array([0.0, 2.0]), 3)
    with pytest.raises(OptionError, match=r"kind 'diagonal' cannot .* save_map"):
        map_.to_python()
