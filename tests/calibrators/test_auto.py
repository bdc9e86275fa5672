"""Automatic repair: it gains where there is something to gain, and else is nothing."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit

import calibrant as cb
from calibrant.calibrators.auto import Auto
from calibrant.core.arrays import row_hash
from calibrant.core.sample import BinarySample
from calibrant.exceptions import LengthMismatchError, OptionError, TooFewRowsError
from calibrant.maps.certificate import Bounds, Certificate, Trial
from calibrant.maps.stored import map_from_dict
from calibrant.numerics.pooling import log_losses


def distorted(n, seed=0, slope=2.0):
    """Return over-confident predictions, labels and true probabilities."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(2, 2, n)
    return expit(slope * logit(truth)), (rng.random(n) < truth).astype(int), truth


def log_loss(truth, p):
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return -np.mean(truth * np.log(p) + (1 - truth) * np.log1p(-p))


def test_over_confidence_is_repaired():
    p, y, _ = distorted(2000)
    fitted = cb.make_calibrator().fit(p, y)
    new_p, _, truth = distorted(20_000, seed=1)
    repaired = fitted.transform(new_p)
    assert np.abs(repaired - truth).mean() < 0.02
    assert log_loss(truth, repaired) < log_loss(truth, new_p) - 0.05
    assert fitted.certificate_.changed
    assert "log-loss falls by" in str(fitted.certificate_)


def test_calibrated_predictions_stay_exactly_as_they_are():
    """Of 25 samples, two would be more than one in twenty."""
    rng = np.random.default_rng(0)
    changed = 0
    for _ in range(25):
        p = rng.random(300)
        fitted = cb.make_calibrator().fit(p, rng.random(300) < p)
        changed += fitted.certificate_.changed
        if not fitted.certificate_.changed:
            assert_array_equal(fitted.transform(p), p)
    assert changed <= 1


def test_gains_are_those_of_rows_left_out():
    """Gains on new rows from the same source are within the interval, or near it."""
    p, y, _ = distorted(3000)
    certificate = cb.make_calibrator().fit(p, y).certificate_
    new_p, _, truth = distorted(100_000, seed=1)
    repaired = cb.make_calibrator().fit(p, y).transform(new_p)
    gain = log_loss(truth, new_p) - log_loss(truth, repaired)
    value, low, high = certificate.log_loss_gain
    assert low < value < high
    assert abs(gain - value) < 0.75 * (high - low)  # three standard errors
    brier = np.mean((new_p - truth) ** 2) - np.mean((repaired - truth) ** 2)
    value, low, high = certificate.brier_gain
    assert abs(brier - value) < 0.75 * (high - low)
    assert certificate.error_before.value > 0.07 > certificate.error_after.value


@pytest.mark.parametrize("weight", [None, 2.0])
def test_cells_of_very_many_rows_score_as_the_rows_do(weight):
    """Labels that told on which side of a cell's end rows are would lower the loss."""
    p, y, truth = distorted(200_000, slope=1.2)
    weights = None if weight is None else np.full(p.size, weight)
    held_out = Auto().held_out(BinarySample(p, y.astype(float), weights))
    cells, after = held_out.raw, held_out.after
    assert cells.p.size < 25_000
    assert cells.weight.sum() == (weight or 1.0) * p.size
    before = np.average(log_losses(cells.log_prob, cells.target), weights=cells.weight)
    assert before == pytest.approx(log_loss(y, p), abs=1e-5)
    gain = before - np.average(log_losses(after, cells.target), weights=cells.weight)
    assert gain == pytest.approx(log_loss(y, p) - log_loss(y, truth), abs=5e-5)


@pytest.mark.parametrize("monotone", [True, False])
def test_maps_rise_unless_asked_otherwise(monotone):
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = rng.random(4000) < 0.5 + 0.4 * np.sin(7 * p)
    fitted = cb.make_calibrator("auto", monotone=monotone).fit(p, y)
    steps = np.diff(fitted.transform(np.linspace(0.001, 0.999, 500)))
    assert (steps >= -1e-12).all() == monotone


def test_beyond_the_data_log_odds_keep_their_shift():
    p, y, _ = distorted(2000, slope=1.0)
    inner = np.clip(0.3 + 0.4 * p, 0, 1)
    fitted = cb.make_calibrator().fit(inner, y)
    ends = np.array([inner.min(), inner.max()])
    beyond = np.array([0.01, 0.99])
    shift = logit(fitted.transform(ends)) - logit(ends)
    assert_allclose(logit(fitted.transform(beyond)) - logit(beyond), shift, atol=1e-9)


def test_wrong_predictions_of_0_and_1_count_as_rounded():
    p = np.repeat([0.0, 0.3, 0.7, 1.0], 100)
    y = np.tile(np.arange(100), 4) < np.repeat([2, 30, 70, 98], 100)
    certificate = cb.make_calibrator().fit(p, y).certificate_
    assert certificate.rounded
    repaired = cb.make_calibrator().fit(p, y).transform([0.0, 1.0])
    assert 0.001 < repaired[0] < 0.05
    assert 0.95 < repaired[1] < 0.999


@pytest.mark.parametrize(("steps", "rounded"), [(20, True), (10_000, False)])
def test_0_and_1_are_rounded_where_predictions_come_in_steps(steps, rounded):
    """No label contradicts them; but 0 of 20 votes is not impossible."""
    rng = np.random.default_rng(0)
    truth = np.clip(rng.normal(0.5, 0.5, 400), 0, 1)
    p = np.round(truth * steps) / steps
    fitted = cb.make_calibrator().fit(p, rng.random(400) < p)
    assert fitted.certificate_.evidence < fitted.certificate_.needed
    assert fitted.certificate_.rounded == rounded == fitted.certificate_.changed
    inner = p[(p > 0) & (p < 1)]
    assert_array_equal(fitted.transform(inner), inner)
    assert (fitted.transform([0.0])[0] > 0.0) == rounded
    assert ("rounded values" in str(fitted.certificate_)) == rounded


def test_steps_may_differ_by_the_rounding_of_32_bit_numbers():
    rng = np.random.default_rng(0)
    p = rng.integers(0, 51, 400) / 50
    noisy = np.where((p > 0) & (p < 1), p + rng.choice([0.0, 3e-8], 400), p)
    fitted = cb.make_calibrator().fit(noisy, rng.random(400) < p)
    assert fitted.certificate_.rounded


def test_predictions_nearly_all_next_to_0_and_1_are_not_steps():
    rng = np.random.default_rng(0)
    p = expit(rng.normal(0, 60, 400))
    assert (p == 1.0).any()
    fitted = cb.make_calibrator().fit(p, rng.random(400) < p)
    assert not fitted.certificate_.changed


def votes(trees, n=400):
    """Calibrated votes of so many trees for three classes, and labels."""
    rng = np.random.default_rng(2)
    rates = rng.dirichlet([0.3, 0.3, 0.3], n)
    prob = np.array([rng.multinomial(trees, rate) for rate in rates]) / trees
    return prob, np.array([rng.choice(3, p=row) for row in prob])


@pytest.mark.parametrize(("trees", "rounded"), [(20, True), (10_000, False)])
def test_classes_without_votes_are_not_impossible(trees, rounded):
    prob, y = votes(trees)
    fitted = cb.make_calibrator().fit(prob, y)
    certificate = fitted.certificate_
    assert certificate.evidence < certificate.needed
    assert certificate.rounded == rounded == certificate.changed
    zeros = prob == 0.0
    assert zeros.any()
    repaired = fitted.transform(prob)
    # All zeros together are half a row.
    expected = 0.5 / zeros.sum() if rounded else 0.0
    assert_allclose(repaired[zeros], expected, rtol=0.01)
    assert_allclose(repaired[~zeros], prob[~zeros], rtol=0.01)
    again = map_from_dict(fitted.map_.to_dict())
    assert_array_equal(again.transform(prob), repaired)


def test_one_wrong_zero_says_little_about_other_predictions():
    """At machine precision it would add 36 to the evidence."""
    prob, y = votes(10_000)
    row = int(np.flatnonzero(prob[:, 0] == 0.0)[0])
    y[row] = 0
    certificate = cb.make_calibrator().fit(prob, y).certificate_
    assert certificate.rounded
    assert certificate.evidence < 1.0


def test_the_strength_of_a_repair_is_the_chance_of_miscalibration():
    p, y, _ = distorted(60, slope=1.6)
    certificate = cb.make_calibrator().fit(p, y).certificate_
    assert 0.4 < certificate.chance < 0.99
    total = sum(trial.weight for trial in certificate.tried)
    assert total == pytest.approx(expit(certificate.evidence))
    share = f"{100 * certificate.chance:.0f} %"
    said = str(certificate)
    likely = f"the probability of miscalibration, given these 60 rows, is {share}, so"
    assert f"Repaired in part: {likely}" in said
    assert f"predictions move {share} of the way to what " in said


def test_few_rows_suffice_for_large_errors():
    """Held-out rows alone supported a repair of fewer than half of these samples."""
    repaired = 0
    for seed in range(20):
        p, y, _ = distorted(100, seed, slope=2.0)
        repaired += cb.make_calibrator().fit(p, y).certificate_.changed
    assert repaired >= 14


def test_several_classes_are_repaired_together():
    prob, digit = cb.datasets.load_multiclass("forest")
    fitted = cb.make_calibrator().fit(prob[::2], digit[::2])
    repaired = fitted.transform(prob[1::2])
    own = np.arange(len(repaired)), digit[1::2]
    before, after = -np.log(np.maximum(prob[1::2][own], 1e-15)), -np.log(repaired[own])
    assert after.mean() < before.mean() - 0.1
    assert_allclose(repaired.sum(axis=1), 1.0)
    assert fitted.certificate_.tried[0].method == "smooth"


@pytest.mark.parametrize(("classes", "methods"), [(18, 2), (19, 1)])
def test_methods_of_many_classes_are_few(classes, methods):
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.full(classes, 0.3), 40)
    label = rng.integers(0, classes, 40)
    calibrator = cb.make_calibrator("auto", labels=range(classes), folds=2)
    tried = calibrator.fit(prob, label).certificate_.tried
    assert [trial.method for trial in tried] == ["smooth", "sms"][:methods]


def test_held_out_rows_can_ask_for_a_part_of_a_repair_of_classes():
    """The certificate says so, however sure miscalibration is."""
    prob, digit = cb.datasets.load_multiclass("forest")
    certificate = cb.make_calibrator().fit(prob, digit).certificate_
    total = sum(trial.weight for trial in certificate.tried)
    assert certificate.chance > 0.995
    assert total <= 1.0
    said = f"Predictions move {100 * total:.0f} % of the way."
    assert (said in str(certificate)) == (total < 0.995)


def test_a_certificate_says_where_only_held_out_rows_speak_against_a_repair():
    p, y, _ = distorted(200)
    certificate = cb.make_calibrator().fit(p, y).certificate_
    tried = tuple(trial._replace(weight=0.0) for trial in certificate.tried)
    said = str(replace(certificate, tried=tried))
    assert "%, but held-out rows support no repair. On held-out rows" in said


def test_calibrated_classes_stay_exactly_as_they_are():
    rng = np.random.default_rng(3)
    prob = rng.dirichlet([2, 1, 1, 0.5], 500)
    label = (rng.random((500, 1)) > prob.cumsum(axis=1)).sum(axis=1)
    fitted = cb.make_calibrator().fit(prob, label)
    assert not fitted.certificate_.changed
    assert_array_equal(fitted.transform(prob), prob)


def test_the_order_of_classes_can_be_kept():
    prob, digit = cb.datasets.load_multiclass("forest")
    fitted = cb.make_calibrator("auto", keep_order=True).fit(prob, digit)
    repaired = fitted.transform(prob)
    ranks = prob.argsort(axis=1, kind="stable")
    assert (np.diff(np.take_along_axis(repaired, ranks, axis=1)) >= -1e-15).all()


def test_parameters_of_the_other_kind_are_refused(sample):
    with pytest.raises(OptionError, match="keep_order is a parameter of the multi"):
        cb.make_calibrator("auto", keep_order=True).fit(*sample)


def test_repairs_do_not_depend_on_the_order_of_rows():
    p, y, _ = distorted(500)
    order = np.random.default_rng(1).permutation(500)
    one = cb.make_calibrator().fit(p, y)
    other = cb.make_calibrator().fit(p[order], y[order])
    assert one.certificate_ == other.certificate_
    assert one.map_ == other.map_


def test_weights_count_rows():
    p, y, _ = distorted(400)
    p = p.round(1)  # copies fall into different folds, so that the maps differ a little
    weighted = cb.make_calibrator().fit(p, y, sample_weight=np.full(400, 3.0))
    repeated = cb.make_calibrator().fit(np.repeat(p, 3), np.repeat(y, 3))
    at = np.linspace(0.05, 0.95, 19)
    assert_allclose(weighted.transform(at), repeated.transform(at), atol=0.05)
    assert (weighted.certificate_.n, repeated.certificate_.n) == (400, 1200)


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.SmallSampleWarning")
@pytest.mark.parametrize("n", [1, 2, 5, 29])
def test_few_rows_prove_nothing(n):
    p = np.linspace(0.2, 0.8, n)
    fitted = cb.make_calibrator().fit(p, np.arange(n) % 2)
    assert_array_equal(fitted.transform(p), p)
    rows = "1 row is" if n == 1 else f"{n} rows are"
    said = str(fitted.certificate_)
    assert said == f"Predictions stay unchanged: {rows} too few."


def test_one_outcome_and_one_prediction():
    p = np.full(500, 0.3)
    assert cb.make_calibrator().fit(p, np.zeros(500)).transform([0.3])[0] < 0.02
    half = cb.make_calibrator().fit(p, np.arange(500) % 2).transform([0.3])
    assert_allclose(half, 0.5, atol=0.03)


def test_it_measures_as_other_maps_do(sample):
    p, y = sample
    fitted = cb.make_calibrator("auto", monotone=False).fit(p, y)
    error = cb.calibration_error(y, p, method="auto")
    assert_allclose(error, np.abs(fitted.map_(p) - p).mean(), atol=1e-9)
    with pytest.raises(AttributeError, match="only the method 'auto'"):
        _ = cb.make_calibrator("beta").fit(p, y).certificate_


def test_a_gain_that_may_be_chance_is_called_not_significant():
    """Shares of the map add up to 100 %, however little of it is applied."""
    gains = Certificate(
        tried=(Trial("smooth", 0.44, 0.1), Trial("quadratic", 0.11, 0.1)),
        rounded=False,
        log_loss_gain=Bounds(0.084, -0.0172, 0.1852),
        brier_gain=Bounds(0.02, 0.01, 0.03),
        error_before=Bounds(0.0711, 0.0, 0.1395),
        error_after=Bounds(0.01, 0.0, 0.1004),
        evidence=0.2,
        needed=-0.4,
        n=150,
        folds=10,
        confidence=0.95,
        data="",
    )
    assert str(gains) == (
        "Repaired in part: the probability of miscalibration, given these 150 rows, is "
        "55 %, so predictions move 55 % of the way to what smooth (80 %) and quadratic "
        "(20 %) would make of them. On held-out rows, the log-loss falls, not "
        "significantly, by 0.0840 (95 % interval -0.0172 to 0.1852) and the Brier "
        "score falls by 0.0200 (0.0100 to 0.0300); the calibration error was 0.0711 "
        "(0.0000 to 0.1395) before and is 0.0100 (0.0000 to 0.1004) after."
    )


NOTHING_HELPS = "No repair lowers the log-loss on held-out rows; the nearest, "
ONE_HELPS = "On held-out rows, the best repair, temperature, lowers the log-loss by "


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (-0.0026, f"{NOTHING_HELPS}temperature, raises it by 0.0026."),
        (0.0011, f"{ONE_HELPS}0.0011."),
    ],
)
def test_what_helps_nothing_is_not_called_the_best_repair(gain, words):
    nothing = Bounds(0.0, 0.0, 0.0)
    unchanged = Certificate(
        tried=(Trial("smooth", 0.0, -0.01), Trial("temperature", 0.0, gain)),
        rounded=False,
        log_loss_gain=nothing,
        brier_gain=nothing,
        error_before=nothing,
        error_after=nothing,
        evidence=-2.0,
        needed=-0.4,
        n=150,
        folds=10,
        confidence=0.95,
        data="",
    )
    assert str(unchanged).endswith(f"above 40 %. {words}")


def test_certificates_of_several_classes_say_whose_error_and_score_they_give():
    prob, digit = cb.datasets.load_multiclass("forest")
    fitted = cb.make_calibrator().fit(prob, digit)
    words = str(fitted.certificate_)
    assert "the Brier score (summed over classes) falls by" in words
    assert "the calibration error of the top label was" in words
    mixture = r"smooth \(\d+ %\) and sms \(\d+ %\)"
    said = f"repaired by {mixture}, 1,797 rows of 10 classes>"
    assert re.fullmatch(f"<Certificate: {said}", repr(fitted.certificate_))
    assert re.fullmatch(f"<CertifiedClassMap: {said}", repr(fitted.map_))


def test_certificates_and_their_maps_are_shown_in_a_line():
    p, y = cb.datasets.load_binary("bayes")
    fitted = cb.make_calibrator().fit(p, y)
    said = r"repaired by smooth \(\d+ %\), .* and venn-abers \(\d+ %\), 1,797 rows>"
    assert re.fullmatch(f"<Certificate: {said}", repr(fitted.certificate_))
    assert re.fullmatch(f"<CertifiedMap: {said}", repr(fitted.map_))
    kept = replace(fitted.certificate_, tried=())
    assert repr(kept) == "<Certificate: unchanged, 1,797 rows>"


def test_certified_maps_are_stored_with_their_certificate(tmp_path):
    p, y, _ = distorted(500)
    prob, digit = cb.datasets.load_multiclass("bayes")
    for data in ((p, y), (prob, digit)):
        fitted = cb.make_calibrator().fit(*data)
        cb.save_map(fitted.map_, tmp_path / "map.json")
        again = cb.load_map(tmp_path / "map.json")
        assert again == fitted.map_
        assert again.certificate == fitted.certificate_


def test_damaged_certificates_are_refused():
    p, y, _ = distorted(500)
    stored = cb.make_calibrator().fit(p, y).map_.to_dict()
    for damage in (
        {"certificate": None},
        {"certificate": stored["certificate"] | {"n": "many"}},
        {"certificate": stored["certificate"] | {"tried": [["smooth", 1, 2]]}},
        {"certificate": stored["certificate"] | {"brier_gain": {"value": 1}}},
        {"map": stored},
    ):
        with pytest.raises(cb.exceptions.MapFormatError):
            cb.map_from_dict(stored | damage)


def test_certificates_know_their_data():
    p, y, _ = distorted(500)
    one, same, other = (
        cb.make_calibrator().fit(*data).certificate_.data
        for data in ((p, y), (p[::-1], y[::-1]), (p, 1 - y))
    )
    assert one == same != other
    assert len(one) == 16


def test_many_rows_are_known_in_any_order():
    rng = np.random.default_rng(0)
    p, y = rng.random(40_000), rng.integers(0, 2, 40_000)
    one, same = row_hash(p, y, None), row_hash(p[::-1], y[::-1], np.ones(40_000))
    assert one == same != row_hash(p, 1 - y, None)


def test_a_few_reversed_predictions_may_be_turned():
    """Only `smooth` takes part, which must be free to fall as well."""
    p, y, _ = distorted(200)
    fitted = cb.make_calibrator(monotone=False).fit(p, 1 - y)
    low, high = fitted.transform([0.1, 0.9])
    assert low > 0.6
    assert high < 0.4


def test_errors_that_may_be_nothing_have_intervals_from_0():
    """As those of `evaluate` do."""
    p, y, _ = distorted(300)
    certificate = cb.make_calibrator().fit(p, y).certificate_
    before = cb.evaluate(y, p, methods="smooth").frame()["low"][0]
    assert certificate.error_before.low == pytest.approx(before, abs=0.01)
    assert certificate.error_before.low > 0.0
    assert certificate.error_after.low == 0.0


def test_the_error_after_a_repair_is_within_its_limits():
    """Rows that were repaired show hardly any error, but new ones do."""
    held = 0
    for seed in range(12):
        p, y, _ = distorted(500, seed)
        fitted = cb.make_calibrator().fit(p, y)
        new_p, _, truth = distorted(20_000, seed=100 + seed)
        error = np.abs(fitted.transform(new_p) - truth).mean()
        _, low, high = fitted.certificate_.error_after
        held += low <= error <= high
        said = f"({low:.4f} to {high:.4f}) after"
        assert said in str(fitted.certificate_)
    assert held >= 11


def repeated(seed, questions=100, copies=10, power=1.0):
    """Predictions of questions that were asked several times, with equal answers."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2.0, 1.0, questions)
    y = (rng.random(questions) < p**power).astype(float)
    question = np.arange(questions)
    return tuple(np.repeat(one, copies) for one in (p, y, question))


def test_copies_of_calibrated_rows_are_not_taken_for_evidence():
    repaired = {"rows": 0, "clusters": 0}
    for seed in range(12):
        p, y, question = repeated(seed)
        alone = cb.make_calibrator().fit(p, y)
        together = cb.make_calibrator().fit(p, y, clusters=question)
        repaired["rows"] += alone.certificate_.changed
        repaired["clusters"] += together.certificate_.changed
    assert repaired["rows"] >= 6
    assert repaired["clusters"] <= 2


def test_clusters_with_evidence_are_repaired():
    p, y, question = repeated(1, questions=1000, copies=3, power=3.0)
    fitted = cb.make_calibrator().fit(p, y, clusters=question)
    assert fitted.certificate_.changed
    assert np.abs(fitted.transform(p) - p**3).mean() < 0.04


def test_groups_of_repeated_rows_are_alike_unless_clusters_differ():
    changed = {"rows": 0, "clusters": 0}
    for seed in range(6):
        p, y, question = repeated(seed, questions=200)
        group = question % 4
        for name, given in (("rows", {}), ("clusters", {"clusters": question})):
            fitted = cb.make_calibrator().fit(p, y, groups=group, **given)
            changed[name] += fitted.certificate_.changed
    assert changed["rows"] >= 4
    assert changed["clusters"] <= 1
    p, y, question = repeated(7, questions=2000, copies=3)
    group = question % 2
    rng = np.random.default_rng(7)
    rate = np.where(group == 1, p**0.4, p**2.5)
    y = np.repeat(rng.random(2000), 3) < rate
    fitted = cb.make_calibrator().fit(p, y, groups=group, clusters=question)
    assert np.abs(fitted.transform(p, groups=group) - rate).mean() < 0.06


def test_rows_without_weight_need_no_cluster_of_their_own():
    p, y, question = repeated(3)
    weight = np.where(question < 90, 1.0, 0.0)
    fitted = cb.make_calibrator().fit(p, y, weight, clusters=question)
    used = question < 90
    same = cb.make_calibrator().fit(p[used], y[used], clusters=question[used])
    assert fitted.map_.map == same.map_.map


def test_other_methods_and_classes_take_no_clusters():
    p, y, question = repeated(3)
    with pytest.raises(OptionError, match="for one event, allow for clusters"):
        cb.make_calibrator("platt").fit(p, y, clusters=question)
    prob, label = cb.datasets.load_multiclass("forest")
    with pytest.raises(OptionError, match="for one event"):
        cb.make_calibrator().fit(prob, label, clusters=np.arange(len(label)) // 2)
    with pytest.raises(LengthMismatchError, match="clusters"):
        cb.make_calibrator().fit(p, y, clusters=question[:-1])
    with pytest.raises(TooFewRowsError, match="all rows have the same"):
        cb.make_calibrator().fit(p, y, clusters=np.zeros(p.size))
