"""Another rate of events: Bayes' rule, and two rates that cancel."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import OptionError


@pytest.mark.parametrize(("new", "old"), [(0.02, 0.5), (0.7, 0.1)])
def test_it_is_the_rule_of_bayes(new, old):
    """Elkan 2001, theorem 2, written with probabilities in place of logits."""
    p = np.linspace(0.01, 0.99, 9)
    expected = new * (p - p * old) / (old - p * old + new * p - old * new)
    found = cb.adjust_prior(new, old_rate=old).transform(p)
    assert_allclose(found, expected, rtol=1e-12)


def test_there_and_back():
    p = np.linspace(0.01, 0.99, 9)
    there = cb.adjust_prior(0.1, old_rate=0.6)(p)
    assert_allclose(cb.adjust_prior(0.6, old_rate=0.1)(there), p, rtol=1e-12)


def test_simulated_balancing_is_taken_back():
    rng = np.random.default_rng(0)
    y = rng.random(50_000) < 0.03
    p = 1.0 / (1.0 + np.exp(-(2.0 * rng.normal(2.0 * y, 1.0) - 2.0)))
    assert cb.calibration_error(y, p) > 0.1
    assert cb.calibration_error(y, cb.adjust_prior(0.03).transform(p)) < 0.003


@pytest.mark.parametrize("rates", [(0.0, 0.5), (0.1, 1.0), ("a", 0.5), (2, 0.5)])
def test_rates_lie_between_0_and_1(rates):
    with pytest.raises(OptionError, match="_rate must lie strictly between 0 and 1"):
        cb.adjust_prior(rates[0], old_rate=rates[1])
