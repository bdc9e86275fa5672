"""Tables of the arena against values computed by hand."""

import numpy as np
import pytest

from calibrant.experiments.arena_tables import arena_tables, compare_in_cells


@pytest.fixture
def rows():
    """Three cells of two data sets, three methods; the last one failed once."""
    loss = [0.5, 0.4, 0.65, 0.3, 0.3, 0.2, 0.7, 0.75, np.nan]
    base = np.repeat([0.5, 0.3, 0.7], 3)
    return {
        "method": np.tile(["none", "a", "b"], 3),
        "shape": np.repeat(["x | m | event", "x | k | event", "z | m | event"], 3),
        "error": np.full(9, np.nan),
        "n": np.full(9, 200),
        "seed": np.zeros(9, dtype=int),
        "failure": np.array([""] * 8 + ["ValueError: no"]),
        "log_loss": np.array(loss),
        "difference": np.array(loss) - base,
        "difference_error": np.tile([0.0, 0.04, 0.16], 3),
        **{
            name: np.linspace(0.1, 0.9, 9)
            for name in ("brier", "smooth_error", "es15_error", "accuracy")
        },
        "fit_seconds": np.tile([0.0, 0.002, 0.004], 3),
    }


def test_methods_are_compared_in_each_cell(rows):
    found = compare_in_cells(rows)
    assert found["data"].tolist() == ["x"] * 6 + ["z"] * 3
    expected = [0.1, 0.0, 0.25, 0.1, 0.1, 0.0, 0.0, 0.05, 0.0]
    np.testing.assert_allclose(found["excess"], expected, atol=1e-12)
    # Ties are not wins, and the failed method wins against none.
    assert found["win"].tolist() == [0.5, 1.0, 0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 0.0]
    assert found["harmed"].tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 0]


def test_tables_have_means_and_errors_clustered_by_data_set(rows):
    tables = {table.kind.name: table for table in arena_tables({"binary": rows})}
    excess = tables["excess"]
    assert excess.methods == ("a", "none", "b")
    assert excess.shapes == ("200 rows",)
    assert excess.study == "Binary, 3 cells of 3 models"
    np.testing.assert_allclose(excess.values[0], [50, 200 / 3, 250 / 3])
    # Residuals of none: twice 100/3 in x, -200/3 in z; so the sums are +-200/3.
    expected = np.sqrt(2 * (200 / 3) ** 2 * 2) / 3
    assert excess.errors[0, 1] == pytest.approx(expected)
    np.testing.assert_allclose(tables["wins"].values[0], [1 / 3] * 3)
    np.testing.assert_allclose(tables["harm"].values[0], [100 / 3, 0.0, 0.0])
    np.testing.assert_allclose(tables["time"].values[0], [2.0, 0.0, 8 / 3])
    assert excess.draws == 2
