"""Reports do not the same work twice, and little for each of very many classes."""

from collections import Counter

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import calibrant as cb
from calibrant.calibrators.binned import Binned
from calibrant.core.sample import BinarySample
from calibrant.core.tasks import InputSpec
from calibrant.core.threads import one_blas_thread
from calibrant.numerics.weighted_points import MAX_EXACT_ROWS, compress_to_at_most


def test_each_method_is_fitted_once_to_each_model(smooth_sample, monkeypatch):
    p, y = smooth_sample
    fitted = Counter()
    fit_event = Binned.fit_event

    def counted(calibrator, sample):
        fitted[repr(calibrator), sample.p.tobytes()] += 1
        return fit_event(calibrator, sample)

    monkeypatch.setattr(Binned, "fit_event", counted)
    report = cb.Report.from_predictions(
        y, {"a": p, "b": np.sqrt(p)}, methods=("ew10", "es10")
    )
    assert report.summary["comparison"]["models"][0]["model"] == "a"
    assert len(report.summary["models"][1]["diagrams"][0]["bins"]) == 2
    own = {q.tobytes() for q in (p, np.sqrt(p))}
    counts = [n for (_, q), n in fitted.items() if q in own]
    assert counts == [1] * 4


def test_cells_are_gathered_once_and_are_the_same():
    rng = np.random.default_rng(1)
    for n in (500, MAX_EXACT_ROWS + 1):
        p = rng.random(n)
        sample = InputSpec().tasks((rng.random(n) < p).astype(int), p).samples[0]
        found = compress_to_at_most(sample)
        assert compress_to_at_most(sample) is found
        again = compress_to_at_most(BinarySample(sample.p, sample.y, sample.weight))
        np.testing.assert_array_equal(found.p, again.p)
        np.testing.assert_array_equal(found.label_sum, again.label_sum)


@pytest.fixture(scope="module")
def many_classes():
    """Thirty classes, probabilities of one of which are far too high."""
    rng = np.random.default_rng(9)
    scores = rng.normal(size=(900, 30))
    prob = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    label = np.array([rng.choice(30, p=row) for row in prob])
    scores[:, 7] += 2.0
    return label, scores


def test_very_many_classes_are_ranked_by_quick_methods(many_classes):
    label, scores = many_classes
    report = cb.Report.from_predictions(label, scores, task="classwise", scale="logit")
    measured, (model,) = report.summary["measured"], report.summary["models"]
    assert measured["method"] == "es15"
    assert [row["method"] for row in model["errors"]] == ["es15", "ew15"]
    assert len(model["classes"]) == 30
    assert model["classes"][0]["class"] == "7"
    assert len(model["diagrams"]) == 4
    for panel in model["diagrams"]:
        assert [curve["method"] for curve in panel["curves"]] == ["smooth"]
        assert [bins["method"] for bins in panel["bins"]][1:] == ["es15", "ew15"]
    assert any("30 classes" in note for note in report.summary["notes"])


def test_methods_that_were_asked_for_are_used(many_classes):
    label, scores = many_classes
    report = cb.Report.from_predictions(
        label, scores, task="classwise", scale="logit", methods=("ew5", "es10")
    )
    assert report.summary["measured"]["method"] == "ew5"
    assert report.summary["notes"] == []


def test_small_systems_are_solved_by_one_thread():
    def threads():
        found = threadpool_info()
        return [one["num_threads"] for one in found if one["user_api"] == "blas"]

    np.linalg.solve(np.eye(2), np.ones(2))
    before = threads()
    with one_blas_thread():
        assert set(threads()) == {1}
    assert threads() == before
