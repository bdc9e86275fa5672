"""Long tables of stated confidences, with the slips that such files have."""

import json
import re
import warnings

import numpy as np
import pytest

import calibrant as cb
from calibrant.exceptions import (
    CalibrantError,
    DroppedRowsError,
    DroppedRowsWarning,
    InputError,
    LabelError,
    LabelWarning,
    OptionError,
    ScaleWarning,
    SourceError,
    UnknownNameError,
    UnpairedRowsWarning,
)

N = 120


@pytest.fixture
def answers(tmp_path):
    """A function that writes answers of two models, each row changed as asked."""

    def write(change=lambda row: row):
        rng = np.random.default_rng(2)
        rows = []
        for model in ("a", "b"):
            for question in range(N):
                percent = int(rng.integers(0, 101))
                right = rng.random() < percent / 100
                row = {"question": question, "model": model, "confidence": percent}
                row |= {"answer": "A" if right else "BC"[question % 2], "truth": "A"}
                rows.append(json.dumps(change(row)))
        path = tmp_path / "answers.jsonl"
        path.write_text("\n".join(rows) + "\n")
        return path

    return write


def table(path, y="truth==answer", scale="percent", **options):
    return cb.Predictions.from_table(
        path, y=y, p="confidence", model="model", scale=scale, **options
    )


def test_text_is_counted_apart_from_missing_values(answers):
    def change(row):
        if row["question"] == 5:
            row["confidence"] = None
        if 10 <= row["question"] < 15:
            row["confidence"] = "not sure" if row["question"] == 10 else "95%"
        return row

    with pytest.warns(DroppedRowsWarning) as told:
        table(answers(change), bad_rows="drop")
    assert str(told[0].message) == (
        "12 of 240 rows were invalid and were dropped: 10 not numbers, such as '95%' "
        "(remove the percent sign), in column 'confidence', 2 missing or infinite in "
        "column 'confidence'."
    )


def test_nobody_is_told_to_drop_all_rows(answers):
    path = answers(lambda row: row | {"confidence": f"{row['confidence']}%"})
    with pytest.raises(DroppedRowsError, match="remove the percent sign") as caught:
        table(path, bad_rows="drop")
    assert "max_dropped" not in str(caught.value)
    with pytest.raises(InputError, match="Remove the percent signs"):
        table(path)


@pytest.mark.parametrize("bad_rows", ["drop", "error"])
def test_objects_are_no_confidences(answers, bad_rows):
    path = answers(lambda row: row | {"confidence": {"value": row["confidence"]}})
    with pytest.raises(InputError, match=r"objects with the fields 'value'"):
        table(path, bad_rows=bad_rows)


def test_answers_that_are_never_equal_are_told(answers):
    path = answers(lambda row: row | {"answer": f" {row['answer'].lower()})"})
    with pytest.warns(LabelWarning, match=r"never equal.* 'A' in 'truth' and ' "):
        table(path)


def test_two_columns_may_be_compared_with_spaces(answers):
    path = answers()
    spaced = cb.evaluate(table(path, "answer == truth"), methods="ew5").frame()
    plain = cb.evaluate(table(path), methods="ew5").frame()
    assert spaced["value"].tolist() == plain["value"].tolist()
    with pytest.raises(UnknownNameError, match=r"'answr'; did you mean 'answer'"):
        table(path, "truth==answr")


def test_true_answers_are_to_be_compared(answers):
    with pytest.raises(LabelError, match=r'y="truth==answer"'):
        table(answers(), "answer")
    with pytest.raises(DroppedRowsError, match="240 with an unknown label"):
        table(answers(), "answer", bad_rows="drop")


def test_a_model_on_another_scale_is_told(answers):
    def change(row):
        if row["model"] == "b":
            row["confidence"] /= 100
        return row

    with pytest.warns(ScaleWarning, match="of model 'b' is .*multiply those of this"):
        table(answers(change))


def test_models_of_a_column_have_one_scale(answers):
    with pytest.raises(OptionError, match=r"scale names 'b'\. Convert the predictions"):
        table(answers(), scale={"b": "prob"})


def test_repeated_questions_are_clusters(answers):
    path = answers(lambda row: row | {"question": row["question"] // 2})
    with pytest.raises(CalibrantError, match=r"not independent, cluster=.?question"):
        cb.compare(table(path, id="question"))
    with pytest.raises(CalibrantError) as caught:
        cb.compare(table(path, id="question", cluster="question"))
    assert "independent" not in str(caught.value)


@pytest.mark.parametrize("shared", [100, 30])
def test_questions_that_all_models_answered_are_counted(answers, shared):
    def change(row):
        if row["model"] == "b" and row["question"] >= shared:
            row["question"] += 1000
        return row

    with pytest.warns(UnpairedRowsWarning) as told:
        cb.compare(table(answers(change), id="question"), method="ew5")
    text = str(told[0].message)
    assert re.search(rf"^{shared} of \d+ values .*: a 120, b 120\.", text)
    assert ("leave out models" in text) == (shared == 30)


def test_a_line_that_is_no_json_is_named(answers):
    path = answers()
    lines = path.read_text().splitlines()
    lines[7] = lines[7].replace(":", " ", 1)
    path.write_text("\n".join(lines))
    with pytest.raises(SourceError, match=r"line 8, character \d+: Expecting"):
        table(path)


def test_usual_tables_give_no_warning(answers):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table(answers(), id="question")


def test_one_model_can_be_taken_from_several(answers):
    path = answers()
    preds = table(path)
    alone = cb.evaluate(preds.model("b"), methods="ew5", confidence=None).frame()
    both = cb.evaluate(preds, methods="ew5", confidence=None).frame()
    assert alone["value"][0] == both["value"][both["model"].tolist().index("b")]
    assert str(cb.calibration_test(preds.model("b")))
    with pytest.raises(CalibrantError, match=r'preds\.model\("name"\)'):
        cb.calibration_test(preds)
    with pytest.raises(UnknownNameError, match="unknown model 'c'"):
        preds.model("c")
    with pytest.raises(OptionError, match="aggregated predictions cannot be divided"):
        preds.aggregate().model("a")


def test_one_model_of_arrays_keeps_weights_groups_and_scale():
    rng = np.random.default_rng(0)
    p, y = rng.random(200), rng.integers(0, 2, 200)
    group = np.arange(200) % 2
    both = cb.Predictions.from_arrays(
        y,
        {"a": 100 * p, "b": p},
        scale={"a": "percent", "b": "prob"},
        sample_weight=1.0 + group,
        groups=group,
    )
    found = [
        cb.evaluate(both.model(name), methods="ew5", confidence=None).frame()["value"]
        for name in "ab"
    ]
    np.testing.assert_allclose(found[0], found[1])
    assert found[0].size == 2


def test_calibrators_take_arrays(answers):
    with pytest.raises(TypeError, match=r"fit\(p, y\); got a Predictions"):
        cb.make_calibrator().fit(table(answers()))
