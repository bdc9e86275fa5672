"""Errors are data, put into words by each interface."""

import pickle

import numpy as np
import pytest

import calibrant as cb
from calibrant.cli.app import write_option
from calibrant.exceptions import (
    Argument,
    InputError,
    MissingValueError,
    ProbabilityRangeError,
    RowSumError,
    Setting,
)


def test_an_error_knows_argument_rule_place_value_and_remedy():
    with pytest.raises(ProbabilityRangeError) as raised:
        cb.calibration_error([0, 1] * 20, [0.5] * 38 + [0.4, 1.7])
    error = raised.value
    assert error.argument == "y_prob"
    assert error.rule == "must contain probabilities in [0, 1]"
    assert (error.place, error.value) == ((39,), 1.7)
    assert Setting("scale", "logit") in error.remedy


def test_the_place_in_a_matrix_has_a_row_and_a_column():
    matrix = [[0.2, 0.8], [float("nan"), 0.5]] * 20
    with pytest.raises(MissingValueError) as raised:
        cb.calibration_error([0, 1] * 20, matrix, task="confidence")
    assert raised.value.place == (1, 0)


def test_rows_of_files_break_the_same_rules(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("y,a,b\n" + "0,0.5,0.5\n1,0.5,0.9\n" * 20)
    preds = {"y": "y", "p": {"m": ["a", "b"]}, "task": "confidence"}
    rules = set()
    for engine in ("memory", "duckdb"):
        with pytest.raises(RowSumError) as raised:
            cb.evaluate(cb.Predictions.from_table(path, engine=engine, **preds))
        rules.add(raised.value.rule)
        assert Setting("bad_rows", "drop") in raised.value.remedy
    assert rules == {"must sum to 1 (within 0.001)"}


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_missing_predictions_are_to_be_dropped_or_repaired(engine, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("y,p\n" + "0,0.4\n1,\n" * 20)
    with pytest.raises(MissingValueError) as raised:
        cb.evaluate(cb.Predictions.from_table(path, y="y", p="p", engine=engine))
    assert str(raised.value).endswith(
        'Repair these rows, or drop them: bad_rows="drop".'
    )
    with pytest.raises(MissingValueError, match=r"Drop or repair these rows first\.$"):
        cb.evaluate([0, 1] * 20, [0.4, float("nan")] * 20)


def test_settings_are_written_as_each_interface_writes_them():
    remedy = ("Pass ", Setting("scale", "percent"), ".")
    error = InputError.of("p", "must be small", "row 0 is 7", remedy)
    assert str(error) == 'p must be small; row 0 is 7. Pass scale="percent".'
    option = error.text(lambda setting: f"--{setting.name} {setting.value}")
    assert option == "p must be small; row 0 is 7. Pass --scale percent."


def test_errors_keep_their_data_when_they_travel_between_processes():
    error = MissingValueError.of("p", "must be", "is not", ("Drop.",), place=(3,))
    there = pickle.loads(pickle.dumps(error.suggest_dropping()))  # noqa: S301
    assert (there.place, there.argument) == ((3,), "p")
    assert (
        str(there)
        == 'p must be; is not. Drop. To drop such rows, pass bad_rows="drop".'
    )


@pytest.mark.parametrize(
    ("y", "p", "weight", "argument", "place"),
    [
        ([0, 1] * 20, [0.5] * 38, None, "y_true and y_prob", (38,)),
        ([0, 1] * 20, [0.5] * 40, [0] * 40, "sample_weight", (0,)),
        ([], [], None, "y_prob", None),
        ([0, 1] * 20, [[0.2, 0.3, 0.5]] * 40, None, "y_prob", None),
        ([0, 1] * 20, [[[0.5]] * 2] * 40, None, "y_prob", None),
    ],
)
def test_errors_about_whole_arrays_are_data_too(y, p, weight, argument, place):
    with pytest.raises(InputError) as raised:
        cb.evaluate(y, p, sample_weight=weight)
    error = raised.value
    assert (error.argument, error.place) == (argument, place)
    assert str(error).startswith(f"{argument} {error.rule}; {error.fault}.")


def test_parameters_are_named_as_each_interface_names_them():
    error = InputError.of(Argument("random_state"), "must be small", "it is 7")
    assert (error.argument, str(error)[:13]) == ("random_state", "random_state ")
    assert error.text(write_option) == "--seed must be small; it is 7."
    again = error.with_remedy("Pass 3.")
    assert again.text(write_option) == "--seed must be small; it is 7. Pass 3."
    assert write_option(Argument("n_resamples")) == "n_resamples"  # no such option


@pytest.mark.parametrize("values", [["a", "b"] * 20, [[1], [2, 3]] * 20])
def test_columns_without_numbers_are_not_to_be_dropped(values):
    table = {"y": [0, 1] * 20, "p": np.array(values, dtype=object)}
    with pytest.raises(InputError, match="must contain numbers") as raised:
        cb.Predictions.from_table(table, y="y", p="p")
    assert "drop" not in str(raised.value)
    table["p"] = np.array([*[0.5] * 39, "n/a"], dtype=object)
    with pytest.raises(InputError, match=r"row 39 is 'n/a'.*bad_rows=\"drop\""):
        cb.Predictions.from_table(table, y="y", p="p")


def test_scaled_probabilities_do_not_look_like_percentages():
    p = np.linspace(0.0, 1.1, 40)
    with pytest.raises(ProbabilityRangeError, match="If these are percentages"):
        cb.evaluate([0, 1] * 20, p)
    with pytest.raises(ProbabilityRangeError, match="These look like percentages"):
        cb.evaluate([0, 1] * 20, 10.0 * p)


def test_an_unknown_event_is_answered_with_the_labels():
    with pytest.raises(
        InputError, match=r'event: pos_label="no" or pos_label="yes"\.$'
    ):
        cb.evaluate(["no", "yes"] * 20, [0.2, 0.7] * 20, pos_label="ja")
