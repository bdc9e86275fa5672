import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import MapFormatError
from calibrant.experiments.synthetic import sample as paper_sample
from calibrant.numerics.links import logit

P = np.linspace(0.0, 1.0, 201)


def smooth(p, y, **params):
    return cb.make_calibrator("smooth", **params).fit(p, y)


def test_endless_penalties_give_the_identity(sample):
    assert_allclose(smooth(*sample, penalties=(1e15,) * 4).transform(P), P, atol=2e-9)


def test_a_free_line_without_curves_is_platt_scaling(smooth_sample):
    line = smooth(*smooth_sample, penalties=(0.0, 0.0, 1e15, 1e15))
    platt = cb.make_calibrator("platt").fit(*smooth_sample)
    assert_allclose(line.transform(P), platt.transform(P), atol=1e-4)
    p, y = np.round(smooth_sample[0], 2), smooth_sample[1]  # no cells: exactly so
    line = smooth(p, y, penalties=(0.0, 0.0, 1e15, 1e15))
    platt = cb.make_calibrator("platt").fit(p, y)
    assert_allclose(line.transform(P), platt.transform(P), atol=1e-9)


def test_a_free_constant_and_line_meet_the_base_rate(sample):
    p, y = sample
    line = smooth(p, y, penalties=(0.0, 0.0, 10.0, 10.0))
    assert_allclose(line.map_(p).mean(), y.mean(), atol=1e-9)


def test_calibrated_predictions_stay_as_they_are():
    gaps = []
    for seed in range(8):
        p, y, _ = paper_sample("square", 0.0, 1000, seed)
        gaps.append(np.abs(smooth(p, y).transform(p) - p).mean())
    assert np.median(gaps) < 0.005
    assert max(gaps) < 0.05


def test_shrinkage_is_slight_where_data_are_clear():
    """The cases of the conformance suite that shrinkage exempts it from, nearly."""
    p, y = np.repeat([0.0, 1.0], 100), np.tile([0.0, 1.0], 100)
    assert_allclose(cb.calibration_error(y, p, method="smooth"), 0.5, atol=1e-3)
    p = np.linspace(0.0, 1.0, 201)
    none = np.zeros(201)
    assert_allclose(cb.calibration_error(none, p, method="smooth"), 0.5, atol=1e-3)
    y = np.repeat([1.0, 0.0], [60, 140])
    found = cb.calibration_error(y, np.full(200, 0.4), method="smooth")
    assert 0.08 < found < 0.1


def test_map_error_is_below_that_of_piecewise_linear_maps():
    errors = {"smooth": [], "pl": []}
    for shape in ("square", "sqrt", "beta1", "beta2", "stairs"):
        for seed in (5, 6):
            p, y, c = paper_sample(shape, 0.05, 3000, seed)
            for method, found in errors.items():
                map_ = cb.make_calibrator(method).fit(p, y).map_
                found.append(np.abs(map_(p) - c).mean())
    assert np.mean(errors["smooth"]) < np.mean(errors["pl"])


def test_the_map_is_the_mean_of_fits_by_their_probability():
    p, y, _ = paper_sample("beta2", 0.05, 3000, seed=1)
    fit = smooth(p, y).fit_
    lines = []
    for member in fit.members:
        given = np.where(member.kept, member.mode.penalties, 1e15)
        alone = smooth(p, y, penalties=tuple(given.tolist())).map_(P[1:-1])
        lines.append(member.share * logit(alone))
    assert len(fit.members) == 4
    assert_allclose(sum(member.share for member in fit.members), 1)
    assert_allclose(logit(fit.map(P[1:-1])), np.sum(lines, axis=0), atol=1e-6)


def test_curves_are_taken_where_they_are_needed():
    def share_of_curves(shape, error):
        p, y, _ = paper_sample(shape, error, 10_000, seed=1)
        fit = smooth(p, y).fit_
        assert np.isfinite(fit.penalties[:2]).all()
        return sum(m.share for m in fit.members if m.kept[2:].any())

    assert share_of_curves("square", 0.0) < 0.5
    assert share_of_curves("stairs", 0.1) > 0.999


def test_without_averaging_there_is_one_fit_with_both_curves(sample):
    (member,) = smooth(*sample, average=False).fit_.members
    assert member.kept.all()
    assert member.share == 1.0


def test_tails_beyond_the_data_go_on_straight(smooth_sample):
    p, y = smooth_sample
    inside = (p > 0.2) & (p < 0.8)
    map_ = smooth(p[inside], y[inside]).map_
    u = np.array([-9.0, -8.0, -7.0])
    low = map_.by_logit(u)
    assert_allclose(low[1] - low[0], low[2] - low[1], atol=1e-9)


def stored(sample):
    return smooth(*sample).map_.to_dict()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda d: d.pop("by_prob"), "must be curves"),
        (lambda d: d.update(by_logit=[1.0]), "must be curves"),
        (lambda d: d["by_prob"]["slopes"].pop(), "'slopes' of a map must hold"),
        (lambda d: d["by_prob"]["knots"].reverse(), "knots of a map must be two"),
        (lambda d: d["by_logit"].update(heights=["x"]), "must be a list of numbers"),
        (
            lambda d: d["by_logit"].update(
                knots=[0.0, 5e-324], heights=[0.0, 1.0], slopes=[0.0, 0.0]
            ),
            "too near",
        ),
    ],
)
def test_damaged_maps_are_refused(sample, damage, words):
    fields = stored(sample)
    damage(fields)
    with pytest.raises(MapFormatError, match=words):
        cb.map_from_dict(fields)


def test_maps_differ_where_numbers_do(sample):
    fields = stored(sample)
    map_ = cb.map_from_dict(fields)
    fields["by_prob"]["heights"][0] += 1.0
    assert cb.map_from_dict(fields) != map_
    assert map_ != "smooth"
