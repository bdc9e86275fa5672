"""Shapes, and new ones of users."""

import numpy as np
import pytest

from calibrant.exceptions import OptionError, UnknownNameError
from calibrant.experiments.shapes import PAPER_SHAPES, SHAPES, add_shape, find_shape
from calibrant.experiments.synthetic import mixing_amount, sample


@pytest.fixture
def cube():
    add_shape("cube", lambda c: c**3)
    yield "cube"
    del SHAPES["cube"]


def test_a_new_shape_is_one_function(cube):
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
        add_shape("odd", shape)
    assert "odd" not in SHAPES


def test_names_of_shapes_are_not_reused():
    with pytest.raises(OptionError, match="'square' exists already"):
        add_shape("square", lambda c: c)
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
