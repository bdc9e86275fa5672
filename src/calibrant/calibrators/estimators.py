"""The scikit-learn estimator: a method by name with its hyper-parameters."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, get_args

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from calibrant.calibrators.base import fit_family
from calibrant.calibrators.grouped import GroupedAuto
from calibrant.calibrators.map_warnings import warn_if_falling, warn_if_outside
from calibrant.calibrators.registry import Kind, find_method, kinds_of
from calibrant.core.array_types import Scale
from calibrant.core.arrays import as_array, check_same_length
from calibrant.core.defaults import DEFAULT_REPAIR
from calibrant.core.parameters import check_choice
from calibrant.core.probabilities import (
    check_probabilities,
    check_probability_matrix,
    has_two_columns,
)
from calibrant.core.sample import (
    BinarySample,
    check_binary_sample,
    check_class_sample,
    warn_if_small,
)
from calibrant.core.weights import check_weights
from calibrant.core.wording import CALIBRATOR_WORDING
from calibrant.exceptions import LabelError, OptionError
from calibrant.maps.grouped import GroupedMap, keys_of_groups
from calibrant.maps.multiclass import MulticlassMap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calibrant.calibrators.base import Fit, MulticlassFit
    from calibrant.core.array_types import ArrayLike, FloatMatrix, FloatVector
    from calibrant.core.sample import ClassSample
    from calibrant.maps.base import CalibrationMap
    from calibrant.maps.certificate import Certificate

WORDING = replace(CALIBRATOR_WORDING, takes_scale=True)
OTHER: dict[Kind, Kind] = {"binary": "multi-class", "multi-class": "binary"}
MANY_CLASSES = (
    "pos_label is the label of one event, but the calibrator is for several classes; "
    "pass labels, one per column."
)


class Calibrator(TransformerMixin, BaseEstimator):
    """Calibrate the probabilities of an event, or of all classes together.

    Made by `make_calibrator`. Fit on held-out data to correct new predictions.
    A vector, or the two columns of a binary classifier, contains predictions of one
    event; more columns are classes.

    Parameters
    ----------
    method : str
        Name of the method; see `calibrator_names`.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are: probabilities, logits, percentages or log-probabilities;
        it is never guessed.
    pos_label : object, optional
        The label of the event, if labels are not 0 and 1.
    labels : sequence, optional
        The label of each column of predictions, in order, if there are several
        classes; 0 to k - 1 by default.
    **params
        Hyper-parameters of the method.

    Attributes
    ----------
    map_ : CalibrationMap, MulticlassMap or GroupedMap
        The fitted map; a `GroupedMap` if `fit` was given groups.
    fit_ : Fit or MulticlassFit
        The map with other results of the fit, such as the table of bins.
    range_ : tuple of float
        The lowest and the highest prediction of the event in the fitted data.
        `transform` warns (`OutsideRangeWarning`) if more than 1 % of its
        predictions are more than 0.05 outside; `fit` warns (`FallingMapWarning`) if
        a map without bins decreases by more than 0.02 within the range.
    certificate_ : Certificate
        What was tried and gained, if `method` is "auto".
    classes_ : ndarray of shape (k,)
        The label of each column, if there are several classes.

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
    >>> prob, digit = cb.datasets.load_multiclass("forest")
    >>> calibrator = cb.make_calibrator("temperature").fit(prob, digit)
    >>> round(calibrator.map_.temperature, 2)     # below 1: under-confident
    0.27
    """

    _options: ClassVar[dict[str, Any]] = {
        "scale": "prob",
        "pos_label": None,
        "labels": None,
    }
    """Parameters that do not depend on the method, with their defaults."""

    def __init__(
        self,
        method: str = DEFAULT_REPAIR,
        *,
        scale: Scale = "prob",
        pos_label: Any = None,
        labels: Sequence[Any] | None = None,
        **params: Any,
    ) -> None:
        self.method = method
        self.scale = scale
        self.pos_label = pos_label
        self.labels = labels
        self._params = params

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002
        """Return the method and all its hyper-parameters.

        Parameters
        ----------
        deep : bool
            Has no effect, because no parameter is an estimator.

        Returns
        -------
        dict
            Names and values.
        """
        options = {name: getattr(self, name) for name in self._options}
        return {
            "method": self.method,
            **options,
            **_defaults(self.method),
            **self._params,
        }

    def set_params(self, **params: Any) -> Self:
        """Change the method or hyper-parameters.

        Hyper-parameters that the new method does not have are dropped.

        Parameters
        ----------
        **params
            The parameters to change; if one is invalid, nothing changes.

        Returns
        -------
        Calibrator
            Itself.
        """
        name = params.get("method", self.method)
        known, kept = _defaults(name), self.get_params()
        if name != self.method:
            kept = {k: v for k, v in kept.items() if k in {*self._options, *known}}
        changed = type(self)(**{**kept, "method": name, **params}).checked()
        self.__dict__.update(changed.__dict__)
        return self

    def checked(self) -> Self:
        """Return itself, or raise where a hyper-parameter is invalid."""
        check_choice(self.scale, get_args(Scale), name="scale")
        kinds = kinds_of(self.method)
        if self.labels is not None and kinds == ("binary",):
            raise OptionError(
                f"labels names several classes, but {self.method!r} calibrates one "
                "event; pass the label of the event as pos_label."
            )
        if self.pos_label is not None and kinds == ("multi-class",):
            raise OptionError(MANY_CLASSES)
        for kind in kinds:
            self._family(kind)
        return self

    def _family(self, kind: Kind) -> Any:
        """Return the family of one kind, with the hyper-parameters that it has."""
        method, known = find_method(self.method, kind), _defaults(self.method)
        own = method.defaults()
        params = {k: v for k, v in self._params.items() if k in own or k not in known}
        return method.build(**params)

    def _check_all_used(self, kind: Kind) -> None:
        """Raise where hyper-parameters are set that only the other kind has."""
        known, own = _defaults(self.method), find_method(self.method, kind).defaults()
        for name, value in self._params.items():
            if name not in own and value != known[name]:
                raise OptionError(
                    f"{name} is a parameter of the {OTHER[kind]} {self.method!r}, but "
                    f"the predictions are {kind}."
                )
        if kind == "multi-class" and self.pos_label is not None:
            raise OptionError(MANY_CLASSES)

    def _kind_of(self, p: ArrayLike) -> Kind:
        """Return what the predictions are of: an event, or several classes."""
        kinds = kinds_of(self.method)
        if len(kinds) == 1:
            return kinds[0]
        shape = as_array(p, name=WORDING.prob).shape
        classes = self.labels is not None or (len(shape) > 1 and shape[1] > 2)  # noqa: PLR2004
        return "multi-class" if classes else "binary"

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        usual = {**self._options, **_defaults(self.method)}
        params = {name: getattr(self, name) for name in self._options} | self._params
        changed = "".join(
            f", {name}={value!r}"
            for name, value in params.items()
            if repr(value) != repr(usual[name])  # labels may be an array
        )
        return f"{type(self).__name__}({self.method!r}{changed})"

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the input is."""
        tags, vector = super().__sklearn_tags__(), "binary" in kinds_of(self.method)
        tags.input_tags.one_d_array = vector
        tags.input_tags.two_d_array = not vector
        tags.input_tags.positive_only = self.scale in ("prob", "percent")
        tags.target_tags.required = True
        return tags

    def fit(
        self,
        p: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the map.

        Parameters
        ----------
        p : array-like of shape (n,) or (n, k)
            Predictions of the event; the two columns of `predict_proba`, of which the
            second belongs to the event; or one column per class.
        y : array-like of shape (n,)
            Labels: 0 and 1, booleans, or with `pos_label` any two values. For several
            classes: column numbers, or values of `labels`; classes may be absent.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of 2 counts the row twice.
        groups : array-like of shape (n,) or (n, columns), optional
            The group of each row. Each group gets its own map if that is better on
            held-out rows than one map for all. Small groups have nearly the map of all
            rows. Only for one event and the method "auto".

        Returns
        -------
        Calibrator
            Itself.
        """
        if y is None:
            raise LabelError("requires y to be passed, but the target y is None.")
        self.checked()
        kind = self._kind_of(p)
        self._check_all_used(kind)
        sample: BinarySample | ClassSample
        if kind == "binary":
            sample = self._event(p, y, sample_weight)
            self.n_features_in_ = 1
            self.__dict__.pop("classes_", None)  # of an earlier fit
        else:
            sample = self._classes(p, y, sample_weight)
            self.n_features_in_ = sample.n_classes
            named = range(sample.n_classes) if self.labels is None else self.labels
            self.classes_ = np.asarray(named)
        warn_if_small(sample)
        family = self._family(kind)
        if groups is not None:
            family = _of_groups(family, p, groups, sample_weight)
        self.fit_: Fit | MulticlassFit = fit_family(family, sample)
        if isinstance(sample, BinarySample):
            self.range_ = float(sample.p.min()), float(sample.p.max())
            warn_if_falling(cast("Fit", self.fit_).map, sample.p)
        return self

    def _event(self, p: Any, y: Any, sample_weight: Any) -> BinarySample:
        return check_binary_sample(
            y,
            p,
            sample_weight=sample_weight,
            pos_label=self.pos_label,
            scale=self.scale,
            wording=WORDING,
        )

    def _classes(self, p: Any, y: Any, sample_weight: Any) -> ClassSample:
        return check_class_sample(
            p, y, scale=self.scale, labels=self.labels, sample_weight=sample_weight
        )

    @property
    def map_(self) -> CalibrationMap | MulticlassMap | GroupedMap:
        """Return the fitted map."""
        check_is_fitted(self, "fit_")
        return self.fit_.map

    @property
    def certificate_(self) -> Certificate:
        """Return what was tried and gained, where the method is "auto"."""
        check_is_fitted(self, "fit_")
        certificate: Certificate | None = getattr(self.fit_, "certificate", None)
        if certificate is None:
            raise AttributeError(
                f"only the method 'auto' has a certificate; method is {self.method!r}."
            )
        return certificate

    def transform(
        self, p: ArrayLike, groups: ArrayLike | None = None
    ) -> FloatVector | FloatMatrix:
        """Return calibrated probabilities.

        Parameters
        ----------
        p : array-like of shape (n,) or (n, k)
            Predictions, as for `fit`.
        groups : array-like of shape (n,) or (n, columns), optional
            The group of each row, if the map differs by group; rows of groups that
            `fit` did not see are calibrated by the map of all rows.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
            Calibrated probabilities in the shape of `p`; rows of several columns sum
            to 1.
        """
        map_ = self.map_
        transform: Callable[..., FloatVector] = map_.transform
        if isinstance(map_, GroupedMap):
            transform = partial(transform, groups=groups)
        if isinstance(map_, MulticlassMap):
            return map_.transform(p)
        array = as_array(p, name=WORDING.prob)
        two = has_two_columns(array)
        if self.scale != "prob":
            check = check_probability_matrix if two else check_probabilities
            array = check(array, scale=self.scale, wording=WORDING)
        calibrated = transform(array)
        warn_if_outside(array[:, 1] if two else array.ravel(), self.range_)
        return calibrated


def _of_groups(family: Any, p: Any, groups: Any, sample_weight: Any) -> GroupedAuto:
    """Return the family of maps of groups, for rows that have a weight."""
    rows = as_array(p, name=WORDING.prob)
    keys = keys_of_groups(groups)
    check_same_length(p=rows, groups=np.empty(len(keys)))
    weight = check_weights(sample_weight, name="sample_weight")
    if weight is not None:
        keys = [key for key, one in zip(keys, weight, strict=True) if one]
    columns = len(keys[0])
    names = ["group"] if columns == 1 else [f"group_{k}" for k in range(columns)]
    return GroupedAuto.of(family, names, keys)


def _defaults(name: Any) -> dict[str, Any]:
    """Return the hyper-parameters of a method, of either kind, with their defaults."""
    return {
        parameter: value
        for kind in reversed(kinds_of(name))
        for parameter, value in find_method(name, kind).defaults().items()
    }


def make_calibrator(name: str = DEFAULT_REPAIR, **params: Any) -> Calibrator:
    """Return an unfitted calibrator.

    Parameters
    ----------
    name : str
        Name of the method; see `calibrator_names`. A trailing number is the number
        of bins; ``ovr-`` applies a binary method to each class against the rest, and
        ``top-`` to the top label.
    **params
        Hyper-parameters of the method, such as ``tops="flat"``, and ``scale``,
        ``pos_label`` and ``labels`` (see `Calibrator`). ``get_params()`` of the result
        returns all of them with their values.

    Returns
    -------
    Calibrator
        A scikit-learn transformer with ``fit(p, y)``, ``transform(p)`` and ``map_``.

    See Also
    --------
    calibrator_names : the names that can be given.
    CalibratedClassifier : a classifier and its calibrator as one.

    Examples
    --------
    >>> import calibrant as cb
    >>> cb.make_calibrator("es-cv", max_bins=20)
    Calibrator('es-cv', max_bins=20)
    >>> cb.make_calibrator("temperature", scale="logit")
    Calibrator('temperature', scale='logit')
    >>> cb.make_calibrator("platt").get_params()
    {'method': 'platt', ...}
    """
    return Calibrator(name, **params).checked()
