import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom, kstest

import calibrant as cb
from calibrant.exceptions import OptionError, TooFewRowsError, UnknownNameError

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "kernel.json").read_text(encoding="ascii")
)
METHODS = ["smooth", "kce", "spiegelhalter", "hosmer-lemeshow", "cox"]


def drawn():
    return np.array(GOLDEN["data"]["p"]), np.array(GOLDEN["data"]["y"])


def pvalues(method, runs, *, power=1.0, n=300, **options):
    rng = np.random.default_rng(0)
    found = []
    for seed in range(runs):
        p = rng.uniform(0.02, 0.98, n)
        y = rng.random(n) < p**power
        test = cb.calibration_test(y, p, method=method, random_state=seed, **options)
        found.append(test.pvalue)
    return np.array(found)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("smooth", {}),
        ("kce", {"n_resamples": 199}),
        ("kce", {"n_resamples": 199, "kernel": "laplace", "bandwidth": 0.05}),
        ("kce", {"null": "asymptotic", "n": 2000}),
        ("spiegelhalter", {}),
        ("hosmer-lemeshow", {"n": 1000}),
        ("cox", {}),
    ],
)
def test_pvalues_of_calibrated_predictions_are_uniform(method, options):
    found = pvalues(method, 400, **options)
    assert kstest(found, "uniform").pvalue > 0.01
    assert np.mean(found <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("smooth", {}),
        ("kce", {"n_resamples": 199}),
        ("kce", {"n_resamples": 199, "kernel": "laplace"}),
        ("hosmer-lemeshow", {}),
        ("cox", {}),
    ],
)
def test_miscalibrated_predictions_are_found(method, options):
    assert np.mean(pvalues(method, 50, power=1.6, **options) <= 0.05) >= 0.9


def test_the_asymptotic_test_finds_much_with_many_rows_only():
    options = {"null": "asymptotic", "power": 1.6}
    few = pvalues("kce", 60, n=300, **options)
    many = pvalues("kce", 60, n=20_000, **options)
    assert np.mean(many <= 0.05) >= 0.9
    assert np.mean(few <= 0.05) < 0.9


def test_kce_and_smooth_see_what_cox_cannot():
    """A fine wave around the diagonal keeps intercept and slope, near enough."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 5000)
    y = rng.random(5000) < p + 0.1 * np.sin(20 * np.pi * p)
    assert cb.calibration_test(y, p, method="kce", bandwidth=0.02).pvalue < 0.002
    assert cb.calibration_test(y, p).pvalue < 1e-6
    assert cb.calibration_test(y, p, method="cox").pvalue > 0.05


def test_one_prediction_gives_the_binomial_test():
    """With equal predictions the error grows with the distance from the mean."""
    y = np.repeat([1.0, 0.0], [24, 76])
    found = cb.calibration_test(y, np.full(100, 0.3), method="kce", n_resamples=20_000)
    counts = np.arange(101)
    residual = counts - 30.0
    squares = counts * 0.7**2 + (100 - counts) * 0.3**2
    statistic = residual**2 - squares
    exact = binom.pmf(counts, 100, 0.3)[statistic >= statistic[24] - 1e-9].sum()
    assert abs(found.pvalue - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000)


def test_weight_two_equals_the_row_twice():
    p, y = drawn()
    weight = np.full(p.size, 2.0)
    rows = np.repeat(np.arange(p.size), 2)
    for method in METHODS:
        ours = cb.calibration_test(y, p, method=method, sample_weight=weight)
        twice = cb.calibration_test(y[rows], p[rows], method=method)
        assert_allclose(ours.statistic, twice.statistic, rtol=1e-9)
        close = 0.05 if method == "kce" else 1e-9
        assert_allclose(ours.pvalue, twice.pvalue, atol=close)


def test_the_peers_give_the_same_numbers():
    p, y = drawn()
    golden = GOLDEN["values"]["drawn"]
    for method in ("spiegelhalter", "hosmer-lemeshow"):
        found = cb.calibration_test(y, p, method=method)
        assert_allclose([found.statistic, found.pvalue], golden[method], rtol=1e-9)
    statsmodels = golden["hosmer-lemeshow statsmodels"]
    found = cb.calibration_test(y, p, method="hosmer-lemeshow")
    assert_allclose(found.statistic, statsmodels, rtol=1e-9)
    inside = (p > 0) & (p < 1)
    found = cb.calibration_test(y[inside], p[inside], method="cox")
    assert_allclose(found.statistic, golden["cox inside"], rtol=1e-9)


def test_the_statistic_is_the_kernel_error():
    p, y = drawn()
    wanted = cb.kernel_calibration_error(
        y, p, bandwidth="median", outcome_kernel="linear"
    )
    assert cb.calibration_test(y, p, method="kce").statistic == wanted


def test_seeds_decide_the_pvalue():
    p, y = drawn()
    one, same, other = (
        cb.calibration_test(y, p, method="kce", random_state=seed, n_resamples=99)
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one.pvalue != other.pvalue


def test_results_are_told_and_tabled():
    p, y = drawn()
    found = cb.calibration_test(y, p, method="spiegelhalter")
    wanted = "spiegelhalter (binary): statistic 0.3774, p-value 0.706, n = 600"
    assert str(found) == wanted
    assert found.frame()["method"].tolist() == ["spiegelhalter"]
    assert found.alternative == "a Brier score other than expected"


def test_classes_are_tested_one_at_a_time():
    rng = np.random.default_rng(3)
    prob = rng.dirichlet([1, 1, 1], 300)
    y = np.array([rng.choice(3, p=row) for row in prob])
    found = cb.calibration_test(y, prob, task=1)
    assert found.statistic == cb.calibration_test(y == 1, prob[:, 1]).statistic
    words = 'not available for a calibration test; pass task="confidence" or one class.'
    with pytest.raises(OptionError, match=f"{words}$"):
        cb.calibration_test(y, prob, task="classwise")
    again = "Aggregate the rows again with one of these"
    rows = {"y": y, **{f"c_{k}": prob[:, k] for k in range(3)}}
    preds = cb.Predictions.from_table(rows, y="y", p="c_*", task="classwise")
    with pytest.raises(OptionError, match=again):
        cb.calibration_test(preds.aggregate())


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"method": "hl"}, UnknownNameError, "unknown method 'hl'"),
        ({"band_width": 1}, UnknownNameError, "did you mean 'bandwidth'"),
        ({"null": "x"}, UnknownNameError, "unknown null 'x'"),
        ({"kernel": "x"}, UnknownNameError, "unknown kernel 'x'"),
        ({"n_resamples": 0}, OptionError, "n_resamples must be"),
        ({"null": "asymptotic", "block_size": 400}, TooFewRowsError, "2 blocks"),
        (
            {"method": "hosmer-lemeshow", "groups": 2, "fitted": 2},
            OptionError,
            "fitted must be less than groups",
        ),
        ({"method": "smooth", "most": 0}, OptionError, "most must be"),
    ],
)
def test_bad_options_are_named(options, kind, words):
    p, y = drawn()
    with pytest.raises(kind, match=words):
        cb.calibration_test(y, p, **{"method": "kce"} | options)


def test_blocks_without_noise_decide_by_their_sign():
    y, p = np.ones(100), np.full(100, 0.5)
    options = {"method": "kce", "null": "asymptotic"}
    assert cb.calibration_test(y, p, **options).pvalue == 0.0
    assert cb.calibration_test(y, np.ones(100), **options).pvalue == 1.0


def test_the_default_says_what_it_looks_for_and_needs_no_seed():
    p, y = drawn()
    one, other = (cb.calibration_test(y, p, random_state=seed) for seed in (1, 2))
    assert one == other
    assert (one.method, one.alternative) == ("smooth", "any smooth map")


def test_gathered_rows_give_nearly_the_same_test():
    """Beyond 65,536 rows sums over cells replace the rows."""
    rng = np.random.default_rng(4)
    p = rng.uniform(size=80_000)
    y = (rng.random(p.size) < p**1.02).astype(float)
    whole = cb.calibration_test(y, p)
    # All rows at once, each cell the mean of rows that differ by less than 1/2000.
    order = np.argsort(p)
    rounded = p.copy()
    rounded[order] = np.repeat(p[order].reshape(-1, 40).mean(axis=1), 40)
    coarse = cb.calibration_test(y, rounded)
    assert 1e-8 < whole.pvalue < 1e-2
    assert_allclose(coarse.statistic, whole.statistic, rtol=0.02)


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.SmallSampleWarning")
@pytest.mark.parametrize(
    "method", ["smooth", "spiegelhalter", "hosmer-lemeshow", "cox"]
)
def test_few_rows_of_large_weight_are_as_good_as_their_copies(method):
    p, y = np.array([0.1, 0.2, 0.4, 0.7, 0.9]), np.array([0, 1, 0, 1, 1])
    times = np.array([9, 2, 30, 4, 12])
    weighted = cb.calibration_test(y, p, method=method, sample_weight=times)
    copied = cb.calibration_test(
        np.repeat(y, times), np.repeat(p, times), method=method
    )
    assert_allclose(weighted.statistic, copied.statistic)
    assert_allclose(weighted.pvalue, copied.pvalue)


@pytest.mark.parametrize("p", [0.0, 5e-324, 1e-310, 1.0])
def test_a_certain_prediction_that_failed_refutes_calibration(p):
    found = cb.calibration_test(
        np.full(40, p < 0.5), np.full(40, p), method="hosmer-lemeshow"
    )
    assert found.statistic == np.inf
    assert found.pvalue == 0.0
