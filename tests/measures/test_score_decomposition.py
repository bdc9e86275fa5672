import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import UnknownNameError

SCORES = ("brier", "log-loss")


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("recalibration", ["isotonic", "es15", "ew10", "platt", "pl3"])
def test_the_parts_add_up(sample, score, recalibration):
    p, y = sample
    split = cb.decompose_score(y, p, score=score, recalibration=recalibration)
    total = split.calibration - split.discrimination + split.uncertainty
    assert_allclose(total, split.score, atol=1e-12)
    assert_allclose(split.refinement, split.uncertainty - split.discrimination)
    base = y.mean()
    of_base = {
        "brier": base * (1 - base),
        "log-loss": -base * np.log(base) - (1 - base) * np.log(1 - base),
    }
    assert_allclose(split.uncertainty, of_base[score])


def test_constant_predictions_in_bins_give_murphys_parts():
    """With one prediction a bin, reliability and resolution are textbook sums."""
    rng = np.random.default_rng(0)
    p = rng.choice([0.05, 0.25, 0.45, 0.65, 0.95], 1000)
    y = (rng.random(1000) < 0.1 + 0.7 * p).astype(float)
    bins = [(p == value) for value in np.unique(p)]
    share, rows = (
        np.array([y[b].mean() for b in bins]),
        np.array([b.sum() for b in bins]),
    )
    reliability = (rows * (share - np.unique(p)) ** 2).sum() / 1000
    resolution = (rows * (share - y.mean()) ** 2).sum() / 1000
    split = cb.decompose_score(y, p, recalibration="ew10")
    assert_allclose(split.calibration, reliability)
    assert_allclose(split.discrimination, resolution)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("recalibration", ["isotonic", "es15", "beta"])
def test_weights_are_counts_in_every_part(sample, score, recalibration):
    p, y = sample
    times = np.arange(p.size) % 3 + 1
    how = {"score": score, "recalibration": recalibration}
    weighted = cb.decompose_score(y, p, sample_weight=times, **how)
    repeated = cb.decompose_score(np.repeat(y, times), np.repeat(p, times), **how)
    for part in ("score", "calibration", "discrimination", "uncertainty"):
        assert_allclose(getattr(weighted, part), getattr(repeated, part), atol=1e-9)


@pytest.mark.parametrize("score", SCORES)
def test_isotonic_parts_are_not_negative(score):
    rng = np.random.default_rng(3)
    for n in (30, 31, 200):
        p, y = rng.random(n), rng.integers(0, 2, n)
        split = cb.decompose_score(y, p, score=score)
        assert split.calibration >= 0
        assert split.discrimination >= 0


def test_useless_predictions_do_not_discriminate():
    y = np.tile([0, 1, 1, 1], 30)
    split = cb.decompose_score(y, np.full(120, 0.6))
    assert split.discrimination == pytest.approx(0, abs=1e-12)
    assert split.calibration == pytest.approx(0.15**2)
    assert split.frame()["uncertainty"] == pytest.approx(0.75 * 0.25)
    assert "discrimination 0.0000" in str(split)


def test_one_class_leaves_nothing_uncertain():
    split = cb.decompose_score(np.ones(50), np.full(50, 0.9), score="log-loss")
    assert split.uncertainty == pytest.approx(0, abs=1e-12)
    assert split.calibration == pytest.approx(-np.log(0.9))


def test_an_unknown_recalibration_is_refused(sample):
    p, y = sample
    with pytest.raises(UnknownNameError, match="isotonicc"):
        cb.decompose_score(y, p, recalibration="isotonicc")
