"""Figures show what they say."""

import numpy as np
import pytest

from calibrant.experiments import figures
from calibrant.experiments.synthetic import PAPER_SHAPES, sample


def test_shapes_are_drawn_with_two_mixtures():
    axes = figures.base_shapes().axes
    assert [ax.get_title() for ax in axes] == list(PAPER_SHAPES)
    square = {line.get_label(): line.get_data() for line in axes[0].lines}
    p, c = square["shape"]
    np.testing.assert_allclose(p, c**2)
    p, c = square["mixed, error 0.07"]
    assert np.trapezoid(np.abs(p - c), c) == pytest.approx(0.07, abs=1e-5)


def test_comparisons_have_the_truth_and_four_diagrams():
    figure = figures.comparison("square")
    p, _, c = sample("square", 0.1, 10_000, 0)
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert titles[0] == f"square: true error = {np.abs(p - c).mean():.3f}"
    assert [title.split(":")[0] for title in titles[1:]] == list(figures.COMPARED)


def test_the_example_is_the_shape_itself():
    data = figures.example()
    assert data.p.size == 3000
    odds = data.c**2 / (1 - data.c) ** 2.2 * 0.52**2.2 / 0.48**2
    np.testing.assert_allclose(data.p, odds / (1 + odds))


def test_errors_of_fifty_instances_are_drawn():
    first = figures.truth_and_classical().axes[0]
    segments = first.collections[0].get_segments()
    assert len(segments) == 50
    data = figures.example()
    for (p, low), (_, high) in segments:
        at = np.flatnonzero(data.p == p)[0]
        assert (low, high) == (p, data.c[at])


def test_diagrams_of_chosen_pieces():
    titles = [ax.get_title() for ax in figures.chosen_pieces().axes if ax.get_title()]
    assert [title.split(":")[0] for title in titles] == ["es-cv", "pl", "pl3"]
