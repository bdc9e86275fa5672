"""Labels of clusters become numbers once."""

import datetime as dt

import numpy as np
import pytest

from calibrant.core.sample import cluster_codes
from calibrant.exceptions import MissingValueError, OptionError


@pytest.mark.parametrize(
    "values",
    [
        np.array([7, 7, 3, 7]),
        np.array(["x", "x", "y", "x"]),
        np.array([0.5, 0.5, -1.0, 0.5]),
        np.array([1, 1, "1", 1], dtype=object),
        np.array([dt.date(2024, 1, 1)] * 2 + ["b", dt.date(2024, 1, 1)]),
    ],
)
def test_any_labels_that_are_equal_share_a_number(values):
    assert cluster_codes(values, name="clusters").tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_row_without_a_cluster_is_named(missing):
    values = np.array(["a", missing, "b"], dtype=object)
    with pytest.raises(MissingValueError, match=r"clusters .* row 1") as found:
        cluster_codes(values, name="clusters")
    assert found.value.place == (1,)


def test_lists_are_no_labels():
    values = np.empty(2, dtype=object)
    values[:] = [[1], [2]]
    with pytest.raises(OptionError, match="simple values"):
        cluster_codes(values, name="clusters")
