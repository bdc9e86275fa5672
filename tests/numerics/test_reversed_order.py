"""The test of predictions that are upside down."""

import numpy as np
import pytest

from calibrant.numerics.reversed_order import LEVEL, find_reversal


def test_correlation_is_that_of_numpy_and_weights_are_copies():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < 1.0 - p).astype(float)
    count = rng.integers(1, 4, 200)
    found = find_reversal(p, y, count.astype(float))
    many_p, many_y = np.repeat(p, count), np.repeat(y, count)
    correlation = np.corrcoef(many_p, many_y)[0, 1]
    assert found.correlation == pytest.approx(correlation)
    assert find_reversal(p, 1.0 - y, count.astype(float)) is None


def test_models_without_skill_are_rarely_upside_down():
    rng = np.random.default_rng(0)
    ones, draws = np.ones(500), 2000
    found = sum(
        find_reversal(rng.random(500), (rng.random(500) < 0.3) + 0.0, ones) is not None
        for _ in range(draws)
    )
    # Four standard errors of a share of 1 %.
    assert abs(found / draws - LEVEL) < 4.0 * np.sqrt(LEVEL / draws)


@pytest.mark.parametrize("p", [np.full(40, 0.3), np.linspace(0.0, 1.0, 29)])
def test_no_spread_or_few_rows_are_nothing_to_test(p):
    assert find_reversal(p, (p < 0.5).astype(float), np.ones(p.size)) is None
