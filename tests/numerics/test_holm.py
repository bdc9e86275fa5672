from calibrant.numerics.paired import holm


def test_holm_is_the_published_procedure():
    # by hand: sorted 0.01 * 4, 0.02 * 3, 0.03 * 2, 0.5 * 1, then never falling
    assert holm([0.5, 0.01, 0.03, 0.02]).tolist() == [0.5, 0.04, 0.06, 0.06]


def test_adjusted_values_are_chances():
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]
