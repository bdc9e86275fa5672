"""Maps of groups: between one map for all and one for each, and never without need."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

import calibrant as cb
from calibrant.exceptions import LengthMismatchError, OptionError
from calibrant.maps.grouped import GroupedMap

COUNT = 8


def grouped(rows, spread=0.8, seed=0, count=COUNT):
    """Return predictions, true probabilities and groups that differ by a line."""
    rng, groups = np.random.default_rng(seed), np.repeat(np.arange(count), rows)
    own = np.random.default_rng(1).normal(0.0, spread, (2, count))
    u = rng.normal(-0.5, 2.0, rows * count)
    truth = expit(0.3 + u / 1.6 + own[0, groups] + 0.4 * own[1, groups] * u)
    return expit(u), truth, groups


def drawn(truth, seed=7):
    return (np.random.default_rng(seed).random(truth.size) < truth).astype(int)


def excess(p, truth):
    """Return the expected log-loss beyond that of the truth."""
    p = np.clip(p, 1e-12, 1.0 - 1e-12)
    gap = truth * np.log(truth / p) + (1 - truth) * np.log((1 - truth) / (1 - p))
    return float(gap.mean())


@pytest.fixture(scope="module")
def rows():
    p, truth, groups = grouped(100)
    return p, drawn(truth), groups


@pytest.fixture(scope="module")
def fitted(rows):
    p, y, groups = rows
    return cb.make_calibrator().fit(p, y, groups=groups)


@pytest.mark.parametrize("n", [60, 300])
def test_it_is_better_than_one_map_and_than_separate_maps(n):
    """Expected log-loss beyond that of the truth, mean of two samples."""
    sums = np.zeros(3)
    for seed in (1, 2):
        p, truth, groups = grouped(n, seed=seed)
        y = drawn(truth, seed)
        new_p, new_truth, new_groups = grouped(500, seed=9)
        apart = np.empty_like(new_p)
        for group in range(COUNT):
            one = cb.make_calibrator("smooth").fit(
                p[groups == group], y[groups == group]
            )
            apart[new_groups == group] = one.transform(new_p[new_groups == group])
        common = cb.make_calibrator("smooth").fit(p, y).transform(new_p)
        fitted = cb.make_calibrator().fit(p, y, groups=groups)
        by_group = fitted.transform(new_p, groups=new_groups)
        sums += [excess(p, new_truth) for p in (by_group, common, apart)]
    assert sums[0] < 0.7 * sums[1]
    assert sums[0] < sums[2]


def test_equal_groups_share_the_common_map():
    p, truth, groups = grouped(60, spread=0.0)
    fitted = cb.make_calibrator().fit(p, drawn(truth), groups=groups)
    assert not isinstance(fitted.map_, GroupedMap)
    assert not fitted.certificate_.groups.used
    assert "The 8 groups share one map" in str(fitted.certificate_)
    assert_array_equal(fitted.transform(p, groups=groups), fitted.transform(p))


def test_the_certificate_is_about_held_out_rows(fitted):
    trial = fitted.certificate_.groups
    assert trial.used
    assert trial.n == COUNT
    assert_allclose(trial.evidence, trial.gain.value * fitted.certificate_.n)
    new_p, truth, groups = grouped(5000, seed=3)
    common = fitted.map_.common.transform(new_p)
    gain = excess(common, truth) - excess(fitted.transform(new_p, groups), truth)
    width = trial.gain.high - trial.gain.low
    assert abs(gain - trial.gain.value) < 0.75 * width  # three standard errors
    assert "maps of the groups lower the log-loss" in str(fitted.certificate_)


def test_rows_of_other_groups_get_the_common_map(fitted):
    p = np.linspace(0.0, 1.0, 11)
    found = fitted.transform(p, groups=["somewhere"] * 11)
    assert_array_equal(found, fitted.map_.common.transform(p))
    assert fitted.map_.of_group("somewhere") is fitted.map_.common
    own = fitted.transform(p, groups=[3] * 11)
    assert_array_equal(own, fitted.map_.of_group(3).transform(p))
    assert (np.diff(own) >= 0.0).all()


def test_a_group_of_few_rows_has_nearly_the_common_map(rows):
    p, y, groups = rows
    kept = (groups > 0) | (np.cumsum(groups == 0) <= 3)
    map_ = cb.make_calibrator().fit(p[kept], y[kept], groups=groups[kept]).map_
    at = np.linspace(0.05, 0.95, 19)
    few = np.abs(map_.of_group(0)(at) - map_.common(at)).mean()
    many = [np.abs(map_.of_group(g)(at) - map_.common(at)).mean() for g in (1, 2, 3)]
    assert few < max(many) / 2


def test_weights_are_counts(rows):
    p, y, groups = rows
    weight = np.where(groups == 1, 0.0, 1.0)
    map_ = cb.make_calibrator().fit(p, y, weight, groups=groups).map_
    used = weight > 0.0
    alone = cb.make_calibrator().fit(p[used], y[used], groups=groups[used]).map_
    assert map_.to_dict()["keys"] == alone.to_dict()["keys"]
    at = np.linspace(0.0, 1.0, 11)
    assert_allclose(map_.of_group(2)(at), alone.of_group(2)(at), rtol=1e-9)


def test_the_order_of_rows_does_not_matter(rows, fitted):
    order = np.random.default_rng(0).permutation(rows[0].size)
    p, y, groups = (column[order] for column in rows)
    assert cb.make_calibrator().fit(p, y, groups=groups).map_ == fitted.map_


def test_groups_may_be_named_by_several_columns(rows):
    p, y, groups = rows
    columns = np.array([groups // 4, groups % 4]).T
    map_ = cb.make_calibrator().fit(p, y, groups=columns).map_
    assert map_.by == ("group_0", "group_1")
    assert len(map_.keys) == COUNT
    assert map_.transform(p[:2], columns[:2]).shape == (2,)


def test_other_methods_and_classes_have_no_groups(rows):
    p, y, groups = rows
    with pytest.raises(OptionError, match="only the method 'auto' fits maps of groups"):
        cb.make_calibrator("platt").fit(p, y, groups=groups)
    three = np.full((60, 3), 1.0 / 3.0)
    with pytest.raises(OptionError, match="one event"):
        cb.make_calibrator().fit(three, np.arange(60) % 3, groups=np.arange(60) % 2)


def test_groups_are_needed_for_each_row(rows, fitted):
    p, y, groups = rows
    with pytest.raises(OptionError, match="this map depends on 'group'"):
        fitted.transform(p)
    with pytest.raises(LengthMismatchError):
        fitted.transform(p, groups=groups[:5])
    with pytest.raises(LengthMismatchError):
        cb.make_calibrator().fit(p, y, groups=groups[:5])
    with pytest.raises(OptionError, match="must have 1 columns"):
        fitted.transform(p, groups=np.array([groups, groups]).T)


def test_too_few_rows_try_nothing():
    with pytest.warns(UserWarning, match="only 8 rows"):
        fitted = cb.make_calibrator().fit(
            np.linspace(0.1, 0.9, 8), [0, 1] * 4, groups=list("aabbccdd")
        )
    assert fitted.certificate_.groups is None


def test_a_group_may_have_a_single_row(rows):
    """Cross-validation then fits it without rows: it has the common map."""
    p, y, groups = rows
    groups = np.where(np.arange(p.size) == 0, "lone", groups.astype(str))
    map_ = cb.make_calibrator().fit(p, y, groups=groups).map_
    assert map_.certificate.groups.n == COUNT + 1
    moves = {
        key: np.abs(map_.of_group(key)(p) - map_.common(p)).max()
        for (key,) in map_.keys
    }
    assert moves.pop("lone") < 0.5 * max(moves.values())
