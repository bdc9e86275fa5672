"""Defects that were found once and must not come back."""

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline

import calibrant as cb
from calibrant import exceptions as ex


def test_a_perfect_split_in_cross_validation_keeps_its_bins():
    y = np.repeat([0, 1], 200)
    p = np.where(y, 0.7, 0.3)
    assert cb.calibration_error(y, p, method="es-cv") == pytest.approx(0.3)


@pytest.mark.parametrize("weight", [0.1, 0.7, 1 / 151])
def test_constant_small_weights_are_no_weights(weight):
    rng = np.random.default_rng(3)
    p = rng.random(151)
    y = rng.random(151) < p
    for method in ("es15", "es-sweep", "es-cv"):
        found = cb.calibration_error(
            y, p, method=method, sample_weight=np.full(151, weight)
        )
        assert found == cb.calibration_error(y, p, method=method)


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.SmallSampleWarning")
def test_as_many_bins_as_rows_of_small_weight_are_allowed():
    p = np.linspace(0.1, 0.9, 15)
    weight = np.full(15, 0.1)
    assert cb.calibration_error(p > 0.5, p, method="es15", sample_weight=weight) > 0


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.FractionalWeightsWarning")
@pytest.mark.parametrize("weight", [1.0, 1.1, 1.3, 1.5])
def test_fractional_weights_do_not_stop_the_sweep(weight):
    p = np.linspace(0, 1, 500)
    found = cb.calibration_error(
        p > 0.5, p, method="es-sweep", sample_weight=np.full(500, weight)
    )
    assert found == pytest.approx(0.2495, abs=1e-3)


def test_scores_survive_weights_of_any_ratio():
    p, weight = np.linspace(0, 1, 40), np.ones(40)
    weight[0] = 1e15
    split = cb.decompose_score(p > 0.5, p, sample_weight=weight)
    assert split.calibration >= 0


def test_uneven_importance_weights_do_not_shrink_intervals_to_nothing():
    """Nominal 95 %; plain counts of scaled weights held 0 in a fifth of the runs."""
    hits = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = rng.random(1000)
        y = rng.random(1000) < p
        weight = np.exp(rng.normal(size=1000))
        found = cb.evaluate(
            y, p, methods="es15", sample_weight=weight / weight.sum(), n_resamples=100
        )
        hits += found.frame()["low"][0] == 0.0
    assert hits >= 35


def test_masked_columns_of_a_table_are_missing():
    p = np.ma.masked_greater(np.linspace(0, 1, 50), 0.9)
    with pytest.raises(ex.MissingValueError, match="column 'p'"):
        cb.evaluate(
            cb.Predictions.from_table({"y": np.zeros(50), "p": p}, y="y", p="p")
        )


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.MissingGroupWarning")
def test_missing_group_values_are_one_group():
    rng = np.random.default_rng(0)
    group = np.where(np.arange(200) % 2, np.nan, 1.0)
    table = {"y": rng.integers(0, 2, 200), "p": rng.random(200), "g": group}
    found = cb.evaluate(
        cb.Predictions.from_table(table, y="y", p="p", by="g"), methods="es5"
    ).frame()
    assert found["g"].tolist() == [None, 1.0]
    assert found["n"].tolist() == [100, 100]


@pytest.mark.parametrize("name", ["method", "model", "n", "value"])
def test_group_columns_must_not_hide_results(name):
    table = {"y": np.zeros(50), "p": np.full(50, 0.5), name: np.full(50, 7)}
    found = cb.evaluate(
        cb.Predictions.from_table(table, y="y", p="p", by=name), methods="es5"
    ).frame()
    assert found[f"by_{name}"].tolist() == [7]
    assert found["method"].tolist() == ["es5"]
    assert found["n"].tolist() == [50]
    assert found["value"].tolist() == [0.5]


def test_list_columns_are_no_groups():
    frame = {"y": np.zeros(40), "p": np.full(40, 0.5), "g": [[1]] * 40}
    with pytest.raises(ex.OptionError, match="simple values"):
        cb.evaluate(
            cb.Predictions.from_table(pd.DataFrame(frame), y="y", p="p", by="g")
        )


@pytest.mark.parametrize("size", [10, 3000])
@pytest.mark.parametrize("bad", [-0.01, 1.5, np.nan])
@pytest.mark.parametrize("method", ["es15", "pl", "pl3"])
def test_maps_refuse_what_is_no_probability(sample, method, size, bad):
    map_ = cb.make_calibrator(method).fit(*sample).map_
    with pytest.raises(ex.InputError, match="p must"):
        map_(np.full(size, bad))


def test_maps_keep_the_shape_of_what_they_get(sample):
    map_ = cb.make_calibrator("es5").fit(*sample).map_
    assert map_(0.5).shape == ()
    assert map_(np.full((3, 2), 0.5)).shape == (3, 2)
    assert map_(np.empty(0)).shape == (0,)


@pytest.mark.parametrize("kind", [Decimal, Fraction, np.int64, np.bool_])
def test_zero_and_one_of_any_kind_are_labels(kind):
    y = np.array([kind(0), kind(1)] * 20, dtype=object)
    expected = cb.calibration_error([0, 1] * 20, [0.2, 0.7] * 20, method="es2")
    assert cb.calibration_error(y, [0.2, 0.7] * 20, method="es2") == expected


def test_pandas_na_is_a_missing_label():
    y = pd.Series([True, pd.NA] * 20, dtype="boolean")
    with pytest.raises(ex.MissingValueError, match="row 1"):
        cb.calibration_error(y, [0.5] * 40)


@pytest.mark.parametrize("p", [["0.5"] * 40, [0.5 + 0j] * 40, [b"1"] * 40])
def test_text_and_complex_numbers_are_no_probabilities(p):
    with pytest.raises(ex.InputError, match="must contain numbers"):
        cb.calibration_error([0, 1] * 20, np.array(p))


def test_labels_of_one_class_and_another_type_are_significantly_different():
    with pytest.raises(ex.LabelError, match="exactly as it appears"):
        cb.calibration_error([1] * 40, [0.5] * 40, pos_label="1")


def test_a_set_of_labels_has_no_order():
    with pytest.raises(ex.LabelError, match="a set has no order"):
        cb.calibration_error(
            [0, 1] * 20, [[0.5, 0.5]] * 40, task="confidence", labels={0, 1}
        )


@pytest.mark.parametrize("method", [["es15"], None, 15, "es" + "9" * 5000])
def test_a_method_is_a_name(method):
    with pytest.raises(ex.UnknownNameError, match="unknown method"):
        cb.calibration_error([0, 1] * 20, [0.5] * 40, method=method)


def test_huge_numbers_in_a_map_are_refused(tmp_path):
    path = tmp_path / "map.json"
    for digits in (400, 5000):
        edges = f"[0, {'9' * digits}, 1]"
        text = f'{{"kind": "binned", "edges": {edges}, "intercepts": [], "slopes": []}}'
        path.write_text(f'{{"format": "calibrant-map", "version": 1, "map": {text}}}')
        with pytest.raises(ex.MapFormatError):
            cb.load_map(path)


def test_a_failed_change_of_parameters_changes_nothing():
    calibrator = cb.make_calibrator("es-cv", max_bins=20)
    with pytest.raises(ex.OptionError):
        calibrator.set_params(max_bins=3, smoothing=True)
    assert calibrator.get_params()["max_bins"] == 20


def test_methods_can_be_searched(sample):
    methods = ["es15", "es-cv", "isotonic"]

    def score(calibrator, p, y):
        return -np.mean((calibrator.transform(p) - y) ** 2)

    search = GridSearchCV(
        Pipeline([("calibrator", cb.make_calibrator("platt"))]),
        {"calibrator": [cb.make_calibrator(m) for m in methods]},
        scoring=score,
    ).fit(*sample)
    each = [
        cross_val_score(cb.make_calibrator(m), *sample, scoring=score).mean()
        for m in methods
    ]
    assert_allclose(search.cv_results_["mean_test_score"], each)
    assert len(set(each)) == 3


def test_an_array_named_npz_is_no_archive(tmp_path):
    with (tmp_path / "t.npz").open("wb") as file:
        np.save(file, np.zeros(5))
    with pytest.raises(ex.SourceError, match="single array"):
        cb.evaluate(cb.Predictions.from_table(tmp_path / "t.npz", y="y", p="p"))


def test_duplicate_columns_are_refused():
    frame = pd.DataFrame(np.zeros((40, 2)), columns=["y", "y"])
    with pytest.raises(ex.SourceError, match="same name"):
        cb.evaluate(cb.Predictions.from_table(frame, y="y", p="y"))


def test_columns_of_a_table_are_equally_long():
    table = {"y": np.zeros(40), "a": np.zeros(40), "b": np.zeros(3)}
    with pytest.raises(ex.LengthMismatchError, match="'b' has 3"):
        cb.evaluate(
            cb.Predictions.from_table(table, y="y", p=["a", "b"], task="confidence")
        )


def test_many_groups_are_read_once():
    rng = np.random.default_rng(0)
    table = {
        "y": rng.integers(0, 2, 60_000),
        "p": rng.random(60_000),
        "g": np.arange(60_000) % 2000,
    }
    found = cb.evaluate(
        cb.Predictions.from_table(table, y="y", p="p", by="g"),
        methods="ew1",
        confidence=None,
    )
    assert len(found.frame()["n"]) == 2000


def test_results_with_dates_are_json(capsys):
    from calibrant.cli.results import print_frame

    days = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")
    print_frame({"day": days, "value": np.array([0.5, np.nan])}, "json")
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows[0]["day"] == "2026-01-01"
    assert rows[1]["value"] is None


def test_estimators_know_their_classes(sample):
    from sklearn.dummy import DummyClassifier

    p, y = sample
    model = DummyClassifier(strategy="prior").fit(p[:, np.newaxis], y)
    with pytest.raises(ex.OptionError, match="unknown pos_label 7"):
        cb.ReliabilityDisplay.from_estimator(model, p[:, np.newaxis], y, pos_label=7)


def test_two_may_save_at_once(sample, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    map_ = cb.make_calibrator("es5").fit(*sample).map_
    path = tmp_path / "map.json"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: cb.save_map(map_, path), range(64)))
    assert cb.load_map(path) == map_
    assert_allclose(len(list(tmp_path.iterdir())), 1)
