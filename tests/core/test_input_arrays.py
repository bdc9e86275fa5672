"""Bad input ends in an error that names the place and the way out."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cb
from calibrant import exceptions as ex

Y = [0, 1] * 20
P = [0.2, 0.7] * 20


def error(y=Y, p=P, **options):
    return cb.calibration_error(y, p, **{"method": "es2", "debias": False} | options)


REFERENCE = pytest.approx(0.25)


@pytest.mark.parametrize(
    "convert",
    [list, tuple, np.array, pd.Series, pl.Series, pa.array],
)
def test_every_kind_of_column_gives_the_same(convert):
    assert error(convert(Y), convert(P)) == REFERENCE


def test_arrow_chunks_are_a_column():
    chunked = pa.chunked_array([P[:10], P[10:]])
    assert error(p=chunked) == REFERENCE


def test_a_column_of_a_frame_of_one_column_is_a_vector():
    assert error(p=pd.DataFrame({"p": P})) == REFERENCE
    assert error(p=np.array(P)[:, np.newaxis]) == REFERENCE


def test_two_columns_of_predict_proba_are_binary_predictions():
    both = np.stack([1.0 - np.array(P), P], axis=1)
    assert error(p=both) == error(p=pd.DataFrame(both)) == REFERENCE
    assert cb.evaluate(Y, both, methods=["es2"]).frame()["n"][0] == len(Y)
    assert error(p=np.log(both), scale="logit") == REFERENCE
    words = np.where(Y, "yes", "no")
    assert error(words, both, pos_label="yes") == REFERENCE
    with pytest.raises(ex.LabelError, match=r"'no' in its second.*the first col"):
        error(words, both, pos_label="no")
    with pytest.raises(ex.RowSumError, match="row 0 sums to"):
        error(p=0.5 * both)


@pytest.mark.parametrize(
    "labels", [np.array(Y, dtype=bool), np.array(Y, dtype=np.int8), np.array(Y, float)]
)
def test_zero_one_labels_of_any_type(labels):
    assert error(labels) == REFERENCE


def test_object_columns_of_zero_and_one_are_labels():
    assert error(np.array(Y, dtype=object)) == REFERENCE


def test_two_words_need_a_pos_label():
    words = np.where(Y, "yes", "no")
    assert error(words, pos_label="yes") == REFERENCE
    with pytest.raises(ex.LabelError, match=r"row 0 is .*'no'.*pos_label="):
        error(words)


def test_pos_label_must_be_one_of_the_two():
    with pytest.raises(
        ex.LabelError, match=r"the event 'maybe'.*'no', 'yes'.*pos_label="
    ):
        error(np.where(Y, "yes", "no"), pos_label="maybe")


def test_all_negative_words_are_fine_with_a_pos_label():
    assert error(["no"] * 40, pos_label="yes") == pytest.approx(0.45)


def test_minus_one_and_one_are_not_guessed():
    signs = [-1, 1] * 20
    with pytest.raises(ex.LabelError, match=r"row 0 is .*-1.*pos_label"):
        error(signs)
    assert error(signs, pos_label=1) == REFERENCE


def test_three_labels_point_to_a_task():
    with pytest.raises(ex.LabelError, match=r"row 3 is .*2.*several classes"):
        error([0, 1, 0, 2] * 10)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_missing_predictions_are_named(bad):
    p = [*P]
    p[5] = bad
    with pytest.raises(ex.MissingValueError, match=r"y_prob .*row 5 is .*1 of 40"):
        error(p=p)


def test_a_null_is_missing():
    with pytest.raises(ex.MissingValueError, match="row 3"):
        error(p=pl.Series([0.2, 0.7, 0.2, None] * 10))


def test_a_masked_row_is_missing():
    masked = np.ma.masked_array(P, mask=[False, True] * 20)
    with pytest.raises(ex.MissingValueError, match="row 1 is masked"):
        error(p=masked)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_labels_are_named(missing):
    with pytest.raises(ex.MissingValueError, match=r"y_true .*row 2 is"):
        error(np.array([0, 1, missing, 1] * 10, dtype=object), pos_label=1)


def test_values_outside_say_how_many_and_where_and_hint_at_logits():
    p = [0.2, 0.7, 1.7, -3.0] * 10
    with pytest.raises(
        ex.ProbabilityRangeError, match=r'row 2 is 1.7 \(20 of 40.*scale="logit"'
    ):
        error(p=p)


def test_logits_are_taken_when_said():
    logits = np.log(np.array(P) / (1 - np.array(P)))
    assert error(p=logits, scale="logit") == REFERENCE


def test_unknown_scale_lists_what_there_is():
    with pytest.raises(ex.UnknownNameError, match=r"unknown scale 'logits'.*'logit'"):
        error(scale="logits")


def test_rounding_beyond_one_by_an_ulp_is_one():
    p = np.array(P)
    p[1] = 1.0 + np.finfo(float).eps
    assert 0 < error(p=p) < 1


def test_text_is_not_a_number():
    with pytest.raises(
        ex.InputError, match=r"y_prob must contain numbers; row 1 is 'a'"
    ):
        error(p=np.array([0.5, "a"] * 20, dtype=object))


def test_ragged_rows_are_refused():
    with pytest.raises(ex.ShapeError, match="rows differ in length"):
        error(p=[[0.1, 0.9], [0.5]])


def test_lengths_must_agree():
    with pytest.raises(ex.LengthMismatchError, match=r"y_true has 39, y_prob has 40\."):
        error(Y[1:])


def test_weights_must_be_as_many():
    with pytest.raises(ex.LengthMismatchError, match="sample_weight has 3"):
        error(sample_weight=[1, 1, 1])


def test_empty_input_is_refused():
    with pytest.raises(
        ex.EmptyInputError, match="y_prob must have at least one row; it is empty"
    ):
        error([], [])


def test_matrix_without_a_task_asks_for_one():
    with pytest.raises(ex.ShapeError, match=r"shape \(40, 3\).*task="):
        error(p=np.full((40, 3), 1.0 / 3.0))


def test_negative_weight_is_named():
    with pytest.raises(ex.WeightError, match=r"row 1 is -2"):
        error(sample_weight=[1.0, -2.0] * 20)


def test_all_zero_weights_are_refused():
    with pytest.raises(ex.WeightError, match="all 40 weights are 0"):
        error(sample_weight=np.zeros(40))


@pytest.mark.parametrize("weight", [1e16, 1e308])
def test_weights_beyond_exact_counts_are_refused(weight):
    with pytest.raises(ex.WeightError, match=r"at most 2\*\*53"):
        error(sample_weight=np.full(40, weight))


def test_logits_whose_squares_overflow_are_refused():
    logits = np.zeros((40, 3))
    logits[3, 1] = -1e200
    with pytest.raises(ex.ProbabilityRangeError, match=r"row 3.*-1e\+200.*Clip"):
        cb.calibration_error(
            [0, 1] * 20, logits, method="es2", task="confidence", scale="logit"
        )


def test_unknown_method_gives_the_nearest_name():
    with pytest.raises(ex.UnknownNameError, match="did you mean 'es-cv'"):
        error(method="es_cv")


@pytest.mark.parametrize(
    ("method", "words"), [("es0", "at least 1"), ("es41", "41 bins")]
)
def test_bins_must_fit_the_rows(method, words):
    with pytest.raises(ex.OptionError, match=words):
        error(method=method)


@pytest.mark.parametrize("alpha", [0, -1, np.inf, np.nan, "2", True])
def test_alpha_must_be_positive(alpha):
    with pytest.raises(ex.OptionError, match="alpha must be a number above 0"):
        error(alpha=alpha)


def test_few_rows_warn_with_their_number():
    with pytest.warns(ex.SmallSampleWarning, match="only 4 rows"):
        error(Y[:4], P[:4])


def test_inputs_are_left_as_they_were(sample):
    p, y = sample
    before = p.copy(), y.copy()
    cb.evaluate(y, p, n_resamples=10)
    assert np.array_equal(p, before[0])
    assert np.array_equal(y, before[1])


def test_every_error_is_ours_and_a_value_error():
    for name in ("InputError", "OptionError", "MapFormatError", "SourceError"):
        kind = getattr(ex, name)
        assert issubclass(kind, ex.CalibrantError)
        assert issubclass(kind, ValueError)


@pytest.mark.parametrize("seed", [-1, 2**32, 0.5, "a"])
def test_seeds_are_checked(seed):
    with pytest.raises(ex.OptionError, match="random_state must be"):
        error(method="es-cv", random_state=seed)


def test_generators_are_seeds_too():
    for seed in (np.random.default_rng(1), np.random.RandomState(1), None):
        found = cb.evaluate(Y, P, methods="es-cv", n_resamples=5, random_state=seed)
        assert found.frame()["n"][0] == 40


def test_a_masked_array_without_masked_rows_is_an_array():
    assert error(p=np.ma.masked_array(P)) == REFERENCE


def test_a_cube_is_no_vector():
    with pytest.raises(ex.ShapeError, match=r"shape \(2, 2, 2\)"):
        error(p=np.zeros((2, 2, 2)))


def test_a_lazy_frame_of_classes_is_collected():
    frame = pl.LazyFrame({"a": [0.3, 0.6] * 20, "b": [0.7, 0.4] * 20})
    found = cb.calibration_error(Y, frame, task="confidence", method="es2")
    assert found == cb.calibration_error(
        Y, frame.collect(), task="confidence", method="es2"
    )


def test_dates_are_not_numbers():
    with pytest.raises(ex.InputError, match="must contain numbers"):
        error(p=np.array(["2020-01-01"] * 40))


def test_swapped_arguments_are_recognised():
    p = np.linspace(0.01, 0.9, 40)
    with pytest.raises(ex.LabelError, match="Are y_true and y_prob swapped"):
        error(p, Y)


def test_percentages_are_recognised():
    with pytest.raises(ex.ScaleError, match=r'look like percentages: pass scale="perc'):
        error(p=np.linspace(0, 100, 40))


def test_pos_label_of_another_type_is_recognised():
    with pytest.raises(
        ex.LabelError, match='exactly as it appears there: pos_label="1"'
    ):
        error(["0", "1"] * 20, pos_label=1)


def test_calibrators_recommend_only_what_they_take():
    calibrator = cb.make_calibrator("es2")
    with pytest.raises(ex.LabelError, match="one class against the rest"):
        calibrator.fit(P, ["a", "b"] * 19 + ["c", "a"])
    with pytest.raises(ex.ShapeError, match=r"the positive class\.$"):
        calibrator.fit([[0.1, 0.2, 0.7]] * 40, Y)


def test_names_differ_in_case_only():
    with pytest.raises(ex.UnknownNameError, match=r"did you mean 'es15'\?"):
        error(method="ES15")


@pytest.mark.parametrize(
    ("pos_label", "remedy"),
    [
        ("Churned", 'Pass the value exactly as it appears there: pos_label="churned".'),
        ("left", 'pos_label="churned" or pos_label="stayed".'),
    ],
)
def test_a_label_that_does_not_occur_leads_to_those_that_do(pos_label, remedy):
    labels = np.array(["churned", "stayed"] * 20)
    with pytest.raises(ex.LabelError) as raised:
        cb.evaluate(labels, np.full(40, 0.5), pos_label=pos_label)
    assert str(raised.value).endswith(remedy)


def test_labels_that_differ_in_case_or_spaces_are_named():
    labels = np.array(["churned", "Churned", "stayed", "stayed "] * 10)
    with pytest.raises(ex.LabelError, match="differ only in case or spaces"):
        cb.evaluate(labels, np.full(40, 0.5), pos_label="CHURNED")
    one = np.array(["churned"] * 40)
    with pytest.raises(ex.LabelError, match=r'appears there: pos_label="churned"'):
        cb.evaluate(one, np.full(40, 0.5), pos_label="Churned")


def test_the_name_of_a_column_is_no_vector():
    with pytest.raises(ex.ShapeError, match="Pass one value per row, not the name of"):
        cb.calibration_test([0, 1] * 20, [0.2, 0.7] * 20, clusters="patient")


def test_two_columns_of_two_models_are_suggested_as_a_dict():
    with pytest.raises(ex.RowSumError, match="For two models, pass a dict of their"):
        cb.summary([0, 1] * 20, [[0.2, 0.3], [0.7, 0.6]] * 20)
