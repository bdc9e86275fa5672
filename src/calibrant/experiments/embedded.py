"""An embedded pseudo-real set: digits drawn from densities, so that truth is exact.

The handwritten digits that scikit-learn ships are reduced to a few principal
components, and a mixture of Gaussians is fitted to each class. Any number of rows can
be drawn from these densities, and the probability of each class given a row is known
exactly. Classifiers are trained on some rows and predict the others. So there are two
ways to the true calibration map: from labels, and from exact probabilities.

Created once and kept in a cache folder: ``$CALIBRANT_CACHE`` if set, else
``$XDG_CACHE_HOME/calibrant``, else ``~/.cache/calibrant``.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.__about__ import __version__
from calibrant.core.probabilities import softmax
from calibrant.experiments.prediction_sets import StoredPredictions, find_predictions

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector

N_COMPONENTS = 5
N_GAUSSIANS = 2
"""Principal components, and Gaussians per class: enough of both that the best
classifier is right in most rows, but far from all."""

RIDGE = 0.05
"""Added to the variances of components whose average variance is 1."""

ROWS = {"train": 3000, "cal": 5000, "test": 10_000, "holdout": 700_000}
QUICK_ROWS = {"train": 1000, "cal": 2000, "test": 10_000, "holdout": 60_000}
SEED = 0
CHUNK = 50_000


@dataclass(frozen=True, eq=False)
class Population:
    """Classes as mixtures of Gaussians."""

    share: FloatVector  # probability of each class, (k,)
    weight: FloatMatrix  # weights of the Gaussians of each class, (k, m)
    mean: Any  # their means, (k, m, d)
    root: Any  # their lower Cholesky factors, (k, m, d, d)

    def draw(
        self, rows: int, rng: np.random.Generator
    ) -> tuple[FloatMatrix, IntVector]:
        """Draw inputs and their classes."""
        y = rng.choice(self.share.size, size=rows, p=self.share)
        part = (rng.random(rows)[:, None] > self.weight[y].cumsum(axis=1)).sum(axis=1)
        part = np.minimum(part, self.weight.shape[1] - 1)
        noise = rng.standard_normal((rows, self.mean.shape[2]))
        x = self.mean[y, part] + np.einsum("nij,nj->ni", self.root[y, part], noise)
        return x, y

    def posterior(self, x: FloatMatrix) -> FloatMatrix:
        """Return the exact probability of each class given inputs."""
        from scipy.linalg import solve_triangular
        from scipy.special import logsumexp

        logs = np.empty((*self.weight.shape, x.shape[0]))
        for place in np.ndindex(*self.weight.shape):
            root = self.root[place]
            z = solve_triangular(root, (x - self.mean[place]).T, lower=True)
            volume = np.log(np.diag(root)).sum()
            logs[place] = (
                np.log(self.weight[place]) - volume - 0.5 * (z * z).sum(axis=0)
            )
        joint = logsumexp(logs, axis=1) + np.log(self.share)[:, None]
        return softmax(joint.T)


def fit_population(table: FloatMatrix, y: IntVector) -> Population:
    """Return densities fitted to a table of real rows, always the same."""
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture

    components = min(N_COMPONENTS, table.shape[1])
    x = PCA(components, svd_solver="full").fit_transform(table)
    x /= np.sqrt(np.square(x).mean())
    mixture = GaussianMixture(N_GAUSSIANS, reg_covar=RIDGE, random_state=SEED)
    fits = []
    for k in range(y.max() + 1):
        mixture.fit(x[y == k])
        root = np.linalg.cholesky(mixture.covariances_)
        fits.append((mixture.weights_, mixture.means_, root))
    parts = [np.stack(part) for part in zip(*fits, strict=True)]
    return Population(np.bincount(y) / y.size, *parts)


@cache
def digit_population() -> Population:
    """Return the densities fitted to the digits."""
    from sklearn.datasets import load_digits

    return fit_population(*load_digits(return_X_y=True))


def classifiers() -> dict[str, Any]:
    """Return the untrained classifiers: a neural network and three others."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neural_network import MLPClassifier

    return {
        "network": MLPClassifier(
            (64, 64), max_iter=150, alpha=0.0, tol=0.0, random_state=SEED
        ),
        "forest": RandomForestClassifier(30, max_depth=12, random_state=SEED),
        "boosting": HistGradientBoostingClassifier(
            max_iter=30, early_stopping=False, random_state=SEED
        ),
        "bayes": GaussianNB(),
    }


def cache_folder() -> Path:
    """Return the folder of embedded sets."""
    if own := os.environ.get("CALIBRANT_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "calibrant")


def embedded_predictions(
    *,
    quick: bool = False,
    rows: dict[str, int] | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> list[StoredPredictions]:
    """Return the embedded models, created on the first call and cached.

    Parameters
    ----------
    quick : bool
        Fewer rows.
    rows : dict, optional
        Rows of the splits "train", "cal", "test" and "holdout".
    folder : path, optional
        Where to keep them, instead of the cache folder.

    Returns
    -------
    list of StoredPredictions
        One per classifier, with exact probabilities of the hold-out.
    """
    rows = {**(QUICK_ROWS if quick else ROWS), **(rows or {})}
    root = Path(folder) if folder is not None else cache_folder()
    place = root / f"digits-{_digest(rows)}"
    if not place.is_dir():
        _create(place, rows)
    return find_predictions(place)


def _digest(rows: dict[str, int]) -> str:
    """Return a hash of everything the set depends on."""
    import sklearn

    versions, sizes = (__version__, sklearn.__version__), sorted(rows.items())
    constants = (N_COMPONENTS, N_GAUSSIANS, RIDGE, SEED)
    content = (*versions, *constants, sizes, list(map(repr, classifiers().values())))
    return hashlib.sha256(repr(content).encode()).hexdigest()[:12]


def _create(place: Path, rows: dict[str, int]) -> None:
    """Create a set under another name and rename it, so that it is always complete."""
    temporary = place.with_name(f".{place.name}-{secrets.token_hex(6)}")
    try:
        _write(temporary, rows)
        try:
            temporary.rename(place)
        except OSError:
            if not place.is_dir():  # else another run has just created the same set
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write(folder: Path, rows: dict[str, int]) -> None:
    from sklearn.exceptions import ConvergenceWarning

    population = digit_population()
    rng = np.random.default_rng(SEED)
    drawn = {name: population.draw(count, rng) for name, count in rows.items()}
    exact = _in_chunks(population.posterior, drawn["holdout"][0])
    for name, model in classifiers().items():
        with warnings.catch_warnings():  # the network is stopped early on purpose
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(*drawn["train"])
        place = folder / name
        place.mkdir(parents=True)
        for split in ("cal", "test", "holdout"):
            x, y = drawn[split]
            np.save(place / f"probs_{split}.npy", _in_chunks(model.predict_proba, x))
            np.save(place / f"y_{split}.npy", y.astype(np.uint8))
        np.save(place / "posterior_holdout.npy", exact)


def _in_chunks(predict: Any, x: FloatMatrix) -> Any:
    """Return 32-bit predictions, computed for some rows at a time."""
    parts = [predict(x[i : i + CHUNK]) for i in range(0, len(x), CHUNK)]
    return np.concatenate([part.astype(np.float32) for part in parts])
