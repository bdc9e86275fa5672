"""Predictions of all layouts are found, read and divided."""

import numpy as np
import pytest

from calibrant.exceptions import SourceError
from calibrant.experiments import arena_sets
from calibrant.experiments.arena_sets import find_sets

Y = np.tile([0, 1, 1, 0], 10)
P = np.linspace(0.05, 0.95, 40)
THREE = np.tile([[0.2, 0.3, 0.5]], (40, 1))


@pytest.mark.parametrize(
    ("arrays", "classes", "p"),
    [
        ({"p": P, "y": Y}, 2, P),
        ({"conf": P, "y_true": Y, "y_pred": np.ones(40)}, 2, P),
        ({"logits": np.log(THREE), "y": Y}, 3, None),
        ({"probs": THREE, "y": Y}, 3, None),
    ],
)
def test_files_without_splits_are_divided_into_halves(tmp_path, arrays, classes, p):
    (tmp_path / "birds").mkdir()
    np.savez(tmp_path / "birds" / "net.npz", **arrays)
    (one,) = find_sets(tmp_path)
    assert (one.data, one.model) == ("birds", "net")
    cal, test = one.halves()
    assert one.facts[:3] == (classes, 20, 20)
    if p is not None:
        together = np.concatenate([cal.scores[:, 1], test.scores[:, 1]])
        np.testing.assert_array_equal(np.sort(together), p)
        pairs = dict(zip(P, Y, strict=True))
        assert [pairs[value] for value in cal.scores[:, 1]] == cal.labels.tolist()


def test_several_models_of_one_file_share_its_labels(tmp_path):
    splits = {"y_val": Y[:20], "y_test": Y[20:], "idx_val": np.arange(20)}
    models = {f"{m}_{s}": P[:20] for m in ("tree", "forest") for s in ("val", "test")}
    np.savez(tmp_path / "adult.npz", **splits, **models)
    sets = find_sets(tmp_path)
    assert [(one.data, one.model) for one in sets] == [
        ("adult", "forest"),
        ("adult", "tree"),
    ]
    cal, test = sets[0].halves()
    assert cal.labels.tolist() == Y[:20].tolist()
    assert test.scores[:, 1].tolist() == P[:20].tolist()


def test_a_model_with_its_own_splits_keeps_them(tmp_path):
    arrays = {"logits_val": THREE[:10], "y_val": Y[:10]}
    np.savez(tmp_path / "net.npz", **arrays, logits_test=THREE, y_test=Y)
    (one,) = find_sets(tmp_path)
    assert one.facts[:3] == (3, 10, 40)


def test_tables_are_divided_by_data_set_and_model(tmp_path):
    pl = pytest.importorskip("polars")
    columns = {"p": P, "y": Y, "task": ["arc", "mmlu"] * 20, "season": Y}
    table = pl.DataFrame({**columns, "model": ["a"] * 20 + ["b"] * 20, "shots": 1})
    table.write_parquet(tmp_path / "llm.parquet")
    sets = find_sets(tmp_path)
    names = [(one.data, one.model) for one in sets]
    assert names == [(f"llm {t}", f"{m} 1") for t in ("arc", "mmlu") for m in "ab"]
    cal, test = sets[0].halves()
    both = np.concatenate([cal.scores[:, 1], test.scores[:, 1]])
    np.testing.assert_array_equal(np.sort(both), P[:20:2])


def test_many_rows_and_models_are_thinned(tmp_path, monkeypatch):
    monkeypatch.setattr(arena_sets, "MAX_CAL", 5)
    monkeypatch.setattr(arena_sets, "MAX_MODELS", 3)
    for name in "abcde":
        np.savez(tmp_path / f"{name}.npz", p=P, y=Y)
    sets = find_sets(tmp_path)
    assert [one.model for one in sets] == ["a", "c", "e"]
    assert sets[0].facts[:3] == (2, 5, 20)


def test_a_folder_without_predictions_is_an_error(tmp_path):
    np.savez(tmp_path / "other.npz", weights=P)
    with pytest.raises(SourceError, match="contains no predictions"):
        find_sets(tmp_path)
    (tmp_path / "broken.npz").write_text("nothing")
    with pytest.raises(SourceError, match="cannot be read as npz"):
        find_sets(tmp_path)
