"""Random predictions, labels and weights, as real data and as hostile ones."""

import numpy as np
from scipy.special import expit


def size(rng, least=1, most=300):
    """Draw a number of rows; as many below 10 as in each further power of ten."""
    return int(np.exp(rng.uniform(np.log(least), np.log(most + 1))))


def _uniform(rng, n):
    return rng.random(n)


def _beta(rng, n):
    return rng.beta(*rng.uniform(0.1, 3.0, 2), n)


def _rounded(rng, n):
    return np.round(rng.random(n), int(rng.integers(1, 3)))


def _edges(rng, n):
    bins = int(rng.choice([2, 3, 5, 7, 10, 15, 20, 49]))
    return rng.integers(0, bins + 1, n) / bins


def _few(rng, n):
    return rng.choice(rng.random(int(rng.integers(1, 6))), n)


def _certain(rng, n):
    return np.where(rng.random(n) < 0.5, rng.integers(0, 2, n), rng.random(n))


def _logits(rng, n):
    return expit(rng.normal(rng.normal(), rng.choice([0.5, 2.0, 8.0, 30.0]), n))


def _tiny(rng, n):
    p = 10.0 ** -rng.uniform(0.0, rng.choice([3.0, 20.0, 323.0]), n)
    return p if rng.random() < 0.7 else 1.0 - p


def _neighbours(rng, n):
    centre = rng.choice([0.5, 0.3, 0.999, 1e-3, 1e-300])
    return centre + np.spacing(centre) * rng.integers(-8, 9, n)


def _single(rng, n):
    return rng.random(n).astype(np.float32).astype(np.float64)


KINDS = (
    _uniform,
    _beta,
    _rounded,
    _edges,
    _few,
    _certain,
    _logits,
    _tiny,
    _neighbours,
    _single,
)


def predictions(rng, n):
    """Draw predictions of one kind, or of two."""
    kinds = rng.choice(len(KINDS), 2)
    p = KINDS[kinds[0]](rng, n)
    if rng.random() < 0.3:
        p = np.where(rng.random(n) < 0.5, p, KINDS[kinds[1]](rng, n))
    return np.clip(p, 0.0, 1.0)


def labels(rng, p):
    """Draw labels, 0.0 or 1.0, that follow the predictions more or less."""
    maps = (
        p,
        np.clip(rng.uniform(-0.5, 0.5) + rng.uniform(0.0, 2.0) * p, 0.0, 1.0),
        p ** rng.uniform(0.3, 3.0),
        1.0 - p,
        p > rng.random(),
        np.full(p.size, rng.choice([0.0, 0.1, 0.5, 1.0])),
    )
    truth = maps[int(rng.choice(len(maps), p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1]))]
    return (rng.random(p.size) < truth).astype(np.float64)


def sample(rng, least=1, most=300):
    """Draw predictions and labels."""
    p = predictions(rng, size(rng, least, most))
    return p, labels(rng, p)


def counts(rng, n):
    """Draw weights that are counts, some 0, not all."""
    drawn = rng.integers(0, 5, n)
    drawn[rng.integers(n)] = int(rng.integers(1, 5))
    return drawn


def class_rows(rng, n, k):
    """Draw rows of class probabilities, which may tie, and labels."""
    concentration = rng.choice([0.1, 1.0, 5.0])
    votes = int(rng.choice([4, 7, 10]))
    logits = np.round(rng.normal(0.0, 2.0, (n, k)), int(rng.integers(0, 3)))
    raised = np.exp(logits)
    kinds = (
        rng.dirichlet(np.full(k, concentration), n),
        rng.multinomial(votes, np.ones(k) / k, n) / votes,
        raised / raised.sum(axis=1, keepdims=True),
    )
    prob = kinds[int(rng.integers(len(kinds)))]
    happened = (rng.random((n, 1)) > prob.cumsum(axis=1)).sum(axis=1)
    y = np.where(rng.random(n) < 0.8, happened, rng.integers(0, k, n))
    return prob, np.minimum(y, k - 1)
