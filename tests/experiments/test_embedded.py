"""Digits drawn from densities, whose exact probabilities are known."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from calibrant.experiments import embedded
from calibrant.experiments.prediction_sets import Event, outcomes_of


def test_posterior_is_bayes_rule():
    population = embedded.digit_population()
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
    population = embedded.digit_population()
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


def test_made_once_and_never_by_halves(tmp_path, monkeypatch):
    calls = []

    def failing(folder, rows):
        calls.append(rows)
        (folder / "network").mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(embedded, "_write", failing)
    with pytest.raises(KeyboardInterrupt):
        embedded.embedded_predictions(quick=True, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []

    def writing(folder, rows):
        calls.append(rows)
        (folder / "network").mkdir(parents=True)
        np.save(folder / "network" / "y_test.npy", np.zeros(1))

    monkeypatch.setattr(embedded, "_write", writing)
    for _ in range(2):
        (model,) = embedded.embedded_predictions(quick=True, folder=tmp_path)
    assert model.name == "network"
    assert calls == [embedded.QUICK_ROWS] * 2


def test_two_at_once_both_find_it(tmp_path, monkeypatch):
    def slower(folder, rows):  # noqa: ARG001
        (folder / "network").mkdir(parents=True)
        np.save(folder / "network" / "y_test.npy", np.zeros(1))
        place = next(tmp_path.glob(".digits-*")).name.split("-")[1]
        (tmp_path / f"digits-{place}" / "forest").mkdir(parents=True)
        np.save(tmp_path / f"digits-{place}" / "forest" / "y_test.npy", np.zeros(1))

    monkeypatch.setattr(embedded, "_write", slower)
    (model,) = embedded.embedded_predictions(folder=tmp_path)
    assert model.name == "forest"  # the one that was there first
    assert len(list(tmp_path.iterdir())) == 1


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "own"))
    assert embedded.cache_folder() == tmp_path / "own"
    monkeypatch.delenv("CALIBRANT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert embedded.cache_folder() == tmp_path / "calibrant"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert embedded.cache_folder() == tmp_path / ".cache" / "calibrant"
