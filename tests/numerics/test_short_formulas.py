"""Functions as few polynomials, against the functions themselves."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant.numerics.short_formulas import (
    Piece,
    exact_pieces,
    fewest_pieces,
    values_of_pieces,
    with_clips,
)

NONE = np.array([])
P = np.append(np.linspace(0, 1, 5001), expit(np.linspace(-30, 30, 4999)))
P.sort()


def steep(p):
    """The map of a slope below 1 between logits, steep at 0 and 1."""
    return expit(0.4 * logit(np.clip(p, 1e-9, 1 - 1e-9)) + 0.3)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-9])
def test_differences_stay_within_the_tolerance(tolerance):
    pieces = fewest_pieces(steep, 5, tolerance, np.array([1e-9, 1 - 1e-9]))
    error = np.abs(values_of_pieces(pieces, P) - steep(P)).max()
    assert 0.1 * tolerance < error <= 1.01 * tolerance


def test_a_higher_degree_needs_fewer_pieces():
    counts = [len(fewest_pieces(steep, d, 1e-4, NONE)) for d in (1, 3, 5, 9)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 5 * counts[-1]


def test_lines_with_jumps_are_found_as_they_are():
    def steps(p):
        return np.select([p < 0.2, p < 1.0], [0.1 + 0.5 * p, 0.3], 0.9)

    assert exact_pieces(steps, 1, np.array([0.2, 1.0])) == [
        Piece(0.2, 0.0, (0.1, 0.5)),
        Piece(1.0, 0.0, (0.3,)),
        Piece(1.0, 0.0, (0.9,)),
    ]


def test_a_line_within_one_part_in_a_billion_is_kept():
    joints = np.array([0.3, 0.3 + 1e-9])

    def cliff(p):
        return np.interp(p, [0, *joints, 1], [0.1, 0.1, 0.9, 0.9])

    p = np.linspace(*joints, 11)[:-1]
    pieces = exact_pieces(cliff, 1, joints)
    assert np.abs(values_of_pieces(pieces, p) - cliff(p)).max() < 1e-9


def test_what_is_no_polynomial_is_refused():
    assert exact_pieces(np.sqrt, 2, np.array([0.5])) is None


def test_clips_are_found_where_lines_cross_0_and_1():
    def clipped(p):
        return np.clip(3.0 * p - 1.0, 0.0, 1.0)

    np.testing.assert_allclose(with_clips(clipped, NONE), [1 / 3, 2 / 3], rtol=1e-15)


def test_pieces_whose_powers_overflow_are_constant():
    joints = np.array([1e-300, 1e-300 + 1e-314])
    pieces = exact_pieces(lambda p: np.full(p.shape, 0.25), 1, joints)
    assert pieces == [Piece(1.0, 0.0, (0.25,))]
