"""Designs, contenders, and the oracle, which knows the shape of a truth."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from calibrant.core.sample import BinarySample
from calibrant.exceptions import OptionError, UnknownNameError
from calibrant.experiments import Contender, Design, SyntheticTruth, run
from calibrant.experiments.design import MixedShape, MixedShapeFit, Oracle
from calibrant.experiments.synthetic import SHAPES, mixing_amount, predictions


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"contenders": []}, "contenders must have at least one"),
        ({"sizes": [10, 10]}, "sizes must have at least one entry and no duplicates"),
        ({"sizes": [0]}, "sizes must be a whole number of at least 1"),
        ({"seeds": [-1]}, "seeds must be a whole number of at least 0"),
    ],
)
def test_designs_are_checked(small_design, change, words):
    design = small_design()
    kept = {
        name: getattr(design, name)
        for name in ("contenders", "truths", "sizes", "seeds")
    }
    with pytest.raises(OptionError, match=words):
        Design(**(kept | change))


@pytest.mark.parametrize("shape", SHAPES)
def test_mixed_maps_undo_the_shape(shape):
    """At predictions of known c; where a shape bends or leaps, to a grid's cell."""
    c = np.random.default_rng(0).random(2000)
    function = SHAPES[shape]
    inverted = MixedShapeFit(function, 0.6).map(predictions(function, 0.6, c))
    assert_allclose(inverted, c, atol=5e-5)
    assert np.median(np.abs(inverted - c)) < 1e-8


def fitted(truth, n, seed=0):
    data = truth.draw(n, seed)
    return MixedShape(truth.function).fit_sample(BinarySample(data.p, data.y))


def test_the_amount_is_where_the_likelihood_is_flat():
    """For the square c is in closed form, and so the derivative of the likelihood."""
    truth = SyntheticTruth.of("square", 0.1)
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
        truth = SyntheticTruth.of(shape, 0.06)
        amount = mixing_amount(truth.function, 0.06)
        assert_allclose(fitted(truth, 200_000).amount, amount, atol=0.03)


def test_an_amount_may_be_none_at_all():
    truth = SyntheticTruth.of("square", 0.0)
    amounts = [fitted(truth, 500, seed).amount for seed in range(6)]
    assert min(amounts) == 0.0


def test_weight_two_is_the_row_twice():
    data = SyntheticTruth.of("beta1", 0.05).draw(300, 1)
    weight = 1.0 + (np.arange(300) % 2)
    twice = np.repeat(np.arange(300), weight.astype(int))
    family = MixedShape(SHAPES["beta1"])
    one = family.fit_sample(BinarySample(data.p, data.y, weight))
    other = family.fit_sample(BinarySample(data.p[twice], data.y[twice]))
    assert_allclose(one.amount, other.amount, atol=1e-6)


def test_the_oracle_takes_part_in_a_design_and_is_the_best(tmp_path):
    design = Design(
        contenders=[Contender.of("beta"), Contender.oracle()],
        truths=[SyntheticTruth.of("wiggle", 0.06, test_rows=5000)],
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
        Oracle().family_of(Mine())


def test_contenders_are_found_again_by_their_repr():
    class Anonymous:
        def fit_sample(self, sample):
            raise NotImplementedError

    with pytest.raises(OptionError, match="make it a dataclass"):
        Contender("mine", Anonymous())
    with pytest.raises(UnknownNameError, match="unknown method"):
        Contender.of("mine")


@pytest.mark.parametrize("method", ["pl", "pl3", "pl-de", "platt", "beta"])
def test_every_twentieth_row_is_as_good_as_all(method, tmp_path):
    """To a tenth of the last printed digit, a thousandth of thousandths."""
    contenders = [
        Contender.of(method, name=f"every {every}", every=every) for every in (1, 20)
    ]
    design = Design(
        contenders=contenders,
        truths=[SyntheticTruth.of("stairs", 0.1)],
        sizes=[1000],
        seeds=[0],
    )
    rows = run(design, tmp_path)
    assert rows["map_error"][0] == pytest.approx(rows["map_error"][1], abs=1e-6)
