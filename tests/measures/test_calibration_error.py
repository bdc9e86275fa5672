import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import (
    LabelError,
    MissingValueError,
    OptionError,
    RowSumError,
    ShapeError,
    UnknownNameError,
)

PAPER_P = np.array([0.1, 0.3, 0.65, 0.75, 0.85, 0.95])
PAPER_Y = np.array([0, 1, 0, 1, 1, 1])


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.SmallSampleWarning")
def test_six_instances_of_the_papers_figure():
    slope_one = cb.calibration_error(PAPER_Y, PAPER_P, method="ew2", debias=False)
    assert slope_one == pytest.approx(0.1333, abs=1e-4)
    flat = cb.make_calibrator("ew2", tops="flat").fit(PAPER_P, PAPER_Y)
    assert np.abs(flat.map_(PAPER_P) - PAPER_P).mean() == pytest.approx(
        0.1667, abs=1e-4
    )


@pytest.mark.parametrize("alpha", [0.5, 1, 2, 3])
def test_alpha_is_an_exponent_without_a_root(sample, alpha):
    p, y = sample
    found = cb.calibration_error(y, p, method="ew4", alpha=alpha, debias=False)
    parts = np.minimum((p * 4).astype(int), 3)
    expected = sum(
        (parts == b).mean() * abs((y - p)[parts == b].mean()) ** alpha for b in range(4)
    )
    assert_allclose(found, expected)


def test_debias_auto_is_raw_for_other_exponents(sample):
    p, y = sample
    raw = cb.calibration_error(y, p, alpha=3, debias=False)
    assert cb.calibration_error(y, p, alpha=3) == raw
    with pytest.raises(OptionError, match=r"debias=True is not possible.*alpha=3"):
        cb.calibration_error(y, p, alpha=3, debias=True)


def test_scaling_small_weights_changes_nothing(sample):
    p, y = sample
    weight = np.random.default_rng(0).random(p.size)
    one = cb.calibration_error(y, p, sample_weight=weight / weight.sum())
    assert_allclose(one, cb.calibration_error(y, p, sample_weight=weight), atol=1e-12)


@pytest.mark.parametrize("method", cb.calibrator_names("binary"))
def test_equal_weights_are_no_weights(sample, method):
    p, y = sample
    plain = cb.calibration_error(y, p, method=method)
    ones = cb.calibration_error(y, p, method=method, sample_weight=np.ones(p.size))
    assert_allclose(ones, plain, atol=1e-12)


@pytest.fixture
def three_classes():
    rng = np.random.default_rng(3)
    prob = rng.dirichlet([1, 1, 1], 400)
    return prob, np.array([rng.choice(3, p=row) for row in prob])


def test_confidence_is_the_top_label_event(three_classes):
    prob, y = three_classes
    right = prob.argmax(axis=1) == y
    expected = cb.calibration_error(right, prob.max(axis=1))
    assert cb.calibration_error(y, prob, task="confidence") == expected


def test_a_class_is_that_class_against_the_rest(three_classes):
    prob, y = three_classes
    expected = cb.calibration_error(y == 2, prob[:, 2])
    assert cb.calibration_error(y, prob, task=2) == expected
    names = np.array(["ant", "bee", "cow"])
    labels = list(names)
    found = cb.calibration_error(names[y], prob, task="cow", labels=labels)
    assert found == expected
    assert cb.calibration_error(names[y], prob, task=2, labels=labels) == expected


def test_classwise_is_the_mean_over_classes(three_classes):
    prob, y = three_classes
    each = [cb.calibration_error(y, prob, task=k) for k in range(3)]
    assert_allclose(cb.calibration_error(y, prob, task="classwise"), np.mean(each))


def test_softmax_of_logits_is_the_same(three_classes):
    prob, y = three_classes
    logits = np.log(prob) + np.arange(400)[:, np.newaxis]
    found = cb.calibration_error(y, logits, task="confidence", scale="logit")
    assert_allclose(found, cb.calibration_error(y, prob, task="confidence"))


def test_class_order_is_asked_for(three_classes):
    prob, y = three_classes
    with pytest.raises(
        LabelError, match=r"row 0 is '.*'. State by labels=... the class"
    ):
        cb.calibration_error(np.array(["a", "b", "c"])[y], prob, task="confidence")
    with pytest.raises(LabelError, match="each of the 3 probability columns once"):
        cb.calibration_error(y, prob, task="confidence", labels=[0, 1])
    with pytest.raises(LabelError, match="may contain only the classes 0, 1, 5; row"):
        cb.calibration_error(y, prob, task="confidence", labels=[0, 1, 5])


def test_unknown_class_lists_what_there_is(three_classes):
    prob, y = three_classes
    with pytest.raises(UnknownNameError, match="did you mean 'confidence'"):
        cb.calibration_error(y, prob, task="confidense")
    with pytest.raises(UnknownNameError, match=r"unknown task 3; .* numbered 0 to 2"):
        cb.calibration_error(y, prob, task=3)


def test_errors_about_labels_say_how_to_pass_them(three_classes):
    prob, y = three_classes
    options = {"task": "confidence"}
    words = r"remove labels, or pass the classes: np\.array\(labels\)\[y_true\]\."
    with pytest.raises(LabelError, match=words):
        cb.calibration_error(y, prob, labels=["a", "b", "c"], **options)
    with pytest.raises(ShapeError, match=r"one-hot, pass y_true\.argmax\(axis=1\)"):
        cb.calibration_error(np.eye(3)[y], prob, **options)
    with pytest.raises(ShapeError, match=r"one-hot, pass y\.argmax\(axis=1\)"):
        cb.make_calibrator("temperature").fit(prob, np.eye(3)[y])
    with pytest.raises(RowSumError, match=r'sigmoid outputs., pass task="multilabel"'):
        cb.calibration_error(y, np.sqrt(prob), **options)


def test_infinite_logits_are_to_be_clipped(three_classes):
    prob, y = three_classes
    logits = np.log(prob)
    logits[5, 1] = -np.inf
    with pytest.raises(MissingValueError, match=r"row 5, column 1 is -inf .* Clip"):
        cb.calibration_error(y, logits, task="confidence", scale="logit")


class Tensor:
    """Like a PyTorch tensor, it gives its numbers only without gradients."""

    def __init__(self, values, dtype="torch.float32", *, free=False):
        self.values, self.dtype, self.free = values, dtype, free

    def detach(self):
        return Tensor(self.values, self.dtype, free=True)

    def cpu(self):
        return self

    def float(self):
        return Tensor(self.values, free=self.free)

    def __array__(self, dtype=None, copy=None):
        assert self.free
        assert self.dtype != "torch.bfloat16"
        return np.asarray(self.values, dtype=dtype)


@pytest.mark.parametrize("dtype", ["torch.float32", "torch.bfloat16"])
def test_tensors_are_arrays(three_classes, dtype):
    prob, y = three_classes
    given = Tensor(y, "torch.int64"), Tensor(prob, dtype)
    found = cb.calibration_error(*given, task="confidence")
    assert found == cb.calibration_error(y, prob, task="confidence")


def test_rows_must_sum_to_one(three_classes):
    prob, y = three_classes
    prob[7] *= 0.9
    with pytest.raises(RowSumError, match=r"row 7 sums to 0.9 \(1 of 400 rows"):
        cb.calibration_error(y, prob, task="confidence")


def test_a_vector_has_no_classes(three_classes):
    prob, y = three_classes
    with pytest.raises(ShapeError, match=r"one column per class.*task=None"):
        cb.calibration_error(y, prob[:, 0], task="confidence")


def test_options_of_other_tasks_are_refused(three_classes):
    prob, y = three_classes
    with pytest.raises(OptionError, match="pos_label is for binary"):
        cb.calibration_error(y, prob, task="confidence", pos_label=1)
    with pytest.raises(OptionError, match="labels names the classes"):
        cb.calibration_error(y == 1, prob[:, 1], labels=[0, 1])


def test_mixed_label_types_are_told():
    with pytest.raises(LabelError, match="one type"):
        cb.calibration_error(
            np.array([0, "a"] * 20, dtype=object), np.full(40, 0.5), pos_label="a"
        )


def test_an_unknown_method_is_told_before_data_are_looked_at():
    with pytest.raises(UnknownNameError, match="unknown method 'nope'"):
        cb.calibration_error([0, 2], [0.5, "x"], method="nope")
