"""Errors are data, put into words by each interface."""

import pickle

import pytest

import calibrant as cb
from calibrant.exceptions import (
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
    assert raised.value.remedy[0] == "Drop or repair these rows first."


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
