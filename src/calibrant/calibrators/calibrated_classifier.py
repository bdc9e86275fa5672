"""A classifier and its calibrator as one classifier."""

from __future__ import annotations

from copy import deepcopy
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from scipy.special import expit, softmax
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedGroupKFold, check_cv, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from calibrant.calibrators.base import Calibrator, ClassCalibrator
from calibrant.calibrators.registry import make_calibrator
from calibrant.calibrators.wrappers import OneVsRest, is_calibrator
from calibrant.core.arrays import as_vector, check_same_length
from calibrant.core.defaults import DEFAULT_REPAIR
from calibrant.core.sample import cluster_codes
from calibrant.core.scales import PERCENT
from calibrant.core.wording import shown
from calibrant.exceptions import LabelError, OptionError
from calibrant.numerics.cluster_dependence import check_two_clusters
from calibrant.numerics.links import clip_probability

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from calibrant.calibrators.base import EventCalibrator
    from calibrant.core.array_types import ArrayLike, FloatMatrix, IntVector, Scale

BINARY = 2
"""Number of classes of an event and its contrary."""


class CalibratedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are corrected by a calibrator.

    Without `cv` the classifier must already be fitted: `fit` then fits only the
    calibrator, and needs rows that the classifier has not seen. If the calibrator is
    fitted too, no `fit` is needed. With `cv`, `fit` predicts every row by a classifier
    that has not seen it, fits the calibrator to these predictions and the classifier to
    all rows: use it if you have no separate calibration set.

    With scikit-learn's metadata routing, it requests weights as other meta-estimators
    do: ``set_fit_request(sample_weight=True)`` of this estimator and of the parts of
    `classifier` that take them.

    Parameters
    ----------
    classifier : classifier
        With `predict_proba`, or with `decision_function`, whose values are treated as
        logits.
    calibrator : str or calibrator
        The name of a method, a calibrator made by `make_calibrator`, or one of your own
        with ``fit(p, y)`` and ``transform(p)``. With more than two classes, a binary
        method is applied to each class against the rest, and one of your own gets the
        probabilities of all classes.
    cv : int, splitter or None
        How to split the rows, as in scikit-learn's `cross_val_predict`; None for a
        classifier that is already fitted.

    Attributes
    ----------
    classifier_ : classifier
        The fitted classifier.
    calibrator_ : calibrator
        The fitted calibrator, with ``calibrator_.map_`` and, for the method "auto",
        ``calibrator_.certificate_``.
    classes_ : ndarray of shape (k,)
        The labels.

    See Also
    --------
    make_calibrator : makes the calibrator alone.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import calibrant as cb
    >>> X, y = make_classification(3000, n_redundant=10, random_state=0)
    >>> bayes = GaussianNB().fit(X[:1000], y[:1000])
    >>> model = cb.CalibratedClassifier(bayes).fit(X[1000:2000], y[1000:2000])
    >>> rest = X[2000:]
    >>> before = cb.calibration_error(y[2000:], bayes.predict_proba(rest)[:, 1])
    >>> after = cb.calibration_error(y[2000:], model.predict_proba(rest)[:, 1])
    >>> round(before, 2), round(after, 2)
    (0.08, 0.01)
    """

    def __init__(
        self, classifier: Any, calibrator: Any = DEFAULT_REPAIR, cv: Any = None
    ) -> None:
        self.classifier = classifier
        self.calibrator = calibrator
        self.cv = cv

    def __sklearn_clone__(self) -> CalibratedClassifier:
        """Keep a classifier that came fitted; everything else is copied unfitted."""
        classifier = self.classifier if self.cv is None else clone(self.classifier)
        calibrator = clone(self.calibrator, safe=False)
        copied = type(self)(classifier, calibrator, cv=self.cv)
        requests: Any = getattr(self, "_metadata_request", None)
        if requests is not None:
            copied._metadata_request = deepcopy(requests)  # noqa: SLF001
        return copied

    def get_metadata_routing(self) -> Any:
        """Return which metadata of `fit` go to this estimator, its parts and splits.

        Returns
        -------
        MetadataRouter
            What scikit-learn asks meta-estimators for.
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                classifier=self.classifier,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the calibrator, and with `cv` the classifier.

        Parameters
        ----------
        X : array-like
            Rows as the classifier takes them; without `cv`, rows it has not seen.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. With `cv` the classifier gets them too; of a pipeline,
            its last step. With metadata routing, the parts that request them.
        clusters : array-like of shape (n,), optional
            The cluster of each row, such as the patient, as for `Calibrator.fit`. With
            a number as `cv`, rows of a cluster are in the same fold; a splitter gets
            clusters as groups.
        **fit_params
            Other parameters of the classifier's `fit`; only with `cv`. With metadata
            routing also those of the splitter, such as `groups`.

        Returns
        -------
        CalibratedClassifier
            Itself.
        """
        if y is None:
            raise LabelError("requires y to be passed, but the target y is None.")
        label = np.asarray(column_or_1d(y, warn=True))
        check_classification_targets(label)
        if isinstance(self.cv, str):
            raise OptionError(
                "cv must be a number of folds, a splitter, or None for a "
                f"classifier that is already fitted; got {self.cv!r}."
            )
        calibrator = self._new_calibrator()
        if self.cv is None:
            if fit_params:
                raise OptionError(
                    f"without cv, classifier is not fitted and takes no "
                    f"{', '.join(fit_params)}; pass cv=5 to fit it, too."
                )
            if not _is_fitted(self.classifier):
                raise OptionError(
                    "without cv, classifier must already be fitted; fit it on "
                    "other rows first, or pass cv=5 to fit and calibrate by "
                    "cross-validation."
                )
            fitted = self.classifier
            prob = _probabilities(fitted, X)
        else:
            method = _method(self.classifier)
            params, split_params = self._routed(sample_weight, fit_params)
            folds = check_cv(self.cv, label, classifier=True)
            if clusters is not None:
                _check_clusters(clusters, label, self.cv)
                split_params = {**split_params, "groups": clusters}
                if isinstance(self.cv, Integral):
                    folds = StratifiedGroupKFold(self.cv)
            scores = cross_val_predict(
                self.classifier,
                X,
                label,
                cv=list(folds.split(X, label, **split_params)),
                method=method,
                params=params,
            )
            fitted = clone(self.classifier).fit(X, label, **params)
            prob = _as_probabilities(scores, method, fitted)
        calibrator = _for_classes(calibrator, prob.shape[1])
        column = _column_numbers(label, fitted.classes_)
        scores = FROM_PROB[calibrator.scale](prob)
        calibrator.fit(scores, column, sample_weight, clusters=clusters)
        self.classifier_, self.calibrator_ = fitted, calibrator
        return self

    def predict_proba(self, X: ArrayLike) -> FloatMatrix:
        """Return calibrated probabilities, one column per class.

        Parameters
        ----------
        X : array-like
            Rows as the classifier takes them.

        Returns
        -------
        ndarray of shape (n, k)
            Probabilities in the order of `classes_`.
        """
        estimator, calibrator = self._fitted_parts()
        prob = _probabilities(estimator, X)
        if prob.shape[1] > BINARY and not hasattr(calibrator, "classes_"):
            raise OptionError(
                "calibrator is fitted to one event, but classifier has "
                f"{prob.shape[1]} classes; pass one that is not fitted."
            )
        return np.asarray(calibrator.transform(FROM_PROB[calibrator.scale](prob)))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class with the largest calibrated probability.

        Parameters
        ----------
        X : array-like
            Rows as the classifier takes them.

        Returns
        -------
        ndarray of shape (n,)
            Labels.
        """
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    @property
    def classes_(self) -> NDArray[Any]:
        """Return the labels, in the order of the columns."""
        return np.asarray(self._fitted_parts()[0].classes_)

    @property
    def n_features_in_(self) -> int:
        """Return the number of features that the classifier saw."""
        return int(self._fitted_parts()[0].n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Return the names of the features, if the classifier saw a data frame."""
        return np.asarray(self._fitted_parts()[0].feature_names_in_)

    def __sklearn_tags__(self) -> Any:
        """Take rows of the kinds that the classifier takes."""
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.classifier).input_tags
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether both parts are fitted, here or before."""
        return hasattr(self, "calibrator_") or (
            self.cv is None
            and hasattr(self.calibrator, "fit_")
            and _is_fitted(self.classifier)
        )

    def _fitted_parts(self) -> tuple[Any, Any]:
        check_is_fitted(self)
        if hasattr(self, "calibrator_"):
            return self.classifier_, self.calibrator_
        return self.classifier, self.calibrator

    def _routed(
        self, sample_weight: ArrayLike | None, fit_params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the parameters of the classifier's `fit`, and of the splitter."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(
                self, "fit", sample_weight=sample_weight, **fit_params
            )
            return routed["classifier"]["fit"], routed["splitter"]["split"]
        weights = {_weight_parameter(self.classifier): sample_weight}
        return ({} if sample_weight is None else weights) | fit_params, {}

    def _new_calibrator(self) -> Calibrator:
        """Return an unfitted calibrator with labels from 0."""
        given = self.calibrator
        own = is_calibrator(given) and hasattr(given, "transform")
        if isinstance(given, Calibrator):
            unfitted: Calibrator = clone(given)
        elif isinstance(given, str) or own:
            unfitted = make_calibrator(given)
        else:
            raise OptionError(
                "calibrator must be a method's name, made by make_calibrator, or an "
                f"object with fit(p, y) and transform(p); got {given!r}."
            )
        for name in {"labels", "pos_label"} & unfitted.get_params().keys():
            unfitted.set_params(**{name: None})
        return unfitted.checked()


def _check_clusters(clusters: ArrayLike, label: NDArray[Any], cv: Any) -> None:
    """Raise where clusters cannot be divided among folds."""
    values = as_vector(clusters, name="clusters")
    check_same_length(y=label, clusters=values)
    n_clusters = np.unique(cluster_codes(values, name="clusters")).size
    check_two_clusters(n_clusters)
    if isinstance(cv, Integral) and n_clusters < int(cv):
        raise OptionError(
            f"cv must be at most the number of clusters, which stay together; got "
            f"{cv} folds for {n_clusters} clusters."
        )


def _for_classes(calibrator: Calibrator, n_classes: int) -> Any:
    """Return a calibrator for so many classes."""
    if n_classes > BINARY and not isinstance(calibrator, ClassCalibrator):
        binary = cast("EventCalibrator", calibrator)
        return OneVsRest(calibrator=binary, scale=calibrator.scale)
    return calibrator


def _weight_parameter(classifier: Any) -> str:
    """Return what `fit` calls weights: a pipeline hands them to its last step.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> _weight_parameter(make_pipeline(LogisticRegression()))
    'logisticregression__sample_weight'
    """
    if not isinstance(classifier, Pipeline):
        return "sample_weight"
    name, last = classifier.steps[-1]
    return f"{name}__{_weight_parameter(last)}"


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _method(estimator: Any) -> str:
    for method in ("predict_proba", "decision_function"):
        if hasattr(estimator, method):
            return method
    raise OptionError(
        "classifier must have predict_proba or decision_function; "
        f"{type(estimator).__name__} has neither."
    )


def _probabilities(estimator: Any, X: ArrayLike) -> FloatMatrix:
    method = _method(estimator)
    return _as_probabilities(getattr(estimator, method)(X), method, estimator)


def _as_probabilities(scores: NDArray[Any], method: str, fitted: Any) -> FloatMatrix:
    """Return one column per class; values of a decision function count as logits."""
    if method == "predict_proba":
        prob = np.asarray(scores, dtype=np.float64)
    elif np.ndim(scores) == 1:
        event = expit(scores)
        prob = np.stack([1.0 - event, event], axis=1)
    else:
        prob = np.asarray(softmax(scores, axis=1))
    if prob.shape[1] != len(fitted.classes_):
        raise OptionError(
            f"classifier must give one column for each of its {len(fitted.classes_)} "
            f"classes; it gives {prob.shape[1]}. For an SVC pass "
            f'decision_function_shape="ovr".'
        )
    return prob


def _column_numbers(label: NDArray[Any], classes: NDArray[Any]) -> IntVector:
    unknown = ~np.isin(label, classes)
    if unknown.any():
        row = int(np.argmax(unknown))
        raise LabelError(
            "y must contain labels that the classifier knows, "
            f"{classes.tolist()}; row {row} is {shown(label[row])}. Pass labels "
            "like those it was fitted on."
        )
    order = np.argsort(classes)
    return np.asarray(order[np.searchsorted(classes, label, sorter=order)])


FROM_PROB: dict[Scale, Callable[[FloatMatrix], FloatMatrix]] = {
    "prob": np.asarray,
    "logit": lambda prob: np.log(clip_probability(prob)),
    "percent": lambda prob: PERCENT * prob,
    "logprob": lambda prob: np.log(clip_probability(prob)),
}
"""Probabilities on the scale that a calibrator takes."""
