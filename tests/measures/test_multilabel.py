"""Rows with several labels: each label is an event, and errors are means over them."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.exceptions import LabelError, OptionError, ShapeError


@pytest.fixture(scope="module")
def labels_and_predictions():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 2, (800, 3))
    y = (rng.random(p.shape) < p ** [1.0, 1.3, 2.0]).astype(int)
    return y, p


@pytest.mark.parametrize("method", ["smooth", "es15"])
def test_the_error_is_the_mean_over_labels(labels_and_predictions, method):
    y, p = labels_and_predictions
    error = cb.evaluate(y, p, task="multilabel", methods=method).frame()["value"][0]
    columns = [cb.evaluate(y[:, k], p[:, k], methods=method) for k in range(3)]
    assert error == pytest.approx(np.mean([c.frame()["value"][0] for c in columns]))


def test_labels_have_names(labels_and_predictions):
    y, p = labels_and_predictions
    names = ["cat", "dog", "fox"]
    evaluation = cb.evaluate(y, p, task="multilabel", labels=names, methods="smooth")
    assert evaluation.per_class()["task"].tolist() == names
    assert cb.evaluate(y.astype(bool), p, task="multilabel").frame()["task"][0] == (
        "multilabel"
    )


def test_rows_may_sum_to_anything_and_be_logits(labels_and_predictions):
    y, p = labels_and_predictions
    plain, logits = (
        cb.calibration_error(y, scores, task="multilabel", scale=scale)
        for scores, scale in ((p, "prob"), (np.log(p / (1 - p)), "logit"))
    )
    assert logits == pytest.approx(plain, abs=1e-8)


def test_an_npz_file_gives_the_same(labels_and_predictions, tmp_path):
    y, p = labels_and_predictions
    np.savez(tmp_path / "a.npz", y=y, p=p)
    preds = cb.Predictions.from_table(
        tmp_path / "a.npz", y="y", p="p", task="multilabel"
    )
    arrays = cb.Predictions.from_arrays(y, p, task="multilabel")
    values = [
        cb.evaluate(source, methods="smooth").frame()["value"][0]
        for source in (preds, arrays, arrays.aggregate())
    ]
    assert values == pytest.approx([values[0]] * 3, abs=1e-4)


def test_every_label_is_compared_and_diagnosed(labels_and_predictions):
    y, p = labels_and_predictions
    comparison = cb.compare(y, {"a": p, "worse": np.sqrt(p)}, task="multilabel")
    assert comparison.frame()["rank"].tolist() == [1, 2]
    findings = cb.diagnose(y, p, task="multilabel").findings
    assert {finding.where["class"] for finding in findings} >= {"1", "2"}
    assert not any("ovr-" in finding.remedy for finding in findings)


def test_a_report_shows_every_label_and_no_repair(labels_and_predictions):
    y, p = labels_and_predictions
    summary = cb.Report.from_predictions(y, p, task="multilabel").summary
    assert "averaged over labels" in str(summary)
    assert summary["models"][0]["repairs"] is None


@pytest.mark.parametrize("verb", [cb.summary, cb.decision_curve, cb.calibration_test])
def test_what_is_about_one_event_says_so(labels_and_predictions, verb):
    y, p = labels_and_predictions
    with pytest.raises(OptionError, match="pass one column of labels"):
        verb(y, p, task="multilabel")


def test_wrong_shapes_and_labels_are_named(labels_and_predictions):
    y, p = labels_and_predictions
    with pytest.raises(ShapeError, match="y_true must have one column per label"):
        cb.evaluate(y[:, 0], p, task="multilabel")
    with pytest.raises(ShapeError, match=r"must have the shape of y_prob, \(800, 3\)"):
        cb.evaluate(y[:, :2], p, task="multilabel")
    with pytest.raises(LabelError, match="y_true, label 0, must contain binary labels"):
        cb.evaluate(y + 1, p, task="multilabel")
    with pytest.raises(OptionError, match="takes matrices"):
        cb.evaluate(
            cb.Predictions.from_table(
                {"y": y[:, 0], "a": p[:, 0], "b": p[:, 1]},
                y="y",
                p=["a", "b"],
                task="multilabel",
                bad_rows="drop",
            )
        )


def test_top_label_is_confidence():
    rng = np.random.default_rng(1)
    prob = rng.dirichlet([1, 1, 1], 500)
    y = rng.integers(0, 3, 500)
    same = (cb.calibration_error(y, prob, task=t) for t in ("top-label", "confidence"))
    assert next(same) == next(same)
    assert cb.evaluate(y, prob, task="top-label").frame()["task"][0] == "confidence"


def test_calibrators_repair_one_label_at_a_time(labels_and_predictions):
    y, p = labels_and_predictions
    with pytest.raises(ShapeError, match="fit one calibrator per label"):
        cb.make_calibrator("smooth").fit(p, y)
