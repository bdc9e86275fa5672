"""The models of the arena: a dozen classifiers on many data sets, trained once.

All data sets come with scikit-learn or are drawn from its generators, so nothing is
downloaded. Real tables are small. "Grown" ones are drawn from mixtures of Gaussians
that were fitted to the classes of a real table (`embedded`), so that there are enough
rows for large calibration and test sets. Every data set is given to every second
classifier, by turns.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.__about__ import __version__
from calibrant.core.output_files import atomic_write
from calibrant.experiments.embedded import cache_folder, fit_population

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, IntVector
    from calibrant.experiments.runner import Progress

    Table = tuple[FloatMatrix, IntVector]

SEED = 0
ROWS = 32_000
SETTINGS = {"n_samples": ROWS, "random_state": SEED}
MAX_TRAIN, MAX_CAL = 2_000, 10_000
TRAIN_SHARE, CAL_SHARE = 0.1, 0.36
"""Rows that classifiers are trained on, and that calibration rows are drawn from; all
others are test rows. Shares are for small tables: 200 calibration and 300 test rows
remain of 569."""


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


def generated(maker: str, **options: Any) -> Table:
    """Return rows of a generator of scikit-learn."""
    from sklearn import datasets

    x, y = getattr(datasets, f"make_{maker}")(**SETTINGS, **options)
    return x, np.unique(y, return_inverse=True)[1]


def regression(maker: str, *, above: float, **options: Any) -> Table:
    """Return whether a simulated outcome is above one of its quantiles."""
    from sklearn import datasets

    x, y = getattr(datasets, f"make_{maker}")(**SETTINGS, **options)
    return x, (y > np.quantile(y, above)).astype(np.intp)


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
    "friedman1": partial(regression, "friedman1", above=0.5, noise=3.0),
    "friedman2": partial(regression, "friedman2", above=0.8, noise=200.0),
    "friedman3": partial(regression, "friedman3", above=0.3, noise=0.2),
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


@dataclass(frozen=True)
class Training:
    """One classifier on one data set, and the file of its predictions."""

    data: str
    model: str
    path: str

    def run(self) -> None:
        """Train, predict calibration and test rows, and write the file."""
        from threadpoolctl import threadpool_limits

        x, y = DATA_SETS[self.data]()
        parts = np.split(np.random.default_rng(SEED).permutation(y.size), _ends(y.size))
        train, cal, test = parts
        model = classifiers()[self.model]
        with warnings.catch_warnings(), threadpool_limits(limits=1):
            warnings.simplefilter("ignore")  # networks are stopped early on purpose
            model.fit(x[train], y[train])
            found = {"cal": _scores(model, x[cal]), "test": _scores(model, x[test])}
        kind = "probs" if hasattr(model, "predict_proba") else "logits"
        arrays = {f"{kind}_{split}": scores for split, scores in found.items()}
        labels = {"y_cal": y[cal].astype(np.int16), "y_test": y[test].astype(np.int16)}
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(Path(self.path)) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays, **labels)


def _ends(rows: int) -> list[int]:
    """Return where training rows end, and where calibration rows end."""
    train = min(MAX_TRAIN, int(TRAIN_SHARE * rows))
    return [train, train + min(MAX_CAL, int(CAL_SHARE * rows))]


def _scores(model: Any, x: FloatMatrix) -> Any:
    """Return probabilities, or decision values as logits."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(x), np.float32)
    values = np.asarray(model.decision_function(x), np.float32)
    return values if values.ndim > 1 else np.column_stack([0.0 * values, values])


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

    root = Path(folder) if folder is not None else cache_folder()
    root /= f"arena-{'quick-' * quick}{_digest()}"
    trainings = _trainings(root, QUICK_DATA_SETS if quick else tuple(DATA_SETS))
    missing = [one for one in trainings if not Path(one.path).exists()]
    done, report = len(trainings) - len(missing), progress or (lambda *_: None)
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
    for count, _ in enumerate(parallel(delayed(one.run)() for one in missing), 1):
        report(done + count, len(trainings))
    return root


def _trainings(root: Path, data_sets: tuple[str, ...]) -> list[Training]:
    return [
        Training(data, model, os.fspath(root / data / f"{model}.npz"))
        for turn, data in enumerate(data_sets)
        for place, model in enumerate(classifiers())
        if (turn + place) % 2 == 0
    ]


def _digest() -> str:
    """Return a hash of everything the predictions depend on."""
    import sklearn

    split = (SEED, ROWS, MAX_TRAIN, MAX_CAL, TRAIN_SHARE, CAL_SHARE)
    sources = [(f.func.__name__, f.args, f.keywords) for f in DATA_SETS.values()]
    content = (__version__, sklearn.__version__, split, sources, classifiers())
    return hashlib.sha256(repr(content).encode()).hexdigest()[:12]
