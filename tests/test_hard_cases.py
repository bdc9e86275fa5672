"""Data and files that once broke something, each with what must come out."""

import json

import duckdb
import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, softmax
from sklearn.svm import SVC

import calibrant as cb
from calibrant.exceptions import (
    FewerPiecesWarning,
    FractionalWeightsWarning,
    MapFormatError,
    OptionError,
)


def log_loss(c, y):
    c = np.clip(c, 1e-16, 1 - 1e-16)
    return -(y * np.log(c) + (1 - y) * np.log1p(-c)).mean()


FAR_OFF = {
    "surely wrong": (expit(np.linspace(4, 8, 1000)), np.arange(1000) % 125 == 60),
    "surely wrong below": (
        expit(np.linspace(-4, -2.2, 1000)),
        np.arange(1000) % 14 > 0,
    ),
    "constant": (np.full(1000, 0.999), np.arange(1000) < 10),
    "one event": (np.linspace(0.4, 0.8, 1000), np.arange(1000) == 500),
}


@pytest.mark.parametrize("data", FAR_OFF)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("method", ["pl", "pl3", "pl-mse", "pl3-mse"])
def test_predictions_far_from_the_base_rate_do_not_trap_the_fit(method, monotone, data):
    p, y = FAR_OFF[data]
    fitted = cb.make_calibrator(method, monotone=monotone).fit(p, y).transform(p)
    platt = cb.make_calibrator("platt").fit(p, y).transform(p)
    assert log_loss(fitted, y) < 1.05 * log_loss(platt, y) + 1e-3


@pytest.mark.parametrize("method", ["pl-de", "pl-de2", "pl", "spline-natural", "kde"])
@pytest.mark.parametrize(
    "p",
    [
        [1 - 3e-16, 1 - 1.2e-16, 1.0],
        [0.0, 5e-324, 1e-180],
        [0.3, 0.3 + 1e-16, 0.9],
    ],
)
def test_predictions_that_differ_by_rounding_are_one(method, p):
    fitted = cb.make_calibrator(method).fit(np.tile(p, 20), np.tile([0, 1, 1], 20))
    calibrated = fitted.transform([0.0, 0.5, 1.0, *p])
    assert ((calibrated >= 0) & (calibrated <= 1)).all()
    assert cb.map_from_dict(json.loads(json.dumps(fitted.map_.to_dict())))


def test_rows_next_to_a_neighbour_are_not_lost():
    p = np.array([0.1] * 20 + [np.nextafter(1, 0)] + [1.0] * 100)
    y = np.array([0] * 21 + [1] * 100)
    fitted = cb.make_calibrator("spline-natural").fit(p, y)
    assert_allclose(fitted.transform([1.0]), 100 / 101)


@pytest.mark.parametrize("method", ["pl", "pl-de", "spline-natural"])
def test_one_row_that_outweighs_all_others(method):
    weight = np.array([1e15] + [1.0] * 39)
    fitted = cb.make_calibrator(method).fit(np.full(40, 0.3), [0, 1] * 20, weight)
    assert np.isfinite(fitted.transform([0.3])).all()


def test_more_pieces_than_can_be_kept_apart():
    p = np.linspace(0, 1, 1024)
    with pytest.warns(FewerPiecesWarning):
        fitted = cb.make_calibrator("pl", pieces=1010, folds=2).fit(p, p > 0.5)
    assert fitted.fit_.n_pieces == 500


def test_top_label_with_nothing_left_for_others():
    prob = np.array([[1.0, 5e-324, 0.0], [0.6, 0.3, 0.1]] * 20)
    fitted = cb.make_calibrator("top-platt").fit(prob, [0, 1] * 20)
    assert_allclose(fitted.transform(prob).sum(axis=1), 1.0)


def test_order_of_tied_rows_does_not_matter():
    rng = np.random.default_rng(0)
    prob = softmax(rng.normal(0, 2, (400, 4)), axis=1)
    y = np.array([rng.choice(4, p=row) for row in prob])
    tied = prob.round(1) / prob.round(1).sum(axis=1, keepdims=True)
    mixed = rng.permutation(400)
    one = cb.make_calibrator("matrix-odir").fit(tied, y)
    other = cb.make_calibrator("matrix-odir").fit(tied[mixed], y[mixed])
    assert_allclose(one.transform(tied), other.transform(tied), atol=1e-6)


@pytest.mark.parametrize("n", [4, 9])
@pytest.mark.filterwarnings("ignore::calibrant.exceptions.SmallSampleWarning")
def test_hosmer_lemeshow_of_a_few_rows(n):
    p = np.linspace(0.2, 0.8, n)
    found = cb.calibration_test(np.arange(n) % 2, p, method="hosmer-lemeshow")
    assert 0 <= found.pvalue <= 1


def test_classifiers_without_a_column_a_class_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.arange(90) % 4
    svc = SVC(decision_function_shape="ovo").fit(X, y)
    with pytest.raises(OptionError, match="one column for each of its 4 classes"):
        cb.CalibratedClassifier(svc, "temperature").fit(X, y)


def test_a_calibrator_of_one_event_cannot_serve_several_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.arange(90) % 3
    svc = SVC().fit(X, y)
    calibrator = cb.make_calibrator("platt").fit(rng.random(90), y == 0)
    with pytest.raises(OptionError, match="fitted to one event"):
        cb.CalibratedClassifier(svc, calibrator).predict_proba(X)


@pytest.mark.parametrize(
    "stored",
    [
        {"scale": "prob", "knots": [0, 5e-324, 1], "heights": [0, 1, 1]},
        {"scale": "prob", "knots": [0, 1], "heights": [1e308, -1e308]},
    ],
)
def test_maps_that_cannot_be_computed_are_refused(stored):
    with pytest.raises(MapFormatError, match="finite"):
        cb.map_from_dict({"kind": "piecewise-linear"} | stored)


def test_kinds_of_stored_maps_must_be_names():
    broken = {"kind": "mean", "weights": [1], "maps": [{"kind": {}}]}
    with pytest.raises(MapFormatError, match="unknown kind of map"):
        cb.map_from_dict(broken)


def test_weights_that_are_no_counts_are_told():
    p, y = np.linspace(0, 1, 100), np.arange(100) % 2
    with pytest.warns(FractionalWeightsWarning, match=r"averages 1.5 .* 150 rows"):
        cb.calibration_error(y, p, method="es15", sample_weight=np.full(100, 1.5))


def test_files_with_two_columns_of_a_name_are_refused(run, tmp_path):
    source = tmp_path / "twice.csv"
    source.write_text("p,p,y\n" + "0.5,0.5,1\n0.4,0.4,0\n" * 30, encoding="utf-8")
    fit = ("--y", "y", "--p", "p", "--out", tmp_path / "map.json")
    code, _, err = run("calibrate", source, *fit)
    assert code == 2
    assert "two columns 'p'" in err


def test_types_that_a_format_cannot_hold_are_told(run, tmp_path):
    source, saved = tmp_path / "nested.parquet", tmp_path / "map.json"
    pl.DataFrame({"p": [0.2, 0.8], "tags": [["a"], ["b"]]}).write_parquet(source)
    cb.save_map(cb.BinnedMap(np.array([0.0, 1]), np.array([0.1]), np.ones(1)), saved)
    out = tmp_path / "out.csv"
    code, _, err = run("apply", saved, source, "--p", "p", "--out", out)
    assert code == 2
    assert "cannot be written as csv" in err
    assert not list(tmp_path.glob("*out*"))


def test_sql_of_single_precision_columns(smooth_sample):
    p, y = smooth_sample
    map_ = cb.make_calibrator("isotonic").fit(p, y).map_
    sql = map_.to_sql("p")
    query = f"SELECT {sql} FROM (SELECT 0.25::FLOAT AS p)"  # noqa: S608
    assert_allclose(
        duckdb.sql(query).fetchall()[0][0], map_(np.array([0.25])), atol=1e-7
    )


def test_text_among_numbers_is_named(run, tmp_path):
    source = tmp_path / "text.csv"
    for text, words in (
        ("n/a", "column 'p' must contain numbers, but is text; row 1 is 'n/a'"),
        ("nan", "column 'p' must not contain missing or infinite values; row 1 is nan"),
    ):
        source.write_text(f"p,y\n0.5,1\n{text},0\n", encoding="utf-8")
        code, _, err = run("evaluate", source, "--y", "y", "--p", "p")
        assert code == 2
        assert words in err


DEGENERATE = {
    "constant": ([0.4] * 50, np.arange(50) % 4 == 0),
    "two values": ([0.3, 0.7] * 25, np.arange(50) % 3 == 0),
    "one row": ([0.3], [1]),
    "two rows": ([0.3, 0.6], [1, 0]),
}


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.SmallSampleWarning")
@pytest.mark.parametrize("data", DEGENERATE)
@pytest.mark.parametrize("method", cb.calibrator_names("binary"))
def test_every_method_gives_numbers_on_degenerate_data(method, data):
    p, y = map(np.array, DEGENERATE[data])
    name = method.replace("15", str(min(15, p.size)))  # not more bins than rows
    row = cb.evaluate(y, p, methods=(name,), n_resamples=20).frame()
    value, low, high = (row[column][0] for column in ("value", "low", "high"))
    assert 0.0 <= low <= value <= high <= 1.0
    assert 0.0 <= value <= 1.0


@pytest.mark.parametrize(
    "p", [0.3 + np.arange(100) * np.spacing(0.3), 1 - np.arange(100) * 1.2e-16]
)
@pytest.mark.parametrize("method", ["pl-de", "pl-de2"])
def test_predictions_that_differ_by_rounding_have_one_rate(p, method):
    y = np.arange(100) % 3 == 0
    found = cb.calibration_error(y, p, method=method)
    assert found == pytest.approx(np.abs(y.mean() - p.mean()), abs=1e-6)
