"""Models of the arena: data sets, splits, and the cache."""

from pathlib import Path

import numpy as np
import pytest

from calibrant.experiments import arena_models
from calibrant.experiments.arena_models import DATA_SETS, Training, train_models
from calibrant.experiments.arena_sets import find_sets


@pytest.mark.parametrize(
    "name", ["moons", "friedman2", "five", "grown wine", "breast cancer"]
)
def test_data_sets_have_classes_counted_from_zero(name):
    x, y = DATA_SETS[name]()
    counts = np.bincount(y)
    assert len(x) == len(y)
    assert counts.min() > 0
    assert counts.size == {"five": 5, "grown wine": 3}.get(name, 2)
    again, _ = DATA_SETS[name]()
    assert np.array_equal(x, again)


@pytest.fixture
def small(monkeypatch):
    models = {name: arena_models.classifiers()[name] for name in ("lda", "tree")}
    monkeypatch.setattr(arena_models, "classifiers", lambda: models)
    monkeypatch.setattr(arena_models, "QUICK_DATA_SETS", ("breast cancer", "digits"))


@pytest.mark.usefixtures("small")
def test_models_are_trained_once(tmp_path):
    reports = []
    options = {"quick": True, "folder": tmp_path}
    place = train_models(**options, progress=lambda *args: reports.append(args))
    sets = find_sets(place)
    assert [(s.data, s.model) for s in sets] == [
        ("breast cancer", "lda"),
        ("digits", "tree"),
    ]
    assert [one.facts[:3] for one in sets] == [(2, 204, 309), (10, 646, 972)]
    assert sorted(reports) == [(1, 2), (2, 2)]
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*.npz")}
    assert train_models(**options) == place
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*.npz")} == before


def test_decision_values_are_kept_as_logits(tmp_path):
    path = tmp_path / "svm.npz"
    Training("breast cancer", "support vectors", str(path)).run()
    with np.load(Path(path)) as arrays:
        logits, y = arrays["logits_test"], arrays["y_test"]
    assert (logits[:, 0] == 0.0).all()
    assert (logits[:, 1] > 0).mean() == pytest.approx(0.63, abs=0.1)
    assert ((logits[:, 1] > 0) == y).mean() > 0.9
