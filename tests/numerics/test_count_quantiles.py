import numpy as np

from calibrant.numerics.count_quantiles import count_quantiles


def test_rows_that_count_less_than_one_give_quantiles_within_the_values():
    values, weight = np.array([[0.1], [0.5]]), np.array([0.2, 0.3])
    found = count_quantiles(values, weight, (0.5, 1.0))[:, 0]
    assert found.tolist() == [0.1, 0.5]
