"""Pseudo-real truths and the contenders on them."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.exceptions import OptionError
from calibrant.experiments import Contender, Design, SyntheticTruth, run
from calibrant.experiments.class_contenders import ClassContender
from calibrant.experiments.ground_truth import Parts
from calibrant.experiments.predictions import Event, outcomes_of
from calibrant.experiments.pseudo_real import PseudoRealTruth

THREE = Event("3 vs rest", 3)


@pytest.fixture
def network(small_digits):
    return next(model for model in small_digits if model.name == "network")


def test_samples_and_unseen_rows_are_rows_of_their_own(network):
    truth = PseudoRealTruth(network, THREE)
    rows = outcomes_of(network.holdout(), THREE)
    parts = Parts.of(rows.p.size)
    drawn, unseen = truth.draw(300, seed=1), truth.unseen()
    np.testing.assert_array_equal(drawn.p, rows.p[parts.sample(300, 1)])
    np.testing.assert_array_equal(unseen.p, np.sort(rows.p[parts.measured]))
    np.testing.assert_array_equal(unseen.p, rows.p[unseen.rows])
    np.testing.assert_array_equal(unseen.y, rows.y[unseen.rows])
    assert not np.isin(parts.fitted, np.append(drawn.rows, unseen.rows)).any()
    assert list(unseen.others) == ["flat", "slope", "exact"]
    # 5,100 rows tell the map of exact probabilities to about a hundredth
    assert 0 < np.abs(unseen.c - unseen.others["exact"]).mean() < 0.01


def test_a_truth_after_a_calibrator_is_that_of_the_calibrated_model(network):
    split = network.calibration()
    calibrator = cb.make_calibrator("vector").fit(split.scores, split.labels)
    repaired = calibrator.transform(network.holdout().scores)
    drawn = PseudoRealTruth(network, Event("confidence"), "vector").draw(200, 0)
    np.testing.assert_allclose(drawn.p, repaired[drawn.rows].max(axis=1), atol=1e-6)
    right = repaired[drawn.rows].argmax(axis=1) == network.holdout().labels[drawn.rows]
    np.testing.assert_array_equal(drawn.y, right)

    plain = outcomes_of(split, THREE)
    platt = cb.make_calibrator("platt").fit(plain.p, plain.y)
    drawn = PseudoRealTruth(network, THREE, "platt").draw(200, 0)
    before = outcomes_of(network.holdout(), THREE).p[drawn.rows]
    np.testing.assert_allclose(drawn.p, platt.transform(before), atol=1e-12)


def test_names_tell_models_events_and_contents_apart(small_digits):
    truths = [
        PseudoRealTruth(model, event, calibrator)
        for model in small_digits
        for event in (THREE, Event("3 vs rest", 4), Event("confidence"))
        for calibrator in (None, "platt")
    ]
    assert len({truth.name for truth in truths}) == len(truths)
    assert truths[1].shape == "bayes | 3 vs rest | platt"
    assert np.isnan(truths[0].error)


def test_calibrators_of_all_classes_are_judged_by_the_event(network, tmp_path):
    event = Event("confidence")
    truth = PseudoRealTruth(network, event)
    design = Design(
        contenders=[ClassContender.of("temperature"), Contender.of("platt")],
        truths=[truth],
        sizes=[500],
        seeds=[0],
    )
    rows = run(design, tmp_path)
    assert (rows["failure"] == "").all()
    found = rows["map_error"][rows["method"] == "temperature"].item()
    data, unseen, split = truth.draw(500, 0), truth.unseen(), network.holdout()
    calibrator = cb.make_calibrator("temperature")
    calibrator.fit(split.scores[data.rows], split.labels[data.rows])
    repaired = calibrator.transform(split.scores[unseen.rows])
    expected = np.abs(repaired.max(axis=1) - unseen.c).mean()
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    platt = rows["method"] == "platt"
    gap = np.abs(data.p - data.others["flat"]).mean()
    np.testing.assert_allclose(rows["true_error_flat"][platt].item(), gap, rtol=1e-12)
    assert np.isfinite(rows["map_error_exact"]).all()


def test_calibrators_of_all_classes_need_all_classes():
    truth = SyntheticTruth.of("square", 0.05, test_rows=100)
    with pytest.raises(OptionError, match="'vector' calibrates all classes at once"):
        ClassContender.of("vector").measured(truth.draw(50, 0), truth.unseen(), truth)
