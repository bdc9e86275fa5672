"""Models that are trained here, once, and kept in a cache folder.

**Digits whose truth is exact**, for the pseudo-real study. The handwritten digits that
scikit-learn ships are reduced to a few principal components, and a mixture of Gaussians
is fitted to each class. Any number of rows can be drawn from these densities, and the
probability of each class given a row is known exactly. So there are two ways to the
true calibration map: from labels, and from exact probabilities.

**A dozen classifiers on many data sets**, for the arena. All data sets come with
scikit-learn or are drawn from its generators, so nothing is downloaded. Real tables are
small; "grown" ones are drawn from the densities of a real table, so that there are
enough rows for large calibration and test sets. Every data set is given to every second
classifier, by turns.

The cache folder is ``$CALIBRANT_CACHE`` if set, else ``$XDG_CACHE_HOME/calibrant``,
else ``~/.cache/calibrant``.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.__about__ import __version__
from calibrant.core.output_files import atomic_write
from calibrant.core.probabilities import softmax
from calibrant.experiments.prediction_sets import StoredPredictions

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector
    from calibrant.experiments.runner import Progress

    Table = tuple[FloatMatrix, IntVector]

SEED = 0
N_COMPONENTS = 5
N_GAUSSIANS = 2
"""Principal components, and Gaussians per class: enough of both that the best
classifier is right in most rows, but far from all."""

RIDGE = 0.05
"""Added to the variances of components whose average variance is 1."""

DIGIT_ROWS = {"train": 3000, "cal": 5000, "test": 10_000, "holdout": 700_000}
QUICK_DIGIT_ROWS = {"train": 1000, "cal": 2000, "test": 10_000, "holdout": 60_000}
CHUNK = 50_000

ROWS = 32_000
SETTINGS = {"n_samples": ROWS, "random_state": SEED}
MAX_TRAIN, MAX_CAL = 2_000, 10_000
TRAIN_SHARE, CAL_SHARE = 0.1, 0.36
"""Rows that classifiers are trained on, and that calibration rows are drawn from; all
others are test rows. Shares are for small tables: 200 calibration and 300 test rows
remain of 569."""


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


def digit_classifiers() -> dict[str, Any]:
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


def digit_models(
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
    rows = {**(QUICK_DIGIT_ROWS if quick else DIGIT_ROWS), **(rows or {})}
    root = Path(folder) if folder is not None else cache_folder()
    constants = (N_COMPONENTS, N_GAUSSIANS, RIDGE, sorted(rows.items()))
    place = root / f"digits-{_digest(constants, digit_classifiers())}"
    paths = {name: place / f"{name}.npz" for name in sorted(digit_classifiers())}
    missing = {name: path for name, path in paths.items() if not path.exists()}
    if missing:
        _train_on_digits(missing, rows)
    return [StoredPredictions(os.fspath(path)) for path in paths.values()]


def _digest(*content: Any) -> str:
    """Return a hash of the versions and of everything else that a set depends on."""
    import sklearn

    content = (__version__, sklearn.__version__, SEED, *content)
    return hashlib.sha256(repr(content).encode()).hexdigest()[:12]


def _train_on_digits(paths: dict[str, Path], rows: dict[str, int]) -> None:
    population, rng = digit_population(), np.random.default_rng(SEED)
    drawn = {name: population.draw(count, rng) for name, count in rows.items()}
    train = drawn.pop("train")
    exact = _in_chunks(population.posterior, drawn["holdout"][0])
    for name, path in paths.items():
        model = _trained(digit_classifiers()[name], *train)
        _save(path, model, drawn, posterior_holdout=exact)


def _trained(model: Any, x: FloatMatrix, y: IntVector) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networks are stopped early on purpose
        return model.fit(x, y)


def _save(path: Path, model: Any, splits: dict[str, Table], **more: Any) -> None:
    """Write predictions and labels of all splits, completely or not at all."""
    kind = "probs" if hasattr(model, "predict_proba") else "logits"
    predict = partial(_in_chunks, partial(_scores, model))
    arrays = {f"{kind}_{name}": predict(x) for name, (x, _) in splits.items()}
    labels = {f"y_{name}": y.astype(np.int16) for name, (_, y) in splits.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays, **labels, **more)


def _scores(model: Any, x: FloatMatrix) -> Any:
    """Return probabilities, or decision values as logits."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(x)
    values = model.decision_function(x)
    return values if values.ndim > 1 else np.column_stack([0.0 * values, values])


def _in_chunks(predict: Any, x: FloatMatrix) -> Any:
    """Return 32-bit predictions, computed for some rows at a time."""
    parts = [predict(x[i : i + CHUNK]) for i in range(0, len(x), CHUNK)]
    return np.concatenate([part.astype(np.float32) for part in parts])


def real(name: str, *, positive: tuple[int, ...] = ()) -> Table:
    """Return a real table of scikit-learn; `positive` classes against the others.

    The continuous outcome of the diabetes data is divided at its median.
    """
    from sklearn import datasets
    from sklearn.preprocessing import scale

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if name == "diabetes":
        y = (y > np.median(y)).astype(np.intp)
    x = x if name == "digits" else scale(x)
    return x, np.isin(y, positive).astype(np.intp) if positive else y


def grown(name: str, *, positive: tuple[int, ...] = ()) -> Table:
    """Return rows drawn from the densities of a real table's classes."""
    rng = np.random.default_rng(SEED)
    return fit_population(*real(name, positive=positive)).draw(ROWS, rng)


def generated(maker: str, *, above: float | None = None, **options: Any) -> Table:
    """Return rows of a generator of scikit-learn.

    With `above`, the event is that the outcome exceeds this quantile.
    """
    from sklearn import datasets

    x, y = getattr(datasets, f"make_{maker}")(**SETTINGS, **options)
    y = y if above is None else y > np.quantile(y, above)
    return x, np.unique(y, return_inverse=True)[1]


def classes(count: int, **options: Any) -> Table:
    """Return rows of `make_classification`, two clusters per class."""
    shape = {"n_features": 20, "n_informative": 10, "n_redundant": 4}
    return generated("classification", n_classes=count, **shape | options)


EVEN = (0, 2, 4, 6, 8)
DATA_SETS: dict[str, partial[Table]] = {
    "hastie": partial(generated, "hastie_10_2"),
    "moons": partial(generated, "moons", noise=0.35),
    "circles": partial(generated, "circles", noise=0.25, factor=0.6),
    "spheres": partial(generated, "gaussian_quantiles", n_features=4, n_classes=2),
    "friedman1": partial(generated, "friedman1", above=0.5, noise=3.0),
    "friedman2": partial(generated, "friedman2", above=0.8, noise=200.0),
    "friedman3": partial(generated, "friedman3", above=0.3, noise=0.2),
    "plain": partial(classes, 2),
    "noisy": partial(classes, 2, flip_y=0.25),
    "rare": partial(classes, 2, weights=[0.95], flip_y=0.02),
    "apart": partial(classes, 2, class_sep=2.0, flip_y=0.0),
    "wide": partial(classes, 2, n_features=100),
    "grown breast cancer": partial(grown, "breast_cancer"),
    "grown diabetes": partial(grown, "diabetes"),
    "grown even digits": partial(grown, "digits", positive=EVEN),
    "breast cancer": partial(real, "breast_cancer"),
    "even digits": partial(real, "digits", positive=EVEN),
    "three": partial(classes, 3),
    "five": partial(classes, 5, flip_y=0.1),
    "ten": partial(classes, 10, class_sep=1.5),
    "twenty": partial(classes, 20, class_sep=2.0, n_clusters_per_class=1),
    "unequal": partial(classes, 4, weights=[0.7, 0.2, 0.07, 0.03]),
    "shells": partial(generated, "gaussian_quantiles", n_features=4, n_classes=4),
    "blobs": partial(generated, "blobs", centers=6, n_features=3, cluster_std=4.0),
    "grown digits": partial(grown, "digits"),
    "grown wine": partial(grown, "wine"),
    "grown iris": partial(grown, "iris"),
    "digits": partial(real, "digits"),
}
"""Binary data sets first, then those with several classes."""

QUICK_DATA_SETS = ("moons", "grown breast cancer", "three", "grown iris")


def classifiers() -> dict[str, Any]:
    """Return the untrained classifiers; the support vectors have no probabilities."""
    from sklearn import discriminant_analysis as discriminant
    from sklearn import ensemble, naive_bayes, neighbors, neural_network, tree
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    seed: dict[str, Any] = {"random_state": SEED}
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
        "bayes": naive_bayes.GaussianNB(),
        "lda": discriminant.LinearDiscriminantAnalysis(),
        "qda": make_pipeline(
            PCA(0.7, svd_solver="full"), discriminant.QuadraticDiscriminantAnalysis()
        ),
        "neighbours": make_pipeline(
            StandardScaler(), neighbors.KNeighborsClassifier(15)
        ),
        "tree": tree.DecisionTreeClassifier(min_samples_leaf=5, **seed),
        "forest": ensemble.RandomForestClassifier(50, **seed),
        "extra trees": ensemble.ExtraTreesClassifier(50, **seed),
        "boosting": ensemble.HistGradientBoostingClassifier(
            max_iter=40, early_stopping=False, **seed
        ),
        "adaboost": ensemble.AdaBoostClassifier(**seed),
        "support vectors": make_pipeline(StandardScaler(), SVC(**seed)),
        "network": make_pipeline(
            StandardScaler(),
            neural_network.MLPClassifier((50,), alpha=0.0, max_iter=150, **seed),
        ),
    }


def train_model(data: str, model: str, path: Path) -> None:
    """Train a classifier on a data set; write its predictions of the other rows."""
    from threadpoolctl import threadpool_limits

    x, y = DATA_SETS[data]()
    parts = np.split(np.random.default_rng(SEED).permutation(y.size), _ends(y.size))
    train, cal, test = ((x[rows], y[rows]) for rows in parts)
    with threadpool_limits(limits=1):
        fitted = _trained(classifiers()[model], *train)
        _save(path, fitted, {"cal": cal, "test": test})


def _ends(rows: int) -> list[int]:
    """Return where training rows end, and where calibration rows end."""
    train = min(MAX_TRAIN, int(TRAIN_SHARE * rows))
    return [train, train + min(MAX_CAL, int(CAL_SHARE * rows))]


def train_models(
    *,
    quick: bool = False,
    folder: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Path:
    """Train all models that are not in the cache yet.

    Parameters
    ----------
    quick : bool
        Only a few data sets.
    folder : path, optional
        Where to keep predictions, instead of the cache folder.
    jobs : int
        Number of processes.
    progress : callable, optional
        Called with (done, total).

    Returns
    -------
    Path
        The folder of predictions, with one folder per data set.
    """
    from joblib import Parallel, delayed

    split = (ROWS, MAX_TRAIN, MAX_CAL, TRAIN_SHARE, CAL_SHARE)
    sources = [(f.func.__name__, f.args, f.keywords) for f in DATA_SETS.values()]
    root = Path(folder) if folder is not None else cache_folder()
    root /= f"arena-{'quick-' * quick}{_digest(split, sources, classifiers())}"
    data_sets = QUICK_DATA_SETS if quick else tuple(DATA_SETS)
    trainings = [
        (data, model, root / data / f"{model}.npz")
        for turn, data in enumerate(data_sets)
        for place, model in enumerate(classifiers())
        if (turn + place) % 2 == 0
    ]
    missing = [one for one in trainings if not one[-1].exists()]
    done, report = len(trainings) - len(missing), progress or (lambda *_: None)
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
    tasks = (delayed(train_model)(*one) for one in missing)
    for count, _ in enumerate(parallel(tasks), 1):
        report(done + count, len(trainings))
    return root
