"""Shapes, new ones of users, the data drawn from them, and the oracle."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import beta
from sklearn.model_selection import KFold

import calibrant as cb
from calibrant.exceptions import OptionError, UnknownNameError
from calibrant.experiments import Contender, Design, SyntheticTruth, run
from calibrant.experiments.synthetic import (
    PAPER_SHAPES,
    SHAPES,
    MixedShape,
    Oracle,
    find_shape,
    mixing_amount,
    predictions,
    sample,
)


def cube(c):
    return c**3


def test_a_new_shape_is_one_function():
    assert SyntheticTruth("cube", 0.1, cube).name == "cube 0.1 beta(1,1) test 1000000"
    p, y, c = sample(cube, 0.1, 1000, seed=3)
    amount = mixing_amount(cube, 0.1)
    # The expected error of the whole shape is 1/2 - 1/4.
    assert amount == pytest.approx(0.4, abs=4e-6)  # errors agree to six digits
    np.testing.assert_array_equal(p, (1 - amount) * c + amount * c**3)
    _, others_y, others_c = sample("square", 0.1, 1000, seed=3)
    assert np.array_equal(y, others_y)
    assert np.array_equal(c, others_c)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (lambda c: 1 - c, "must never decrease; at c = 0 it is 1"),
        (lambda c: 2 * c, "must stay within"),
        (lambda c: c + np.nan, "must stay within"),
        (lambda c: c[:5], "one prediction for each c"),
    ],
)
def test_what_is_no_shape_is_refused(shape, words):
    with pytest.raises(OptionError, match=words):
        SyntheticTruth("odd", 0.05, shape)


def test_unknown_shapes_are_named():
    with pytest.raises(UnknownNameError, match="did you mean 'stairs'"):
        find_shape("stair")


@pytest.mark.parametrize("name", PAPER_SHAPES)
def test_the_papers_shapes_rise_within_the_unit_interval(name):
    c = np.linspace(0, 1, 10_001)
    p = find_shape(name)(c)
    assert p.shape == c.shape
    assert 0 <= p.min() <= p.max() <= 1
    assert (np.diff(p) >= 0).all()
    assert np.abs(p - c).max() > 0.05


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("error", [0.0, 0.005, 0.05, 0.08])
def test_expected_error_is_as_asked(shape, error):
    amount = mixing_amount(shape, error)
    expected_error, _ = quad(
        lambda c: abs(c - predictions(shape, amount, np.asarray(c))), 0, 1, limit=200
    )
    assert expected_error == pytest.approx(error, abs=2e-6)


def test_amounts_are_the_papers():
    assert mixing_amount("square", 0.05) == pytest.approx(0.3, abs=2e-6)
    assert mixing_amount("stairs", 0.05) == pytest.approx(0.438, abs=1e-3)


def test_labels_depend_on_size_and_seed_alone():
    _, y, c = sample("square", 0.05, 500, seed=1)
    p, other_y, other_c = sample("stairs", 0.1, 500, seed=1)
    assert np.array_equal(y, other_y)
    assert np.array_equal(c, other_c)
    assert (np.diff(p) >= 0).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("circle", 0.05, 10, 0), "unknown shape 'circle'"),
        (("square", 0.9, 10, 0), "must not exceed 0.16"),
        (("square", -0.1, 10, 0), "between 0 and 1"),
        (("square", 0.1, 0, 0), "n must be"),
        (("square", 0.1, 10, -1), "seed must be"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    kind = UnknownNameError if "unknown" in words else OptionError
    with pytest.raises(kind, match=words):
        sample(*arguments)


def es_by_definition(p, y, bins):
    """Return ECE and the shift of each of `bins` equal parts of the sorted sample."""
    rows = np.array_split(np.argsort(p, kind="stable"), bins)
    shift = np.array([y[r].mean() - p[r].mean() for r in rows])
    weight = np.array([r.size for r in rows]) / p.size
    return (weight * np.abs(shift)).sum(), shift, p[[r[0] for r in rows[1:]]]


def sweep_by_definition(p, y):
    for bins in range(2, p.size + 1):
        shares = [y[r].mean() for r in np.array_split(np.argsort(p), bins)]
        if (np.diff(shares) < 0).any():
            return bins - 1
    return p.size


def cv_by_definition(p, y):
    """Try 1 to 40 bins on the folds of the paper; prefer few within 0.1 percent."""
    losses = np.zeros((10, 40))
    folds = KFold(10, shuffle=True, random_state=1).split(p)
    for number, (train, test) in enumerate(folds):
        for bins in range(1, 41):
            _, shift, starts = es_by_definition(p[train], y[train], bins)
            c_hat = p[test] + shift[np.searchsorted(starts, p[test], side="right")]
            losses[number, bins - 1] = np.mean((c_hat - y[test]) ** 2)
    mean = losses.mean(axis=0)
    return 1 + int(np.flatnonzero(mean <= 1.001 * mean.min())[0])


COUNTS = {
    "es15": lambda p, y: 15,  # noqa: ARG005
    "es-sweep": sweep_by_definition,
    "es-cv": cv_by_definition,
}


@pytest.mark.parametrize("n", [1000, 3000])
@pytest.mark.parametrize("method", COUNTS)
def test_errors_on_the_papers_data_follow_the_definition(n, method):
    """Mean map error and mean error of the error over the derivates of one shape."""
    _, _, c_test = sample("square", 0.0, 20_000, seed=99)
    ours, expected = [], []
    for error in np.arange(0, 0.101, 0.02).round(3):
        p, y, c = sample("square", float(error), n, seed=0)
        p_test = predictions("square", mixing_amount("square", float(error)), c_test)
        truth = np.abs(c - p).mean()
        seed = {"random_state": 1} if method == "es-cv" else {}
        fitted = cb.make_calibrator(method, **seed).fit(p, y)
        ece = cb.calibration_error(y, p, method=method, debias=False, random_state=1)
        ours.append([np.abs(fitted.map_(p_test) - c_test).mean(), abs(ece - truth)])
        ece, shift, starts = es_by_definition(p, y, COUNTS[method](p, y))
        c_hat = p_test + shift[np.searchsorted(starts, p_test, side="right")]
        expected.append([np.abs(c_hat - c_test).mean(), abs(ece - truth)])
    assert_allclose(np.mean(ours, axis=0), np.mean(expected, axis=0), atol=1e-12)


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("shape", ["square", "stairs"])
@pytest.mark.parametrize("n", [1000, 3000])
def test_binned_methods_equal_the_papers_code(shared_data, shape, n):
    """Row by row: bins, raw and debiased errors, and the error of the map."""
    _, _, c_test = sample("square", 0.0, 1_000_000, seed=0)
    rows = pl.read_csv(
        shared_data / "reference" / "paper_code_synthetic.csv.gz"
    ).filter(
        pl.col("shape") == shape,
        pl.col("n") == n,
        pl.col("seed") == 0,
        pl.col("error").round(3).is_in([0.0, 0.025, 0.05, 0.1]),
        pl.col("method").is_in(["es15", "es-sweep", "es-cv"]),
    )
    assert len(rows) == 12
    for row in rows.iter_rows(named=True):
        error, method = round(row["error"], 3), row["method"]
        p, y, _ = sample(shape, error, n, seed=0)
        seed = {"random_state": 1} if method == "es-cv" else {}
        fitted = cb.make_calibrator(method, **seed).fit(p, y)
        p_test = predictions(shape, mixing_amount(shape, error), c_test)
        assert fitted.fit_.n_pieces == row["n_bins"]
        map_error = np.abs(fitted.map_(p_test) - c_test).mean()
        assert map_error == pytest.approx(row["map_error"], abs=1e-9)
        options = {"method": method, "random_state": 1}
        for alpha, debias, column, close in [
            (1, False, "ece", 1e-9),
            (2, False, "ece_sq", 1e-9),
            (2, True, "ece_sq_debiased", 1e-9),
            (1, True, "ece_debiased", 2e-5),  # the paper integrates numerically
        ]:
            estimate = cb.calibration_error(y, p, alpha=alpha, debias=debias, **options)
            assert estimate == pytest.approx(row[column], abs=close)


def test_the_expected_error_holds_for_any_beta_distribution():
    a, b = 2.0, 5.0
    amount = mixing_amount("square", 0.04, (a, b))
    # E[c - c^2] of a Beta distribution in closed form.
    whole = a / (a + b) - a * (a + 1) / ((a + b) * (a + b + 1))
    assert amount == pytest.approx(0.04 / whole, abs=1e-5)


def test_c_follows_the_distribution():
    _, _, c = sample("square", 0.01, 20_000, seed=0, distribution=(2.0, 5.0))
    levels = np.array([0.1, 0.5, 0.9])
    expected = beta.ppf(levels, 2.0, 5.0)
    np.testing.assert_allclose(np.quantile(c, levels), expected, atol=0.01)


def test_the_skewed_sample_is_the_papers():
    """The authors show p_distance_c = .004924 of Beta(1.1, 0.1), beta1, 10,000 rows."""
    p, _, c = sample("beta1", 0.005, 10_000, seed=0, distribution=(1.1, 0.1))
    assert round(float(np.abs(p - c).mean()), 6) == pytest.approx(0.004924, abs=1.1e-6)


@pytest.mark.parametrize("distribution", [(1.0,), [1.0, 1.0], (0.0, 1.0), (1.0, "a")])
def test_what_is_no_distribution_is_refused(distribution):
    with pytest.raises(OptionError, match="distribution"):
        sample("square", 0.05, 100, 0, distribution=distribution)


def test_truths_draw_the_papers_data_and_share_their_unseen_rows():
    truth = SyntheticTruth("stairs", 0.05, test_rows=1000)
    data, (p, y, c) = truth.draw(300, 2), sample("stairs", 0.05, 300, 2)
    assert np.array_equal(data.p, p)
    assert np.array_equal(data.y, y)
    assert np.array_equal(data.c, c)
    other = SyntheticTruth("square", 0.1, test_rows=1000)
    assert np.array_equal(truth.unseen().c, other.unseen().c)
    assert (np.diff(truth.unseen().p) >= 0).all()


def test_the_million_unseen_rows_are_the_papers():
    """Seed 0 and a million rows, of which c alone is used."""
    _, _, c = sample("square", 0.0, 1_000_000, 0)
    assert np.array_equal(SyntheticTruth("beta1", 0.1).unseen().c, c)


def test_truths_of_different_kind_have_different_names():
    truths = [
        SyntheticTruth("square", 0.05),
        SyntheticTruth("square", 0.055),
        SyntheticTruth("sqrt", 0.05),
        SyntheticTruth("square", 0.05, distribution=(2.0, 1.0)),
        SyntheticTruth("square", 0.05, test_rows=5),
    ]
    assert len({truth.name for truth in truths}) == len(truths)


@pytest.mark.parametrize("shape", SHAPES)
def test_mixed_maps_undo_the_shape(shape):
    """At predictions of known c; where a shape bends or leaps, to a grid's cell."""
    c = np.random.default_rng(0).random(2000)
    function = SHAPES[shape]
    inverted = MixedShape(function, 0.6).transform(predictions(function, 0.6, c))
    assert_allclose(inverted, c, atol=5e-5)
    assert np.median(np.abs(inverted - c)) < 1e-8


def fitted(truth, n, seed=0):
    data = truth.draw(n, seed)
    return MixedShape(truth.function).fit(data.p, data.y)


def test_the_amount_is_where_the_likelihood_is_flat():
    """For the square c is in closed form, and so the derivative of the likelihood."""
    truth = SyntheticTruth("square", 0.1)
    data = truth.draw(2000, 0)

    def slope(amount):
        root = np.sqrt((1 - amount) ** 2 + 4 * amount * data.p)
        c = (root - (1 - amount)) / (2 * amount)
        # From (1 - a) c + a c^2 = p by implicit differentiation.
        change = (c - c**2) / (1 - amount + 2 * amount * c)
        return ((data.y - c) / (c * (1 - c)) * change).sum()

    amount = fitted(truth, 2000).amount
    assert_allclose(amount, brentq(slope, 0.05, 0.99), atol=1e-5)


def test_the_amount_comes_near_to_the_truth():
    for shape in ("stairs", "wiggle", "jump"):
        truth = SyntheticTruth(shape, 0.06)
        amount = mixing_amount(truth.function, 0.06)
        assert_allclose(fitted(truth, 200_000).amount, amount, atol=0.03)


def test_an_amount_may_be_none_at_all():
    truth = SyntheticTruth("square", 0.0)
    amounts = [fitted(truth, 500, seed).amount for seed in range(6)]
    assert min(amounts) == 0.0


def test_weight_two_is_the_row_twice():
    data = SyntheticTruth("beta1", 0.05).draw(300, 1)
    weight = 1.0 + (np.arange(300) % 2)
    twice = np.repeat(np.arange(300), weight.astype(int))
    shape = SHAPES["beta1"]
    one = MixedShape(shape).fit(data.p, data.y, weight)
    other = MixedShape(shape).fit(data.p[twice], data.y[twice])
    assert_allclose(one.amount, other.amount, atol=1e-6)


def test_the_oracle_takes_part_in_a_design_and_is_the_best(tmp_path):
    design = Design(
        contenders=[Contender.of("beta"), Oracle()],
        truths=[SyntheticTruth("wiggle", 0.06, test_rows=5000)],
        sizes=[1000],
        seeds=range(3),
    )
    rows = run(design, tmp_path)
    assert set(rows["failure"]) == {""}
    error = {m: rows["map_error"][rows["method"] == m] for m in ("beta", "oracle")}
    assert (error["oracle"] < error["beta"]).all()
    estimate = rows["estimate"][rows["method"] == "oracle"]
    assert_allclose(estimate, 0.06, atol=0.03)


def test_the_oracle_knows_synthetic_truths_alone():
    @dataclass
    class Mine:
        name: str = "my data"

    with pytest.raises(OptionError, match="'my data' is another kind"):
        Oracle().family_for(Mine())
