"""Predictions of a model in memory."""

import numpy as np
import pytest

from calibrant.exceptions import ShapeError, SourceError
from calibrant.experiments.predictions import Event, Split, outcomes_of
from calibrant.predictions.input_spec import InputSpec


@pytest.mark.parametrize("task", ["confidence", 2])
def test_events_are_those_of_the_measures_whatever_the_chunks(logits, task):
    scores, y = logits
    found = outcomes_of(Split(scores, y, "logit"), Event.of(str(task)), chunk=7)
    spec = InputSpec(task=task, scale="logit")
    (expected,) = spec.tasks(y, scores.astype(float)).samples
    np.testing.assert_allclose(found.p, expected.p, rtol=1e-12)
    np.testing.assert_array_equal(found.y, expected.y)


def test_a_map_may_change_the_top_class():
    split = Split(np.array([[0.9, 0.1]]), np.array([1]), "prob", np.array([[0.2, 0.8]]))
    swapped = outcomes_of(split, Event("confidence"), lambda scores: scores[:, ::-1])
    assert (swapped.p.item(), swapped.y.item(), swapped.exact.item()) == (0.9, 1.0, 0.8)


def test_events_by_name():
    assert Event.of("3=cats") == Event("cats vs rest", 3)
    assert Event.of("3") == Event("3 vs rest", 3)
    with pytest.raises(SourceError, match=r"number=name, such as 3=cats; got 'cats'"):
        Event.of("cats")


def test_a_fingerprint_tells_other_labels_apart(logits):
    scores, y = logits
    changed = np.where(np.arange(y.size) == 5, (y + 1) % 4, y)
    prints = {Split(scores, labels, "logit").fingerprint for labels in (y, changed)}
    assert len(prints) == 2


def test_a_fingerprint_tells_other_posteriors_apart(logits):
    scores, y = logits
    exact = np.full(scores.shape, 1.0 / scores.shape[1])
    other = exact.copy()
    other[5, :2] += [0.1, -0.1]
    prints = {
        Split(scores, y, "logit", known).fingerprint for known in (None, exact, other)
    }
    assert len(prints) == 3


def test_wrong_contents_are_named():
    good = np.array([[0.5, 0.5], [0.2, 0.8]])
    with pytest.raises(ShapeError, match="they have 2 and 3"):
        Split(good, np.zeros(3), "prob")
    with pytest.raises(ShapeError, match="one number per row"):
        Split(good[0], np.zeros(2), "prob")
    with pytest.raises(SourceError, match=r"m: labels .* from 0 to 1; row 1 has 2"):
        Split(good, np.array([0, 2]), "prob").check("m")
    with pytest.raises(SourceError, match=r"probabilities of sum 1; row 1 is not"):
        Split(good * [[1.0], [2.0]], np.zeros(2), "prob").check("m")
    with pytest.raises(SourceError, match=r"must be finite; row 0 is not"):
        Split(good * [[np.inf], [1.0]], np.zeros(2), "logit").check("m")
