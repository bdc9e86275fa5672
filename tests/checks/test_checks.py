"""Each check: data that trips it, data that does not, and false alarms."""

import re
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb
from calibrant.checks.check import SEVERITIES, Subject
from calibrant.checks.data_checks import FIRST_ROWS, MAX_VALUES, rounded
from calibrant.checks.diagnosis import CHECKS
from calibrant.core.tasks import InputSpec
from calibrant.exceptions import OptionError, UnknownNameError

N = 4000
DOCS = Path(__file__).parents[2] / "docs" / "checks" / "how_checks_work.md"
STATISTICAL = ["CAL001", "CAL002", "CAL003", "CAL004", "CAL005", "CAL010"]
STATISTICAL += ["CAL012", "CAL013"]


def drawn(truth, n=N, seed=0, low=0.02, high=0.98):
    """Predictions that are uniform, with labels that happen with `truth(p)`."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(low, high, n)
    return p, (rng.random(n) < truth(p)).astype(float)


def balanced(rate=0.05, used=0.5, slope=1.0, n=N, seed=0):
    """Return predictions of a model trained at the rate `used`, and rarer labels."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < rate
    logits = 1.5 * rng.normal(1.5 * y, 1.0) - 1.125 + np.log(used / (1.0 - used))
    return 1.0 / (1.0 + np.exp(-slope * logits)), y.astype(float)


def codes(p, y, **options):
    return cb.diagnose(y, p, **options).codes


def finding(p, y, code, **options):
    found = [f for f in cb.diagnose(y, p, **options).findings if f.code == code]
    assert found, code
    return found[0]


def calibrated(p):
    return p


def test_calibrated_predictions_trip_nothing():
    assert codes(*drawn(calibrated)) == []


GOOD = drawn(calibrated)
TRIPS = {
    "CAL001": drawn(lambda p: 0.5 + 0.6 * (p - 0.5)),
    "CAL002": drawn(lambda p: np.clip(0.5 + 1.6 * (p - 0.5), 0, 1), low=0.2, high=0.8),
    "CAL003": drawn(lambda p: 1 / (1 + np.exp(-(np.log(p / (1 - p)) + 0.5)))),
    "CAL004": drawn(lambda p: np.where((p > 0.7) & (p < 0.8), 0.4, p)),
    "CAL005": drawn(lambda p: np.where(p < 0.5, p, 0.9 - p)),
    "CAL006": drawn(calibrated, n=200),
    "CAL007": drawn(lambda p: p, low=0.02, high=0.501, n=8000),
    "CAL008": (np.round(GOOD[0], 2), GOOD[1]),
    "CAL009": (np.where(GOOD[0] < 0.1, 0.0, GOOD[0]), GOOD[1]),
    "CAL011": (GOOD[0], np.zeros(N)),
    "CAL012": drawn(lambda p: 1 - p),
    "CAL013": balanced(),
}


def test_dependent_rows_are_said_with_the_width_of_honest_intervals():
    p, y = np.tile(GOOD[0], 4), np.tile(GOOD[1], 4)
    told = finding(p, y, "CAL014", clusters=np.tile(np.arange(N), 4))
    assert told.evidence["wider"] == pytest.approx(2.0, rel=0.02)
    assert "2.0 times as wide" in told.message
    assert "CAL014" not in cb.diagnose(*GOOD[::-1], clusters=np.arange(N) // 4).codes


def test_copies_of_rows_are_no_more_evidence_of_faults():
    p, y = drawn(lambda p: 0.93 * p, n=1000)
    copies = np.tile(np.arange(1000), 9)
    plain = cb.diagnose(np.tile(y, 9), np.tile(p, 9)).codes
    clustered = cb.diagnose(np.tile(y, 9), np.tile(p, 9), clusters=copies).codes
    assert set(clustered) - {"CAL014"} < set(plain)


@pytest.mark.parametrize("code", TRIPS)
def test_each_check_speaks_up_about_what_it_is_for(code):
    p, y = TRIPS[code]
    told = finding(p, y, code)
    assert f"| {code} | {told.title} |" in DOCS.read_text(encoding="utf-8")
    assert told.message
    assert told.remedy
    assert told.severity in SEVERITIES


def test_every_check_is_tested():
    assert {*TRIPS, "CAL010", "CAL014"} == set(CHECKS)


def test_balanced_training_is_taken_back():
    """The labels' rate is 0.05: logits are log(19) too high."""
    p, y = TRIPS["CAL013"]
    told = finding(p, y, "CAL013")
    assert abs(told.evidence["shift"] + np.log(19.0)) < 0.2
    assert abs(told.evidence["training_rate"] - 0.5) < 0.05
    rate = told.evidence["base_rate"]
    assert f"adjust_prior({rate:.3g}, old_rate=0.5)" in told.remedy
    adjusted = cb.adjust_prior(rate).transform(p)
    assert not {"CAL003", "CAL013"} & set(codes(adjusted, y))


def test_predictions_that_are_upside_down_are_reported_once():
    p, y = TRIPS["CAL012"]
    first, *rest = cb.diagnose(y, p).findings
    assert first.code == "CAL012"
    assert first.also == ("CAL001", "CAL004", "CAL005")
    assert "CAL001, CAL004 and CAL005 found the same fault" in first.message
    assert not rest
    assert {"CAL001", "CAL004", "CAL005"} <= set(codes(p, y, mute="CAL012"))


def test_swapped_columns_of_a_rare_event_are_upside_down():
    """They are off in level as well, and 1 - p is still trained on balanced data."""
    p, y = balanced(rate=0.2)
    found = cb.diagnose(y, 1.0 - p)
    assert found.findings[0].code == "CAL012"
    assert not {"CAL001", "CAL003", "CAL004", "CAL005", "CAL013"} & set(found.codes)


def test_a_fall_that_turning_would_not_repair_hides_nothing():
    """A curve with a hump is correlated with labels, but 1 - p has no skill."""
    found = codes(*TRIPS["CAL005"])
    assert found[0] == "CAL012"
    assert {"CAL003", "CAL004", "CAL005"} < set(found)


def test_models_without_skill_are_not_called_upside_down():
    """Predictions and labels are independent: the correlation is chance."""
    rng = np.random.default_rng(0)
    found = sum(
        "CAL012" in codes(rng.uniform(0.1, 0.9, 400), (rng.random(400) < 0.5) + 0.0)
        for _ in range(60)
    )
    assert found <= 4  # 0.6 are expected


def test_balanced_training_is_reported_once():
    p, y = TRIPS["CAL013"]
    found = cb.diagnose(y, p)
    assert not {"CAL003", "CAL004"} & set(found.codes)
    told = finding(p, y, "CAL013")
    assert told.also == ("CAL003", "CAL004")
    assert told.message.endswith("CAL003 and CAL004 found the same fault.")
    apart = cb.diagnose(y, p, mute="CAL013").findings
    ranks = {f.code: f.rank for f in apart}
    assert told.rank == max(ranks["CAL003"], ranks["CAL004"])
    assert all(not f.also for f in apart)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"used": 0.05}, "calibrated"),
        ({"used": 0.3, "rate": 0.1}, "another rate in training"),
        ({"used": 0.05, "slope": 2.0}, "over-confident"),
        ({"slope": 2.0}, "more than a shift"),
        ({"rate": 0.4}, "hardly rarer"),
    ],
)
def test_other_faults_are_not_balanced_training(options, why):
    alarms = [
        "CAL013" in codes(*balanced(n=1000, seed=seed, **options)) for seed in range(10)
    ]
    assert sum(alarms) == 0, why


def test_a_shift_of_logits_alone_is_neither_over_nor_under_confidence():
    assert not {"CAL001", "CAL002"} & set(codes(*TRIPS["CAL003"]))


ONE_SIDED = {
    ("CAL001", "below", "too low"): lambda p: np.where(p < 0.5, 0.25 + 0.5 * p, p),
    ("CAL001", "above", "too high"): lambda p: np.where(p > 0.5, 0.25 + 0.5 * p, p),
    ("CAL002", "below", "too high"): lambda p: np.where(p < 0.5, p**2 / 0.5, p),
    ("CAL002", "above", "too low"): lambda p: np.where(
        p > 0.5, 1 - (1 - p) ** 2 / 0.5, p
    ),
}


def numbers(sentence):
    """Return the mean prediction and the observed rate that a sentence names."""
    found = re.search(r"prediction is (\S+), the observed rate ([\d.]*\d)", sentence)
    return [float(number) for number in found.groups()]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("code", "where", "how"), ONE_SIDED)
def test_where_one_side_is_off_only_that_one_is_blamed(code, where, how, seed):
    p, y = drawn(ONE_SIDED[code, where, how], seed=seed)
    told = finding(p, y, code)
    first, second = told.message.split(". ")
    assert re.match(rf"Predictions {where} 0.\d\d are {how}: ", first)
    assert "are not significantly off" in second
    assert told.calibrator == "beta"
    below = p < told.evidence["middle"]
    off, fine = (below, ~below) if where == "below" else (~below, below)
    for rows, sentence in ((off, first), (fine, second)):
        means = p[rows].mean(), y[rows].mean()
        assert numbers(sentence) == pytest.approx(means, abs=0.0005)
        noise = np.sqrt((p * (1 - p))[rows].mean() / rows.sum())
        significant = abs(means[0] - means[1]) > 2.576 * noise  # two-sided at 1 %
        assert significant == (rows is off)


@pytest.mark.parametrize(
    ("truth", "code", "how"),
    [
        (lambda p: 0.5 + 0.6 * (p - 0.5), "CAL001", "too extreme"),
        (lambda p: 0.6 * p, "CAL001", "too high, especially above 0.6\\d"),
        (lambda p: 0.4 + 0.6 * p, "CAL001", "too low, especially below 0.3\\d"),
        (lambda p: np.clip(1.3 * p, 0, 1), "CAL002", "too low, especially above"),
        (
            lambda p: np.clip(0.5 + 1.6 * (p - 0.5), 0, 1),
            "CAL002",
            "not extreme enough",
        ),
    ],
)
def test_where_both_sides_are_off_the_message_says_how(truth, code, how):
    told = finding(*drawn(truth), code)
    assert re.match(f"Predictions are {how}", told.message)
    assert told.calibrator == "platt"


def test_evidence_of_a_shift_is_the_plain_means():
    p, y = TRIPS["CAL003"]
    told = finding(p, y, "CAL003")
    assert told.evidence["mean_prob"] == pytest.approx(p.mean(), abs=1e-12)
    assert told.evidence["base_rate"] == pytest.approx(y.mean(), abs=1e-12)


def test_failed_certainties_are_counted():
    told = finding(*TRIPS["CAL009"], "CAL009")
    p, y = TRIPS["CAL009"]
    assert told.evidence["rows"] == (p == 0).sum()
    assert told.evidence["failed"] == y[p == 0].sum()
    assert told.severity == "severe"


def test_the_region_that_is_off_is_named():
    told = finding(*TRIPS["CAL004"], "CAL004")
    assert told.evidence["left"] > 0.65
    assert told.evidence["right"] < 0.85
    assert told.evidence["observed"] == pytest.approx(0.4, abs=0.08)


def test_thin_regions_are_named_in_words():
    told = finding(*TRIPS["CAL007"], "CAL007")
    assert told.evidence["where"] == "from 0.5 to 0.6"


def test_a_group_that_differs_is_found_and_no_other():
    p, y = drawn(calibrated, n=8000)
    groups = np.arange(8000) % 10
    rng = np.random.default_rng(1)
    bad = groups == 3
    y[bad] = rng.random(bad.sum()) < 0.6 * p[bad]
    found = cb.diagnose(y, p, groups=groups)
    told = [f for f in found.findings if f.code == "CAL010"]
    assert [f.where["group"] for f in told] == ["3"]
    assert told[0].evidence["observed"] == pytest.approx(y[bad].mean(), abs=1e-12)


def test_top_labels_are_judged_by_confidence_against_accuracy():
    prob, digit = cb.datasets.load_multiclass("forest")
    found = cb.diagnose(digit, prob, task="confidence")
    told = next(f for f in found.findings if f.code == "CAL002")
    assert told.evidence["confidence"] == pytest.approx(prob.max(axis=1).mean())
    assert told.evidence["accuracy"] == pytest.approx(
        (prob.argmax(axis=1) == digit).mean()
    )
    assert told.calibrator == "temperature"
    assert "CAL003" not in found.codes


def test_classes_are_named():
    prob, digit = cb.datasets.load_multiclass("forest")
    found = cb.diagnose(digit, prob, task="classwise")
    assert {f.where["class"] for f in found.findings} <= {str(d) for d in range(10)}


def test_weights_are_counts():
    p, y = drawn(lambda p: p**1.3, n=600)
    weight = np.random.default_rng(3).integers(1, 4, 600)
    weighted = cb.diagnose(y, p, sample_weight=weight)
    repeated = cb.diagnose(np.repeat(y, weight), np.repeat(p, weight))
    for one, other in zip(weighted.findings, repeated.findings, strict=True):
        assert (one.code, one.severity) == (other.code, other.severity)
        for name, value in one.evidence.items():
            if isinstance(value, float):
                assert value == pytest.approx(other.evidence[name], nan_ok=True)


def test_muted_checks_keep_silent():
    p, y = TRIPS["CAL001"]
    assert "CAL001" in codes(p, y)
    assert "CAL001" not in codes(p, y, mute="CAL001")


def test_unknown_codes_are_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match=r"unknown check 'CAL01'.*CAL001"):
        cb.diagnose([0, 1], [0.2, 0.8], mute=["CAL01"])


def test_muting_everything_is_refused():
    with pytest.raises(OptionError, match="excludes every check"):
        cb.diagnose([0, 1], [0.2, 0.8], mute=list(CHECKS))


def test_a_code_given_twice_mutes_one_check():
    twice = [*list(CHECKS)[:-1], "CAL001"]
    assert len(twice) == len(CHECKS)
    assert codes([0.2, 0.8], [0, 1], mute=twice) == []


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_rounded_predictions_are_found_in_single_precision(digits):
    p, y = GOOD
    single = np.round(p, digits).astype(np.float32)
    told = finding(single, y, "CAL008")
    assert told.evidence["digits"] == digits
    assert "CAL008" in codes(1.0 - single.astype(float), 1.0 - y)


def test_tiny_chances_and_near_certainties_are_not_rounded():
    rng = np.random.default_rng(0)
    near = rng.uniform(1e-12, 1e-10, 2000)
    y = np.arange(2000) % 2
    for p in (near, 1.0 - near):
        assert "CAL008" not in codes(p, y)


@pytest.mark.filterwarnings(
    "ignore:.* no value of:calibrant.exceptions.CalibrantWarning"
)
def test_rows_without_a_group_are_a_group():
    p, y = drawn(calibrated, n=4000)
    rng = np.random.default_rng(1)
    missing = np.arange(4000) % 4 == 3
    y[missing] = rng.random(missing.sum()) < 0.5 * p[missing]
    number = np.where(missing, np.nan, np.arange(4000) % 4)
    word = np.where(missing, None, "known").astype(object)
    for groups in (number, word):
        found = cb.diagnose(y, p, groups=groups, sample_weight=np.full(4000, 2))
        told = [f for f in found.findings if f.code == "CAL010"]
        assert told[0].where["group"] == "(missing)"
        assert told[0].evidence["rows"] == 2 * missing.sum()


def test_one_column_of_groups_may_be_named_alone():
    p, y = drawn(calibrated, n=4000)
    region = np.where(np.arange(4000) % 2, "north", "south")
    y[region == "north"] = 0.0
    table = {"p": p, "y": y, "region": region}
    one, listed = (
        cb.diagnose(cb.Predictions.from_table(table, y="y", p="p", by=by))
        for by in ("region", ["region"])
    )
    assert "CAL010" in one.codes
    assert one == listed


def test_groups_must_be_as_long_as_the_rows():
    with pytest.raises(ValueError, match="groups"):
        cb.diagnose([0, 1, 1], [0.2, 0.8, 0.7], groups=["a", "b"])


def test_findings_come_worst_first_and_as_columns():
    found = cb.diagnose(*reversed(TRIPS["CAL001"]))
    ranks = [f.rank for f in found.findings]
    assert ranks == sorted(ranks, reverse=True)
    frame = found.frame()
    assert frame["code"].tolist() == [f.code for f in found.findings]
    assert "CAL001 severe" in str(found)
    assert all(f.rank >= 2 for f in found.at_least("moderate").findings)


@pytest.mark.parametrize("always", [0.0, 1.0])
def test_one_outcome_is_no_matter_of_confidence_and_teaches_no_calibrator(always):
    p = drawn(calibrated)[0]
    found = cb.diagnose(np.full(N, always), p)
    assert not {"CAL001", "CAL002"} & set(found.codes)
    assert {"CAL003", "CAL004", "CAL011"} <= set(found.codes)
    assert {f.calibrator for f in found.findings} == {""}
    shift = next(f for f in found.findings if f.code == "CAL003")
    assert ("more often" if always else "less often") in shift.message


@pytest.mark.parametrize(
    ("share", "gap", "code", "severity"),
    [
        (0.01, 0.3, "CAL001", "moderate"),  # 0.3 * sqrt(0.01) = 0.03
        (0.1, 0.1, "CAL004", "moderate"),  # 0.1 * sqrt(0.1) = 0.032
        (0.5, 0.1, "CAL004", "severe"),  # 0.1 * sqrt(0.5) = 0.071
    ],
)
def test_severity_counts_the_rows_that_are_off(share, gap, code, severity):
    n = 20_000
    high = np.arange(n) < share * n
    p = np.where(high, 0.8, 0.002)
    truth = np.where(high, 0.8 - gap, 0.002)
    y = (np.random.default_rng(0).random(n) < truth).astype(float)
    assert finding(p, y, code).severity == severity


def test_regions_are_named_by_predictions_and_not_by_edges():
    p = np.random.default_rng(0).uniform(0.0, 0.2, N)
    told = finding(p, np.zeros(N), "CAL004")
    assert told.evidence["right"] == p.max()
    constant = finding(np.full(N, 0.3), GOOD[1], "CAL004")
    assert constant.message.startswith("Predictions of 0.3 are too low")


def test_ends_of_a_region_read_differently():
    rng = np.random.default_rng(0)
    p = 1.0 - 1e-4 * rng.random(N)
    y = (rng.random(N) < 0.9).astype(float)
    told = finding(p, y, "CAL004").message
    left, right = told.split("from ")[1].split(" are")[0].split(" to ")
    assert 0.999 < float(left) < float(right) < 1.0


def test_a_few_tied_rows_are_no_region():
    """One happy row among the high predictions is no proof that the map falls."""
    p = np.concatenate([np.full(1, 0.2), np.full(2000, 0.5), np.full(2000, 0.9)])
    y = np.concatenate([np.ones(1), np.arange(4000) % 50 == 0])
    assert "CAL005" not in codes(p, y)
    few = np.linspace(0.1, 0.9, 8)
    assert "CAL012" not in codes(few, few < 0.5)


def test_few_rows_are_told_once():
    p, y = drawn(calibrated, n=90)
    assert codes(p, y) == ["CAL006"]


def test_groups_of_few_rows_are_not_judged():
    p, y = drawn(calibrated)
    groups = np.where(np.arange(N) < 25, "few", "rest")
    y[:25] = p[:25] < 0.5
    assert "CAL010" not in codes(p, y, groups=groups)


def test_a_group_is_judged_by_how_it_differs_from_the_rest():
    """All are off by 0.2; a group that is off by 0.22 is not severely worse."""
    n = 40_000
    rng = np.random.default_rng(0)
    p = rng.uniform(0.3, 0.7, n)
    odd = np.arange(n) % 4 == 0
    y = (rng.random(n) < p + np.where(odd, 0.23, 0.2)).astype(float)
    told = finding(p, y, "CAL010", groups=odd)
    assert told.severity == "moderate"


@pytest.mark.parametrize("task", ["binary", "confidence", "classwise", 3])
def test_every_calibrator_that_is_named_works_on_these_predictions(task):
    prob, digit = cb.datasets.load_multiclass("forest")
    label, options = digit, {"task": task}
    if task == "binary":
        prob, label, options = np.clip(prob[:, 3] ** 0.3, 0, 0.99), digit == 3, {}
    named = {f.calibrator for f in cb.diagnose(label, prob, **options).findings}
    assert named - {""}
    for name in named - {""}:
        fitted = cb.make_calibrator(name).fit(prob, label)
        assert fitted.transform(prob).shape == prob.shape
        remedies = [
            f.remedy
            for f in cb.diagnose(label, prob, **options).findings
            if f.calibrator == name
        ]
        assert all(name in remedy for remedy in remedies)


def test_plain_means_show_what_a_finding_says():
    for code, sign in (("CAL001", -1), ("CAL002", 1)):
        told = finding(*TRIPS[code], code).evidence
        above = told["observed_above"] - told["predicted_above"]
        below = told["observed_below"] - told["predicted_below"]
        assert sign * (above - below) > 0


def test_many_rows_are_written_in_full():
    """No exponent, as in 2.5e+06."""
    p, y = np.array([1.0, 1.0, 0.5, 0.5]), np.array([1.0, 0.0, 1.0, 0.0])
    weight = np.array([1_250_000.0, 1_250_000.0, 10.0, 10.0])
    told = finding(p, y, "CAL009", sample_weight=weight).message
    assert told.startswith("2,500,000 of 2,500,020 predictions")
    assert "and 1,250,000 of them turned out wrong" in told


def test_certain_failures_say_where_the_log_loss_is_cut_off():
    told = finding(*TRIPS["CAL009"], "CAL009").message
    assert "infinite" in told
    assert f"wrong prediction costs {-np.log(np.finfo(float).eps):.0f}" in told


@pytest.mark.slow
def test_calibrated_samples_raise_few_false_alarms():
    """Each check about 1 %, and all of them together at most 5 %, of samples."""
    rng = np.random.default_rng(5)
    shapes = [(1, 1), (0.3, 1.5), (4, 4), (0.1, 1)]
    quiet = [code for code in CHECKS if code not in STATISTICAL]
    alarms, samples = dict.fromkeys(STATISTICAL, 0), 300
    any_alarm = 0
    for number in range(samples):
        p = rng.beta(*shapes[number % 4], 1000)
        y = (rng.random(1000) < p).astype(float)
        groups = rng.integers(0, 8, 1000) if number % 4 == 0 else None
        found = cb.diagnose(y, p, groups=groups, mute=quiet).codes
        any_alarm += bool(found)
        for code in found:
            alarms[code] += 1
    # 1 % of 300 is 3; 9 or more would come once in 260 such runs.
    assert max(alarms.values()) < 9, alarms
    assert any_alarm / samples < 0.06, alarms


@pytest.mark.parametrize("values", [MAX_VALUES, MAX_VALUES + 1])
def test_few_values_are_found_whatever_comes_first(values):
    p = np.tile(np.linspace(0.001, 0.5, values) ** 1.1, 200)
    sample = InputSpec().tasks((np.arange(p.size) % 2), p).samples[0]
    assert p.size > FIRST_ROWS
    assert (rounded(Subject(sample)) is not None) == (values <= MAX_VALUES)


def test_few_rows_that_are_surely_off_are_not_called_small_errors():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.6, 1.0, 400)
    y = (rng.random(400) < p - 0.3).astype(int)
    told = finding(p, y, "CAL006")
    assert "significantly off" in told.message
    assert "small error" not in told.message + told.remedy
    fine = finding(p, (rng.random(400) < p).astype(int), "CAL006")
    assert "small errors" in fine.message


def test_few_rows_whose_mean_is_off_at_5_percent_say_in_which_direction():
    """The mean has p = 0.03, so CAL003 is silent; the slope makes the whole clear."""
    p = np.tile([0.05, 0.15, 0.35, 0.65], 40)
    y = np.zeros(160)
    for value, events in ((0.05, 7), (0.15, 11), (0.35, 18), (0.65, 24)):
        y[np.flatnonzero(p == value)[:events]] = 1
    told = finding(p, y, "CAL006").message
    assert "CAL003" not in codes(p, y)
    assert "on average too low (mean prediction 0.300, observed rate 0.375)" in told


def test_only_significant_negative_correlations_are_upside_down():
    rng = np.random.default_rng(5)
    p = rng.random(1000)
    alarms = [
        "CAL012" in codes(p, (rng.random(1000) < 0.5).astype(int)) for _ in range(40)
    ]
    assert sum(alarms) <= 3
    swapped = finding(p, (rng.random(1000) < 1.0 - p).astype(int), "CAL012")
    assert -1.0 <= swapped.evidence["correlation"] < -0.4
    assert f"(correlation {swapped.evidence['correlation']:.2f})" in swapped.message


@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_rows_are_few_rows(n):
    p, y = np.linspace(0.2, 0.8, n), np.arange(n) % 2
    assert finding(p, y, "CAL006").severity == "note"


def test_stated_confidences_have_lost_no_digits():
    rng = np.random.default_rng(0)
    stated = rng.integers(1, 20, 2000) / 20
    y = (rng.random(2000) < stated).astype(int)
    assert "stated confidences" in finding(stated, y, "CAL008").remedy
    rounded = rng.integers(1, 100, 2000) / 100
    assert "stated confidences" not in finding(rounded, y, "CAL008").remedy


def test_stated_confidences_need_no_more_digits():
    rng = np.random.default_rng(4)
    p = rng.integers(0, 21, 2000) / 20
    y = (rng.random(2000) < 0.1 + 0.8 * p).astype(float)
    told = finding(p, y, "CAL009")
    assert "full precision" not in told.remedy
    assert "Stated confidences" in told.remedy
