"""A search over complexity ends once it has left the best behind."""

import numpy as np
import pytest

from calibrant.calibrators import piecewise
from calibrant.calibrators.piecewise import PiecewiseLinear
from calibrant.core.sample import BinarySample
from calibrant.experiments import synthetic
from calibrant.numerics.cross_validation import is_past_the_best, simplest_weight


@pytest.mark.parametrize(
    "losses",
    [
        [0.2, 0.1, 0.11, 0.12, 0.11],  # three in a row only
        [0.1, 0.1001, 0.1001, 0.1, 0.1001, 0.1001],  # within 0.1 percent
        [0.2, 0.3, 0.3, 0.3, 0.1],  # the least is the last
    ],
)
def test_the_search_goes_on(losses):
    assert not is_past_the_best(
        np.array(losses), simplest_weight(np.array(losses), 0.001)
    )


def test_the_search_goes_on_while_one_of_the_last_weighs():
    losses = np.array([0.1, 0.2, 0.2, 0.2, 0.2])
    assert not is_past_the_best(losses, np.array([0.8, 0.0, 0.0, 0.2, 0.0]))


@pytest.mark.parametrize("scale", ["prob", "logit"])
def test_the_map_is_that_of_the_whole_search(scale, monkeypatch):
    p, y, _ = synthetic.sample("beta2", 0.05, 3000, 1)
    sample, family = BinarySample(p, y), PiecewiseLinear(scale=scale)
    short = family.fit(sample)
    monkeypatch.setattr(piecewise, "is_past_the_best", lambda *_: False)
    whole = family.fit(sample)
    assert short.losses.size < whole.losses.size
    np.testing.assert_array_equal(short.map(p), whole.map(p))
