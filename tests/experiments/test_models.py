"""Models trained here: digits with exact probabilities, and those of the arena."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from calibrant.experiments import arena_sets, models
from calibrant.experiments.arena import facts
from calibrant.experiments.models import (
    DATA_SETS,
    digit_models,
    train_model,
    train_models,
)
from calibrant.experiments.prediction_sets import Event, outcomes_of


def test_posterior_is_bayes_rule():
    population = models.digit_population()
    x, _ = population.draw(20, np.random.default_rng(0))
    density = np.zeros((20, 10))
    for k, share in enumerate(population.share):
        for m, weight in enumerate(population.weight[k]):
            root = population.root[k, m]
            gauss = multivariate_normal(population.mean[k, m], root @ root.T)
            density[:, k] += share * weight * gauss.pdf(x)
    expected = density / density.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(population.posterior(x), expected, atol=1e-12)


def test_draws_have_the_moments_of_the_densities():
    population = models.digit_population()
    x, y = population.draw(40_000, np.random.default_rng(1))
    for k in (0, 7):
        mean = population.weight[k] @ population.mean[k]
        spread = x[y == k].std(axis=0) / np.sqrt((y == k).sum())
        assert (np.abs(x[y == k].mean(axis=0) - mean) < 4.5 * spread).all()
    shares = np.bincount(y) / y.size
    np.testing.assert_allclose(shares, population.share, atol=4.5 * 0.0015)


def standard_scores(rows, n_bins):
    """Return differences of labels and exact probabilities in bins of equal size.

    In standard errors, so about standard normal; only of bins whose number of events
    has a variance of at least 5, as smaller counts are not close to normal.
    """
    scores = []
    for part in np.array_split(np.argsort(rows.p, kind="stable"), n_bins):
        exact = rows.exact[part]
        variance = (exact * (1 - exact)).sum()
        if variance >= 5.0:
            scores.append((rows.y[part].sum() - exact.sum()) / np.sqrt(variance))
    return np.array(scores)


@pytest.mark.parametrize("event", ["confidence", "3", "8"])
def test_the_hold_out_agrees_with_exact_probabilities(small_digits, event):
    assert [m.name for m in small_digits] == ["bayes", "boosting", "forest", "network"]
    for model in small_digits:
        rows = outcomes_of(model.holdout(), Event.of(event))
        scores = standard_scores(rows, 30)
        assert scores.size >= 2
        assert abs((scores**2).sum() - scores.size) < 4.5 * np.sqrt(2 * scores.size)
        assert abs(rows.y.sum() - rows.exact.sum()) < 4.5 * np.sqrt(
            (rows.exact * (1 - rows.exact)).sum()
        )


def test_missing_digit_models_are_trained_and_others_kept(tmp_path):
    options = {"rows": dict.fromkeys(("train", "cal", "test", "holdout"), 200)}
    first = digit_models(**options, folder=tmp_path)
    kept, lost = Path(first[0].path), Path(first[1].path)
    times, before = kept.stat().st_mtime_ns, lost.read_bytes()
    lost.unlink()
    assert digit_models(**options, folder=tmp_path) == first
    assert kept.stat().st_mtime_ns == times
    assert lost.read_bytes() == before


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "own"))
    assert models.cache_folder() == tmp_path / "own"
    monkeypatch.delenv("CALIBRANT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert models.cache_folder() == tmp_path / "calibrant"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert models.cache_folder() == tmp_path / ".cache" / "calibrant"


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
    two = {name: models.classifiers()[name] for name in ("lda", "tree")}
    monkeypatch.setattr(models, "classifiers", lambda: two)
    monkeypatch.setattr(models, "QUICK_DATA_SETS", ("breast cancer", "digits"))


@pytest.mark.usefixtures("small")
def test_models_are_trained_once(tmp_path):
    reports = []
    options = {"quick": True, "folder": tmp_path}
    place = train_models(**options, progress=lambda *args: reports.append(args))
    sets = arena_sets(place)
    assert [(s.data, s.name) for s in sets] == [
        ("breast cancer", "lda"),
        ("digits", "tree"),
    ]
    assert [facts(one)[:3] for one in sets] == [(2, 204, 309), (10, 646, 972)]
    assert sorted(reports) == [(1, 2), (2, 2)]
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*.npz")}
    assert train_models(**options) == place
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*.npz")} == before


def test_decision_values_are_kept_as_logits(tmp_path):
    path = tmp_path / "svm.npz"
    train_model("breast cancer", "support vectors", path)
    with np.load(path) as arrays:
        logits, y = arrays["logits_test"], arrays["y_test"]
    assert (logits[:, 0] == 0.0).all()
    assert (logits[:, 1] > 0).mean() == pytest.approx(0.63, abs=0.1)
    assert ((logits[:, 1] > 0) == y).mean() > 0.9
