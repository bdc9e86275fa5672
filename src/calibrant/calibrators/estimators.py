"""The scikit-learn estimators: a method by name with its hyper-parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from calibrant.calibrators.base import fit_family
from calibrant.calibrators.registry import Kind, Method, find_method
from calibrant.core.array_types import Scale
from calibrant.core.defaults import DEFAULT_METHOD
from calibrant.core.parameters import check_choice
from calibrant.core.sample import check_binary_sample, check_class_sample, warn_if_small
from calibrant.core.wording import CALIBRATOR_WORDING
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.calibrators.base import Fit, MulticlassFit
    from calibrant.core.array_types import ArrayLike, FloatMatrix, FloatVector
    from calibrant.maps.base import CalibrationMap
    from calibrant.maps.multiclass import MulticlassMap


class NamedCalibrator(TransformerMixin, BaseEstimator):
    """A calibrator given by a method's name and the method's hyper-parameters."""

    _kind: ClassVar[Kind]
    _options: ClassVar[dict[str, Any]]
    """Parameters that do not depend on the method, with their defaults."""
    _prefix: ClassVar[str] = ""

    method: str
    _params: dict[str, Any]

    def _find(self, name: str) -> Method:
        """Return the method of that name, if it is of the right kind."""
        method = find_method(self._prefix + str(name) if self._prefix else name)
        if method.kind != self._kind:
            raise OptionError(
                f"{type(self).__name__} needs a {self._kind} method; {name!r} is a "
                f"{method.kind} one. Use make_calibrator({name!r})."
            )
        return method

    def _family(self) -> Any:
        return self._find(self.method).build(**self._params)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002
        """Return the method and all its hyper-parameters."""
        return {
            "method": self.method,
            **{name: getattr(self, name) for name in self._options},
            **self._find(self.method).defaults(),
            **self._params,
        }

    def set_params(self, **params: Any) -> Self:
        """Change the method or hyper-parameters.

        With another method, hyper-parameters that it does not have are forgotten.
        """
        options = {name: params.pop(name) for name in self._options if name in params}
        name = params.pop("method", self.method)
        method = self._find(name)
        kept = self._params
        if name != self.method:
            kept = {k: v for k, v in kept.items() if k in method.defaults()}
        method.build(**kept | params)
        self.method, self._params = name, kept | params
        for option, value in options.items():
            setattr(self, option, value)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        usual = {**self._options, **self._find(self.method).defaults()}
        params = {name: getattr(self, name) for name in self._options} | self._params
        changed = "".join(
            f", {name}={value!r}"
            for name, value in params.items()
            if value != usual[name]
        )
        return f"{type(self).__name__}({self.method!r}{changed})"


class BinaryCalibrator(NamedCalibrator):
    """Calibrate the probabilities of a binary event.

    Made by `make_calibrator`. Fit on held-out data to correct new predictions; fit
    on test data to evaluate them.

    Parameters
    ----------
    method : str
        Name of the method; see `calibrator_names`.
    pos_label : object, optional
        The label of the event, where labels are not 0 and 1.
    **params
        Hyper-parameters of the method.

    Attributes
    ----------
    map_ : CalibrationMap
        The fitted map.
    fit_ : Fit
        The map with other results of the fit, such as the table of bins.

    See Also
    --------
    make_calibrator : makes calibrators by name.
    CalibratedClassifier : a classifier and its calibrator as one.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> calibrator = cb.make_calibrator("es-cv").fit(p, y)
    >>> calibrator.transform([0.01, 0.5, 0.99]).round(2)
    array([0.  , 0.39, 1.  ])
    """

    _kind = "binary"
    _options: ClassVar[dict[str, Any]] = {"pos_label": None}

    def __init__(
        self, method: str = DEFAULT_METHOD, *, pos_label: Any = None, **params: Any
    ) -> None:
        self.method = method
        self.pos_label = pos_label
        self._params = params

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the input is one column of numbers, none negative."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        return tags

    def fit(
        self, p: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the map.

        Parameters
        ----------
        p : array-like of shape (n,) or (n, 2)
            Predicted probabilities of the event; or the two columns of
            `predict_proba`, of which the second belongs to the event.
        y : array-like of shape (n,)
            Labels: 0 and 1, booleans, or with `pos_label` any two values.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of 2 counts the row twice.

        Returns
        -------
        BinaryCalibrator
            Itself.
        """
        sample = check_binary_sample(
            y,
            p,
            sample_weight=sample_weight,
            pos_label=self.pos_label,
            wording=CALIBRATOR_WORDING,
        )
        warn_if_small(sample)
        self.fit_: Fit = fit_family(self._family(), sample)
        self.n_features_in_ = 1
        return self

    @property
    def map_(self) -> CalibrationMap:
        """Return the fitted map."""
        check_is_fitted(self, "fit_")
        return self.fit_.map

    def transform(self, p: ArrayLike) -> FloatVector:
        """Return calibrated probabilities, clipped to [0, 1].

        Parameters
        ----------
        p : array-like of shape (n,) or (n, 2)
            Predicted probabilities, as `fit` takes them.

        Returns
        -------
        ndarray of shape (n,) or (n, 2)
            Calibrated probabilities, in the shape of `p`.
        """
        return self.map_.transform(p)


class MulticlassCalibrator(NamedCalibrator):
    """Calibrate the probabilities of all classes together.

    Made by `make_calibrator`. Fit on held-out data to correct new predictions.

    Parameters
    ----------
    method : str
        Name of a multi-class method; see `calibrator_names`.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are: probabilities, logits, percentages or logarithms of
        probabilities; it is never guessed.
    labels : sequence, optional
        The label of each column of predictions, in order; 0 to k - 1 by default.
    **params
        Hyper-parameters of the method.

    Attributes
    ----------
    map_ : MulticlassMap
        The fitted map.
    fit_ : MulticlassFit
        The map with other results of the fit, such as the penalties chosen.
    classes_ : ndarray of shape (k,)
        The label of each column.

    See Also
    --------
    make_calibrator : makes calibrators by name.
    BinaryCalibrator : the same for one event.

    Examples
    --------
    >>> import calibrant as cb
    >>> prob, digit = cb.datasets.load_multiclass("forest")
    >>> calibrator = cb.make_calibrator("temperature").fit(prob, digit)
    >>> round(calibrator.map_.temperature, 2)     # below 1: under-confident
    0.27
    >>> calibrator.transform(prob).shape
    (1797, 10)
    """

    _kind = "multi-class"
    _options: ClassVar[dict[str, Any]] = {"scale": "prob", "labels": None}

    def __init__(
        self,
        method: str = "temperature",
        *,
        scale: Scale = "prob",
        labels: Sequence[Any] | None = None,
        **params: Any,
    ) -> None:
        self.method = method
        self.scale = scale
        self.labels = labels
        self._params = params

    def checked(self) -> Self:
        """Return itself, or raise where a hyper-parameter is invalid."""
        check_choice(self.scale, get_args(Scale), name="scale")
        self._family()
        return self

    def fit(
        self, p: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the map.

        Parameters
        ----------
        p : array-like of shape (n, k)
            Predictions on the `scale`.
        y : array-like of shape (n,)
            Labels: column numbers, or of `labels`. Classes may be absent.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of 2 counts the row twice.

        Returns
        -------
        MulticlassCalibrator
            Itself.
        """
        self.checked()
        sample = check_class_sample(
            p, y, scale=self.scale, labels=self.labels, sample_weight=sample_weight
        )
        warn_if_small(sample)
        self.fit_: MulticlassFit = fit_family(self._family(), sample)
        self.n_features_in_ = sample.n_classes
        named = range(sample.n_classes) if self.labels is None else self.labels
        self.classes_ = np.asarray(named)
        return self

    @property
    def map_(self) -> MulticlassMap:
        """Return the fitted map."""
        check_is_fitted(self, "fit_")
        return self.fit_.map

    def transform(self, p: ArrayLike) -> FloatMatrix:
        """Return calibrated probabilities, whose rows sum to 1.

        Parameters
        ----------
        p : array-like of shape (n, k)
            Predictions on the `scale`.

        Returns
        -------
        ndarray of shape (n, k)
            Calibrated probabilities.
        """
        return self.map_.transform(p)


class WrappedCalibrator(MulticlassCalibrator):
    """A binary method applied to several classes."""

    def __init__(
        self,
        method: str = DEFAULT_METHOD,
        *,
        scale: Scale = "prob",
        labels: Sequence[Any] | None = None,
        **params: Any,
    ) -> None:
        super().__init__(method, scale=scale, labels=labels, **params)


class OneVsRest(WrappedCalibrator):
    """Calibrate each class against the rest by a binary method.

    Rows are then divided by their sum. The top label may change. The same as
    ``make_calibrator("ovr-" + method)``.

    Parameters
    ----------
    method : str
        Name of a binary method.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are: probabilities, logits, percentages or logarithms of
        probabilities; it is never guessed.
    labels : sequence, optional
        The label of each column of predictions, in order; 0 to k - 1 by default.
    **params
        Hyper-parameters of the binary method.

    See Also
    --------
    TopLabel : recalibrates the top label only.
    MulticlassCalibrator : methods for all classes at once.

    Examples
    --------
    >>> import calibrant as cb
    >>> prob, digit = cb.datasets.load_multiclass("forest")
    >>> calibrator = cb.OneVsRest("es10", tops="flat").fit(prob, digit)
    >>> calibrator.transform(prob[:1]).sum()
    np.float64(1.0)
    """

    _prefix = "ovr-"


class TopLabel(WrappedCalibrator):
    """Calibrate the top label's probability by a binary method.

    The other classes share the rest in proportion. The top label changes where its
    calibrated probability falls below another's share. The same as
    ``make_calibrator("top-" + method)``.

    Parameters
    ----------
    method : str
        Name of a binary method.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are: probabilities, logits, percentages or logarithms of
        probabilities; it is never guessed.
    labels : sequence, optional
        The label of each column of predictions, in order; 0 to k - 1 by default.
    **params
        Hyper-parameters of the binary method.

    See Also
    --------
    OneVsRest : recalibrates each class against the rest.
    MulticlassCalibrator : methods for all classes at once.

    Examples
    --------
    >>> import calibrant as cb
    >>> prob, digit = cb.datasets.load_multiclass("forest")
    >>> repaired = cb.TopLabel("pl").fit(prob, digit).transform(prob)
    >>> round(cb.calibration_error(digit, repaired, task="confidence"), 2)
    0.0
    """

    _prefix = "top-"


def make_calibrator(
    name: str = DEFAULT_METHOD, **params: Any
) -> BinaryCalibrator | MulticlassCalibrator:
    """Return an unfitted calibrator.

    Parameters
    ----------
    name : str
        Name of the method; see `calibrator_names`. A trailing number is the number
        of bins; ``ovr-`` and ``top-`` apply a binary method to several classes.
    **params
        Hyper-parameters of the method, such as ``tops="flat"``; of binary methods
        also ``pos_label``, of multi-class methods ``scale`` and ``labels``.
        ``get_params()`` of the result names them all with their values.

    Returns
    -------
    BinaryCalibrator or MulticlassCalibrator
        A scikit-learn transformer with ``fit(p, y)``, ``transform(p)`` and ``map_``.

    See Also
    --------
    calibrator_names : the names that can be given.
    CalibratedClassifier : a classifier and its calibrator as one.

    Examples
    --------
    >>> import calibrant as cb
    >>> cb.make_calibrator("es-cv", max_bins=20)
    BinaryCalibrator('es-cv', max_bins=20)
    >>> cb.make_calibrator("temperature", scale="logit")
    MulticlassCalibrator('temperature', scale='logit')
    >>> cb.make_calibrator("platt").get_params()
    {'method': 'platt', ...}
    """
    if find_method(name).kind == "multi-class":
        return MulticlassCalibrator(name, **params).checked()
    return BinaryCalibrator(name, **params).set_params()  # which checks them
