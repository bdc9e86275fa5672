import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit, softmax

import calibrant as cb
from calibrant.exceptions import MapFormatError
from calibrant.experiments.synthetic import sample as paper_sample
from calibrant.numerics import smooth_curve_fits

P = np.linspace(0.0, 1.0, 201)
PARTS = ("val", "test")


def smooth(p, y, **params):
    return cb.make_calibrator("smooth", **params).fit(p, y)


def test_endless_penalties_give_the_identity(sample):
    found = smooth(*sample, penalties=(1e15,) * 4).transform(P)
    assert_allclose(found[1:-1], P[1:-1], atol=2e-9)
    # Of 500 rows some are exactly 0 and 1: they count as a sixteenth of one in 500.
    assert_allclose(found[[0, -1]], [1 / 8000, 1 - 1 / 8000], rtol=1e-6)


def test_a_free_line_without_curves_is_platt_scaling(smooth_sample):
    inside = P[1:-1]
    line = smooth(*smooth_sample, penalties=(0.0, 0.0, 1e15, 1e15))
    platt = cb.make_calibrator("platt").fit(*smooth_sample)
    assert_allclose(line.transform(inside), platt.transform(inside), atol=1e-4)
    p = np.clip(np.round(smooth_sample[0], 2), 0.01, 0.99)  # no cells: exactly so
    y, inside = smooth_sample[1], P[2:-2]
    line = smooth(p, y, penalties=(0.0, 0.0, 1e15, 1e15))
    platt = cb.make_calibrator("platt").fit(p, y)
    assert_allclose(line.transform(inside), platt.transform(inside), atol=1e-9)


def test_a_free_constant_and_line_meet_the_base_rate(sample):
    p, y = sample
    line = smooth(p, y, penalties=(0.0, 0.0, 10.0, 10.0), monotone=False)
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
    for member in fit.curve.members:
        given = np.where(member.kept, member.penalties, 1e15)
        alone = smooth(p, y, penalties=tuple(given.tolist())).map_(P[1:-1])
        lines.append(member.share * logit(alone))
    assert len(fit.curve.members) == 4
    assert_allclose(sum(member.share for member in fit.curve.members), 1)
    assert_allclose(logit(fit.map(P[1:-1])), np.sum(lines, axis=0), atol=1e-6)


def test_curves_are_taken_where_they_are_needed():
    def share_of_curves(shape, error):
        p, y, _ = paper_sample(shape, error, 10_000, seed=1)
        fit = smooth(p, y).fit_
        assert np.isfinite(fit.curve.penalties[:2]).all()
        return sum(m.share for m in fit.curve.members if m.kept[2:].any())

    assert share_of_curves("square", 0.0) < 0.5
    assert share_of_curves("stairs", 0.1) > 0.999


def test_maps_are_steep_where_predictions_crowd():
    """The true map has steps, at which most predictions lie.

    With curves of logits and predictions alone, errors would be 0.065 on average.
    """
    samples = (paper_sample("wiggle", 0.08, 3000, seed) for seed in range(500, 504))
    found = [cb.calibration_error(y, p, method="smooth") for p, y, _ in samples]
    assert abs(np.mean(found) - 0.08) < 0.005


def test_curves_of_ranks_are_searched_only_where_they_may_matter(monkeypatch):
    """The screen before the search leaves every fit as it is, and is of some use."""
    rng, screened = np.random.default_rng(7), []
    useless = smooth_curve_fits._ranks_are_useless

    def evidence(p, y):
        return smooth(p, y).fit_.evidence

    for shape in ("square", "wiggle", "stairs"):
        for error in (0.003, 0.02, 0.06):
            p, y, _ = paper_sample(shape, error, 2000, int(rng.integers(2**31)))
            before = evidence(p, y)
            with monkeypatch.context() as patch:
                patch.setattr(
                    smooth_curve_fits,
                    "_ranks_are_useless",
                    lambda *of: screened.append(useless(*of)),  # None: search anyway
                )
                assert evidence(p, y) == before
    assert {*screened} == {True, False}


def test_without_averaging_there_is_one_fit_with_both_curves(sample):
    (member,) = smooth(*sample, average=False).fit_.curve.members
    assert member.kept.all()
    assert member.share == 1.0


LEVELS = np.array([0.0, 0.05, 0.2, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0])


def told_confidences(seed, n=500):
    """Confidences on few levels, 0 and 1 among them, that say little about labels."""
    rng = np.random.default_rng(seed)
    p = rng.choice(LEVELS, n, p=np.array([1, 1, 1, 2, 2, 4, 6, 8, 6, 3, 6]) / 40)
    return p, (rng.random(n) < 0.45 + 0.3 * p).astype(float)


@pytest.mark.parametrize("seed", range(8))
def test_between_two_levels_values_lie_between_theirs(seed):
    map_ = smooth(*told_confidences(seed)).map_
    at = map_(LEVELS)
    for left, right, *ends in zip(LEVELS, LEVELS[1:], at, at[1:], strict=False):
        values = map_(np.linspace(left, right, 50))
        assert (values >= min(ends) - 1e-12).all()
        assert (values <= max(ends) + 1e-12).all()


def test_drawn_maps_lie_between_levels_too():
    p, y = told_confidences(0)
    fit = smooth(p, y).fit_
    low, high = fit.band(np.array([0.99, 0.993, 0.999, 0.9999, 1.0]), 0.9)
    assert (low[1:-1] >= low[[0, -1]].min() - 1e-9).all()
    assert (high[1:-1] <= high[[0, -1]].max() + 1e-9).all()


def certain_and_wrong(n=4000, certain=1000, rate=0.8, seed=5):
    """Return calibrated predictions, then some of exactly 1 with a given rate."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n - certain)
    labels = rng.random(p.size) < p, np.arange(certain) < rate * certain
    return np.append(p, np.ones(certain)), np.concatenate(labels).astype(float)


def test_wrong_certainties_have_a_rate_of_their_own():
    p, y = certain_and_wrong()
    fit = smooth(p, y, monotone=False).fit_
    assert fit.curve.terms.own == 1
    assert_allclose(fit.map(np.ones(1)), 0.8, atol=0.3 * np.sqrt(0.16 / 1000))
    assert_allclose(fit.map(np.array([0.97])), 0.97, atol=0.012)
    # A quarter of the rows is off by 0.2; what is left is noise of the others.
    error = cb.calibration_error(y, p, method="smooth")
    assert_allclose(error, 0.05, atol=0.75 * np.sqrt(0.25 / 3000))
    low, high = fit.band(np.ones(1), 0.95)
    half = 1.96 * np.sqrt(0.16 / 1000)
    assert_allclose([low[0], high[0]], [0.8 - half, 0.8 + half], atol=0.2 * half)
    repair = smooth(p, y).transform(np.sort(p))
    assert (np.diff(repair) >= 0.0).all()


@pytest.mark.parametrize("wrong", [0, 1])
def test_few_certainties_or_right_ones_have_no_rate_of_their_own(wrong):
    p, y = certain_and_wrong(certain=1000 if wrong == 0 else 4, rate=1.0)
    y[y.size - wrong :] = 0.0
    y[p < 0.5] = 1.0  # the others are wrong, so that there is evidence
    assert smooth(p, y).fit_.curve.terms.own == 0


def test_rates_of_certainties_know_copies_and_complements():
    p, y = certain_and_wrong(600, 150)
    fit = smooth(p, y, monotone=False).fit_
    assert fit.curve.terms.own == 1
    at = np.append(P, 1.0 - 1e-6)
    weighed = cb.make_calibrator("smooth", monotone=False)
    weighed.fit(p, y, sample_weight=np.full(p.size, 2.0))
    twice = smooth(np.tile(p, 2), np.tile(y, 2), monotone=False)
    assert_allclose(weighed.map_(at), twice.map_(at), rtol=1e-9)
    complement = smooth(1.0 - p, 1.0 - y, monotone=False)
    assert_allclose(complement.map_(1.0 - at), 1.0 - fit.map(at), atol=1e-6)


def test_rates_of_certainties_vary_more_if_rows_are_clustered():
    p, y = certain_and_wrong(1200, 400)
    clusters = np.arange(1200) // 8  # labels of certainties come in long runs
    single, clustered = (
        cb.evaluate(y, p, methods=["smooth"], clusters=ids).frame()
        for ids in (None, clusters)
    )
    # Lower ends are exact bounds here, without clusters.
    above = [(one["high"] - one["value"])[0] for one in (single, clustered)]
    assert above[1] > 1.2 * above[0]


def test_exact_predictions_do_not_decide_on_the_others():
    """Few certain predictions fail half of the time; the others are calibrated."""
    rng = np.random.default_rng(4)
    p = np.round(rng.uniform(0.1, 0.9, 2000), 2)
    y = (rng.random(2000) < p).astype(float)
    certain = np.repeat([0.0, 1.0], 10), np.tile([0.0, 1.0], 10)
    rows = np.append(p, certain[0]), np.append(y, certain[1])
    map_ = smooth(*rows, monotone=False).map_
    inside = np.linspace(0.15, 0.85, 71)
    assert_allclose(map_(inside), inside, atol=0.05)
    assert 0.1 < map_(np.array([0.0]))[0] < 0.6


@pytest.mark.parametrize("power", [0.4, 3.0])
def test_beyond_the_data_corrections_stay_as_they_are_at_their_ends(power):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 400)
    y = (rng.random(400) < expit(power * logit(p))).astype(float)
    map_ = smooth(p, y).map_
    for end, beyond in ((p.min(), [0.1, 0.01, 1e-4]), (p.max(), [0.9, 0.99, 0.9999])):
        last = logit(map_(np.array([end]))) - logit(np.array([end]))
        found = logit(map_(np.array(beyond))) - logit(np.array(beyond))
        assert_allclose(found, np.repeat(last, 3), atol=1e-9)


def test_labels_that_predictions_separate_do_not_make_a_step():
    """Of all rows that a network is sure of, none happens to fail."""
    rng = np.random.default_rng(1)
    u = np.concatenate([rng.normal(-7.0, 1.0, 450), rng.normal(6.0, 1.0, 50)])
    p, y = expit(u), (u > 0.0).astype(float)
    fresh = expit(
        np.concatenate([rng.normal(-7.0, 1.5, 9000), rng.normal(6, 1.5, 1000)])
    )
    happened = rng.random(10_000) < fresh
    own, untouched = (
        -np.where(happened, np.log(q), np.log1p(-q)).mean()
        for q in (smooth(p, y).transform(fresh), fresh)
    )
    assert own < 1.5 * untouched


def test_real_networks_and_language_models_are_not_harmed(shared_data):
    """Fitted on 500 rows, applied to others: log-loss against leaving it."""
    harm = []
    for file in sorted(shared_data.glob("focalcal_valtest/*cifar10_*.npz")):
        stored = np.load(file)
        prob = [
            softmax(stored[f"logits_{part}"].astype(float), axis=1) for part in PARTS
        ]
        p, q = prob[0][:, 1], prob[1][:, 1]
        y, happened = (stored[f"y_{part}"] == 1 for part in PARTS)
        for seed in range(3):
            rows = np.random.default_rng([seed, 500]).permutation(p.size)[:500]
            map_ = smooth(p[rows], y[rows]).map_
            losses = [
                -np.where(happened, np.log(c), np.log1p(-c)).mean()
                for c in (np.clip(map_(q), 1e-16, 1 - 1e-16), np.clip(q, 1e-16, None))
            ]
            harm.append(losses[0] - losses[1])
    assert np.mean(harm) < 0.005
    assert max(harm) < 0.04


def stored(sample):
    return smooth(*sample).map_.to_dict()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda d: d.pop("shifts"), "'shifts' of a map must be a list"),
        (lambda d: d["shifts"].pop(), "'shifts' of a map must contain"),
        (lambda d: d["knots"].reverse(), "a map must have at least two"),
        (lambda d: d.update(shifts=["x"]), "must be a list of numbers"),
        (lambda d: d.update(ends=[0.0, 0.5]), "between 0 and 1"),
        (lambda d: d.update(ends=[0.6, 0.5]), "two ascending"),
        (
            lambda d: d.update(knots=[0.0, 5e-324], shifts=[0.0, 1.0]),
            "must be finite",
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
    fields["shifts"][0] += 1.0
    assert cb.map_from_dict(fields) != map_
    assert map_ != "smooth"


def test_sql_gives_what_the_map_gives():
    duckdb = pytest.importorskip("duckdb")
    map_ = smooth(*told_confidences(2)).map_
    p = np.concatenate([P, LEVELS, [1e-6, 1 - 1e-6]])
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT UNNEST(?) AS p", [p.tolist()])
        found = connection.table("t").project(map_.to_sql("p", accuracy=0.0)).fetchall()
    assert_allclose(np.ravel(found), map_(p), rtol=1e-12)


def falling_confidences(seed):
    p, _ = told_confidences(seed, 300)
    return p, (np.random.default_rng(seed).random(300) < 0.9 - 0.8 * p).astype(float)


@pytest.mark.parametrize("seed", range(4))
def test_repairs_rise_and_evaluation_is_free(seed):
    for p, y in (told_confidences(seed, 100), falling_confidences(seed)):
        assert (np.diff(smooth(p, y).map_(P)) >= -1e-15).all()
    assert (np.diff(smooth(p, y, monotone=False).map_(P)) < 0).any()


def test_few_rows_that_agree_make_nothing_certain():
    """All labels are as a network says, so the curve is steep: 0.5 -> 0.0004."""
    rng = np.random.default_rng(3)
    p = expit(np.concatenate([rng.normal(-9, 2, 450), [0.1, 1.0, 3.0], np.full(47, 7)]))
    y = (p > 0.99).astype(float)
    at = np.array([0.3, 0.5, 0.7, 0.9])
    free, repair = smooth(p, y, monotone=False).map_(at), smooth(p, y).map_(at)
    assert (free[:3] < 0.03).all()
    assert (repair > 0.5 * at / 3).all()  # two or three rows are within one logit


def test_evaluation_does_not_take_the_repair():
    p, y = falling_confidences(1)
    free = smooth(p, y, monotone=False)
    error = np.abs(free.map_(p) - p).mean()
    assert_allclose(cb.calibration_error(y, p), error, rtol=1e-6)
    curve = cb.ReliabilityDisplay.from_predictions(y, p).curve
    assert_allclose(curve.calibrated, free.map_(curve.p), atol=1e-9)
