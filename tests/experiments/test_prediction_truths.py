"""True maps of a hold-out, pseudo-real truths, and the contenders on them."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import calibrant as cb
from calibrant.exceptions import OptionError, SourceError
from calibrant.experiments import (
    ClassContender,
    Contender,
    Design,
    Event,
    PseudoRealTruth,
    SyntheticTruth,
    run,
)
from calibrant.experiments.prediction_sets import Outcomes, outcomes_of
from calibrant.experiments.prediction_truths import divide_holdout, true_maps

THREE = Event("3 vs rest", 3)


@pytest.fixture
def network(small_digits):
    return next(model for model in small_digits if model.name == "network")


def test_samples_and_unseen_rows_are_rows_of_their_own(network):
    truth = PseudoRealTruth(network, THREE)
    rows = outcomes_of(network.holdout(), THREE)
    parts = divide_holdout(rows.p.size)
    drawn, unseen = truth.draw(300, seed=1), truth.unseen()
    np.testing.assert_array_equal(drawn.p, rows.p[parts.sample(300, 1)])
    np.testing.assert_array_equal(unseen.p, np.sort(rows.p[parts.measured]))
    np.testing.assert_array_equal(unseen.p, rows.p[unseen.rows])
    np.testing.assert_array_equal(unseen.y, rows.y[unseen.rows])
    assert not np.isin(parts.fitted, np.append(drawn.rows, unseen.rows)).any()
    assert list(unseen.others) == ["flat", "slope", "exact"]
    # 5,950 rows tell the map of exact probabilities to about a hundredth
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
    map_error = rows["map_error"][rows["method"] == "temperature"].item()
    data, unseen, split = truth.draw(500, 0), truth.unseen(), network.holdout()
    calibrator = cb.make_calibrator("temperature")
    calibrator.fit(split.scores[data.rows], split.labels[data.rows])
    repaired = calibrator.transform(split.scores[unseen.rows])
    expected = np.abs(repaired.max(axis=1) - unseen.c).mean()
    np.testing.assert_allclose(map_error, expected, rtol=1e-5)
    platt = rows["method"] == "platt"
    gap = np.abs(data.p - data.others["flat"]).mean()
    np.testing.assert_allclose(rows["true_error_flat"][platt].item(), gap, rtol=1e-12)
    assert np.isfinite(rows["map_error_exact"]).all()


def test_calibrators_of_all_classes_need_all_classes():
    truth = SyntheticTruth("square", 0.05, test_rows=100)
    with pytest.raises(OptionError, match="'vector' calibrates all classes at once"):
        ClassContender.of("vector").measure(truth.draw(50, 0), truth.unseen(), truth)


@pytest.fixture(scope="module")
def outcomes():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 1.0, 20_000)
    return Outcomes(p, (rng.random(p.size) < p**1.5).astype(float), p**1.5)


def test_every_row_of_a_hold_out_is_in_one_part():
    parts = divide_holdout(1001)
    together = np.concatenate([parts.drawn, parts.fitted, parts.measured])
    np.testing.assert_array_equal(np.sort(together), np.arange(1001))
    assert [part.size for part in divide_holdout(1000)] == [150, 425, 425]


def test_samples_of_one_size_have_no_row_in_common():
    parts = divide_holdout(2000)
    samples = [parts.sample(50, seed) for seed in range(6)]
    rows = np.concatenate(samples)
    assert np.unique(rows).size == 300
    assert np.isin(rows, parts.drawn).all()
    with pytest.raises(SourceError, match=r"300 of its rows .* 6 samples of 50 rows"):
        parts.sample(50, 6)


def test_three_estimates_against_their_definitions(outcomes):
    at = {name: map_(outcomes.p) for name, map_ in true_maps(outcomes).items()}
    sklearn = IsotonicRegression(y_min=0, y_max=1).fit(outcomes.p, outcomes.y)
    np.testing.assert_allclose(at["isotonic"], sklearn.predict(outcomes.p), atol=1e-12)
    order = np.argsort(outcomes.p)
    for rows in np.array_split(order, 100):
        share = outcomes.y[rows].mean()
        np.testing.assert_allclose(at["flat"][rows], share, rtol=1e-12)
        tilted = outcomes.p[rows] + share - outcomes.p[rows].mean()
        np.testing.assert_allclose(at["slope"][rows], tilted, atol=1e-12)
    np.testing.assert_allclose(at["exact"], outcomes.exact, atol=1e-12)  # it rises
