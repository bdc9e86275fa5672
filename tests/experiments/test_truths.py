"""Shapes, distributions and truths."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta

from calibrant.exceptions import OptionError, UnknownNameError
from calibrant.experiments.shapes import PAPER_SHAPES, SHAPES, add_shape, find_shape
from calibrant.experiments.synthetic import mixing_amount, sample
from calibrant.experiments.truths import SyntheticTruth


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
        (lambda c: 1 - c, "must nowhere fall; at c = 0 it is 1"),
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
    truth = SyntheticTruth.of("stairs", 0.05, test_rows=1000)
    data, (p, y, c) = truth.draw(300, 2), sample("stairs", 0.05, 300, 2)
    assert np.array_equal(data.p, p)
    assert np.array_equal(data.y, y)
    assert np.array_equal(data.c, c)
    other = SyntheticTruth.of("square", 0.1, test_rows=1000)
    assert np.array_equal(truth.unseen().c, other.unseen().c)
    assert (np.diff(truth.unseen().p) >= 0).all()


def test_the_million_unseen_rows_are_the_papers():
    """Seed 0 and a million rows, of which c alone is used."""
    _, _, c = sample("square", 0.0, 1_000_000, 0)
    assert np.array_equal(SyntheticTruth.of("beta1", 0.1).unseen().c, c)


def test_truths_of_different_kind_have_different_names():
    truths = [
        SyntheticTruth.of("square", 0.05),
        SyntheticTruth.of("square", 0.055),
        SyntheticTruth.of("sqrt", 0.05),
        SyntheticTruth.of("square", 0.05, distribution=(2.0, 1.0)),
        SyntheticTruth.of("square", 0.05, test_rows=5),
    ]
    assert len({truth.name for truth in truths}) == len(truths)


@pytest.mark.slow
def test_the_example_of_the_docs_runs(tmp_path, monkeypatch, capsys):
    """With fewer seeds and in this process."""
    text = (Path(__file__).parents[2] / "docs" / "reproduce.md").read_text("utf-8")
    code = re.search(r"```python\n(import calibrant.*?)```", text, re.DOTALL)[1]
    for long, short in (("range(10)", "range(2)"), ("jobs=2", "jobs=1")):
        assert long in code
        code = code.replace(long, short)
    monkeypatch.chdir(tmp_path)
    try:
        exec(code, {})  # noqa: S102
    finally:
        del SHAPES["cube"]
    assert "| cube | " in capsys.readouterr().out
