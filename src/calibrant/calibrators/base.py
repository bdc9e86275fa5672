"""Calibrators: what the classes of all methods have in common.

A method is one class: a dataclass of hyper-parameters that fits maps of one event
(`EventCalibrator`), of several classes (`ClassCalibrator`) or of either. The classes
follow scikit-learn's conventions without importing it, which takes longer than most
evaluations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np

from calibrant.calibrators.map_warnings import warn_if_outside, warn_if_upside_down
from calibrant.core.array_types import Scale
from calibrant.core.arrays import as_array, check_same_length
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
    cluster_codes,
    warn_if_small,
)
from calibrant.core.threads import one_blas_thread
from calibrant.core.weights import check_weights
from calibrant.core.wording import CALIBRATOR_WORDING
from calibrant.exceptions import (
    Argument,
    LabelError,
    OptionError,
    ShapeError,
    UnknownNameError,
)
from calibrant.maps.grouped import GroupedMap, keys_of_groups
from calibrant.maps.multiclass import MulticlassMap
from calibrant.numerics.cluster_dependence import check_two_clusters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calibrant.calibrators.fits import Fit, MulticlassFit
    from calibrant.core.array_types import ArrayLike, FloatMatrix, FloatVector
    from calibrant.core.sample import ClassSample
    from calibrant.maps.base import CalibrationMap
    from calibrant.maps.certificate import Certificate
    from calibrant.maps.grouped import Key

Kind: TypeAlias = Literal["binary", "multi-class"]
"""Whether predictions are probabilities of one event, or those of all classes."""

WORDING = replace(CALIBRATOR_WORDING, takes_scale=True)
BRIER = "Brier"
MANY_CLASSES = (
    "pos_label is the label of one event, but the calibrator is for several classes; "
    "pass labels, one per column."
)

NO_GROUPS = (
    "only the method 'auto' fits maps of groups, for one event; use it, or remove ",
    Argument("groups"),
    ".",
)


NO_CLUSTERS = (
    "only methods 'auto' and 'smooth', for one event, allow for clusters; remove ",
    Argument("clusters"),
    ".",
)

PARAMETERS = "Parameters\n----------\n"
COMMON = {
    "scale": """\
scale : {"prob", "logit", "percent", "logprob"}
    What predictions are; it is never guessed.
""",
    "pos_label": """\
pos_label : object, optional
    The label of the event, if labels are not 0 and 1.
""",
    "labels": """\
labels : sequence, optional
    The label of each column of predictions, in order; 0 to k - 1 by default.
""",
}
"""Parameters that say what predictions and labels are, as `help()` describes them."""


@dataclass(kw_only=True, eq=False, repr=False)
class Calibrator:
    """Calibrate the probabilities of an event, or of all classes together.

    The common base of all methods, whose classes `make_calibrator` looks up by name:
    ``help(make_calibrator("platt"))`` shows what a method is and its parameters. Fit on
    held-out data to correct new predictions. A vector, or the two columns of a binary
    classifier, contains predictions of one event; more columns are classes.

    Parameters
    ----------
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are: probabilities, logits, percentages or log-probabilities;
        it is never guessed.

    Attributes
    ----------
    map_ : CalibrationMap, MulticlassMap or GroupedMap
        The fitted map; a `GroupedMap` if `fit` was given groups. A map of one event
        takes probabilities, whatever `scale` is; its SQL takes what was fitted.
    fit_ : Fit or MulticlassFit
        The map with other results of the fit, such as the table of bins.
    range_ : tuple of float
        The lowest and the highest prediction of the event in the fitted data.
        `transform` warns (`OutsideRangeWarning`) if more than 1 % of its
        predictions are more than 0.05 outside; `fit` warns (`FallingMapWarning`) if
        a map without bins decreases by more than 0.02 within the range, and
        (`UpsideDownWarning`) if predictions and labels are negatively correlated.
    certificate_ : Certificate
        What was tried and gained, by the method "auto".
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

    scale: Scale = "prob"

    fitted_by: ClassVar[str] = "log-loss"
    """The loss that fitting minimises."""
    solves_equations: ClassVar[bool] = True
    """Whether fitting needs linear algebra, which is then done in one thread."""
    knows_clusters: ClassVar[bool] = False
    """Whether fitting an event allows for rows that belong together."""
    _only_for: ClassVar[dict[Kind, tuple[str, ...]]] = {}
    """Parameters that matter for predictions of one kind only."""

    def __init_subclass__(cls) -> None:
        """Describe the common parameters in front of the method's own."""
        super().__init_subclass__()
        if cls.__doc__:
            common = "".join(
                text for name, text in COMMON.items() if hasattr(cls, name)
            )
            before, mark, after = cleandoc(cls.__doc__).partition(PARAMETERS)
            if not mark:
                before, mark, after = before.partition("References\n")
                before, after = f"{before.rstrip()}\n\n", f"\n{mark}{after}"
            cls.__doc__ = f"{before}{PARAMETERS}{common}{after}".rstrip() + "\n"

    def check_parameters(self) -> None:
        """Raise where a parameter of the method is invalid."""

    def checked(self) -> Self:
        """Return itself, or raise where a parameter is invalid."""
        self.check_parameters()
        check_choice(self.scale, get_args(Scale), name="scale")
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002
        """Return all parameters.

        Parameters
        ----------
        deep : bool
            Whether to include those of a calibrator that is itself a parameter.

        Returns
        -------
        dict
            Names and values.
        """
        params = {field.name: getattr(self, field.name) for field in fields(self)}
        nested = {
            f"{name}__{inner}": value
            for name, part in params.items()
            if deep and isinstance(part, Calibrator)
            for inner, value in part.get_params().items()
        }
        return params | nested

    def set_params(self, **params: Any) -> Self:
        """Change parameters; `fit` checks their values.

        Parameters
        ----------
        **params
            The parameters to change; if a name is unknown, nothing changes.

        Returns
        -------
        Calibrator
            Itself.
        """
        known = self.get_params()
        for name in params:
            if name not in known:
                what = f"parameter of {type(self).__name__}"
                raise UnknownNameError.among(what, name, known)
        for name, value in params.items():
            own, _, inner = name.partition("__")
            if inner:
                getattr(self, own).set_params(**{inner: value})
            else:
                setattr(self, own, value)
        return self

    def __repr__(self) -> str:
        changed = (
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if repr(getattr(self, field.name)) != repr(field.default)
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the input is."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        vector = isinstance(self, EventCalibrator)
        positive = self.scale in ("prob", "percent")
        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(
                one_d_array=vector, two_d_array=not vector, positive_only=positive
            ),
        )

    def fit(
        self,
        p: ArrayLike,
        y: ArrayLike = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
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
        clusters : array-like of shape (n,), optional
            The cluster of each row, such as the patient, or the question that was asked
            several times: labels within a cluster may be correlated. Without them,
            repeated rows look like evidence of miscalibration. Only for one event and
            the methods "auto" and "smooth".

        Returns
        -------
        Calibrator
            Itself.
        """
        if hasattr(p, "store"):  # a Predictions, which this layer does not know
            raise TypeError(
                "fit takes two arrays, predictions and labels: fit(p, y); got a "
                f"{type(p).__name__}. Pass its columns as arrays, or fit a map to a "
                "file with 'calibrant calibrate'."
            )
        if y is None:
            raise LabelError("requires y to be passed, but the target y is None.")
        self.checked()
        sample = self._sample(p, y, sample_weight)
        if clusters is not None:
            sample = _with_clusters(sample, p, clusters, sample_weight)
        self.check_clusters(sample)
        warn_if_small(sample)
        unfitted = replace(self)  # what was fitted keeps its parameters
        if groups is None:
            self.fit_: Fit | MulticlassFit = unfitted.fit_sample(sample)
        else:
            by, keys = _row_groups(p, groups, sample_weight)
            self.fit_ = unfitted.fit_groups(sample, by, keys)
        if isinstance(sample, BinarySample):
            self.range_ = float(sample.p.min()), float(sample.p.max())
            warn_if_upside_down(self.fit_.map, sample)  # type: ignore[arg-type]
        return self

    def _sample(self, p: Any, y: Any, sample_weight: Any) -> BinarySample | ClassSample:
        """Return the checked predictions, of an event or of several classes."""
        kind = self._kind_of(p)
        self._check_used(kind)
        if kind == "binary":
            self.n_features_in_ = 1
            self.__dict__.pop("classes_", None)  # of an earlier fit
            return check_binary_sample(
                y,
                p,
                sample_weight=sample_weight,
                pos_label=getattr(self, "pos_label", None),
                scale=self.scale,
                wording=WORDING,
            )
        if len(shape := as_array(y, name="y").shape) > 1 and shape[1] > 1:
            raise ShapeError.of(
                "y",
                "must be a vector of shape (n,)",
                f"it has shape {shape}",
                (
                    "If its rows are one-hot, pass y.argmax(axis=1). ",
                    "If rows can have several labels, fit one calibrator per label.",
                ),
            )
        labels = getattr(self, "labels", None)
        sample = check_class_sample(
            p, y, scale=self.scale, labels=labels, sample_weight=sample_weight
        )
        self.n_features_in_ = sample.n_classes
        self.classes_ = np.asarray(
            range(sample.n_classes) if labels is None else labels
        )
        return sample

    def _kind_of(self, p: ArrayLike) -> Kind:
        """Return what the predictions are of: an event, or several classes."""
        if not isinstance(self, ClassCalibrator):
            return "binary"
        if self.labels is not None or not isinstance(self, EventCalibrator):
            return "multi-class"
        shape = as_array(p, name=WORDING.prob).shape
        return "multi-class" if len(shape) > 1 and shape[1] > 2 else "binary"  # noqa: PLR2004

    def _check_used(self, kind: Kind) -> None:
        """Raise where parameters are set that matter for the other kind only."""
        defaults = {field.name: field.default for field in fields(self)}
        for other, names in self._only_for.items():
            for name in names:
                if other != kind and getattr(self, name) != defaults[name]:
                    raise OptionError(
                        f"{name} is a parameter of the {other} "
                        f"{type(self).__name__}, but the predictions are {kind}."
                    )
        if kind == "multi-class" and getattr(self, "pos_label", None) is not None:
            raise OptionError(MANY_CLASSES)

    def check_clusters(self, sample: BinarySample | ClassSample) -> None:
        """Raise where rows belong together, and the method does not allow for it.

        Parameters
        ----------
        sample : BinarySample or ClassSample
            Predictions of an event or of several classes.
        """
        if sample.clusters is None:
            return
        if not self.knows_clusters or not isinstance(sample, BinarySample):
            raise OptionError(*NO_CLUSTERS)
        check_two_clusters(int(np.unique(sample.clusters).size))

    def fit_sample(self, sample: BinarySample | ClassSample) -> Any:
        """Fit a checked sample, the linear algebra in one thread.

        Parameters
        ----------
        sample : BinarySample or ClassSample
            Predictions of an event or of several classes, with their labels.

        Returns
        -------
        Fit or MulticlassFit
            The map, and what else is known of it.
        """
        one_event = isinstance(sample, BinarySample)
        fit: Callable[[Any], Any] = getattr(
            self, "fit_event" if one_event else "fit_classes"
        )
        if not self.solves_equations:
            return fit(sample)
        with one_blas_thread():
            return fit(sample)

    def fit_groups(self, sample: Any, by: Any, row_keys: Any) -> Any:  # noqa: ARG002
        """Fit a map for each group of rows; raise an error if the method has none.

        Parameters
        ----------
        sample : BinarySample or ClassSample
            Predictions of an event or of several classes.
        by : sequence of str
            Names of the columns that define groups.
        row_keys : sequence of tuple
            The values of these columns in each row.

        Returns
        -------
        GroupedFit
            The maps and their certificate.
        """
        raise OptionError(*NO_GROUPS)

    def fit_transform(
        self,
        p: ArrayLike,
        y: ArrayLike = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
    ) -> FloatVector | FloatMatrix:
        """Fit the map and return calibrated probabilities of the same rows.

        Parameters
        ----------
        p : array-like of shape (n,) or (n, k)
            Predictions, as for `fit`.
        y : array-like of shape (n,)
            Labels, as for `fit`.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of 2 counts the row twice.
        groups : array-like of shape (n,) or (n, columns), optional
            The group of each row, as for `fit`.
        clusters : array-like of shape (n,), optional
            The cluster of each row, as for `fit`.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
            Calibrated probabilities in the shape of `p`.
        """
        fitted = self.fit(p, y, sample_weight, groups, clusters)
        return fitted.transform(p, groups)

    @property
    def map_(self) -> CalibrationMap | MulticlassMap | GroupedMap:
        """Return the fitted map, which knows the scale that it was fitted to."""
        map_ = self._fitted().map
        if self.scale == "prob" or isinstance(map_, MulticlassMap):
            return map_
        return replace(map_, fitted_scale=self.scale)

    @property
    def certificate_(self) -> Certificate:
        """Return what was tried and gained, by the method "auto"."""
        map_ = self._fitted().map
        certificate: Certificate | None = getattr(map_, "certificate", None)
        if certificate is None:
            raise AttributeError(
                "only the method 'auto' has a certificate; this calibrator is a "
                f"{type(self).__name__}."
            )
        return certificate

    def _fitted(self) -> Fit | MulticlassFit:
        """Return the fit, or raise where there is none."""
        if not hasattr(self, "fit_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"this calibrator ({type(self).__name__}) has not been fitted; call "
                "fit first."
            )
        return self.fit_

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
        map_ = self._fitted().map
        if isinstance(map_, MulticlassMap):
            return map_.transform(p)
        array = as_array(p, name=WORDING.prob)
        two = has_two_columns(array)
        if self.scale != "prob":
            check = check_probability_matrix if two else check_probabilities
            array = check(array, scale=self.scale, wording=WORDING)
        given: dict[str, Any] = {}
        if isinstance(map_, GroupedMap):
            given["groups"] = groups
        calibrated = map_.transform(array, **given)
        warn_if_outside(array[:, 1] if two else array.ravel(), self.range_)
        return calibrated


@dataclass(kw_only=True, eq=False, repr=False)
class EventCalibrator(Calibrator, ABC):
    """A method for the probability of one event."""

    pos_label: Any = None

    @abstractmethod
    def fit_event(self, sample: BinarySample) -> Fit:
        """Estimate the calibration map of a sample of one event."""

    def fit_each(self, samples: Sequence[BinarySample]) -> Sequence[Fit]:
        """Estimate the calibration map of each of several samples, such as folds."""
        return [self.fit_event(sample) for sample in samples]


@dataclass(kw_only=True, eq=False, repr=False)
class ClassCalibrator(Calibrator, ABC):
    """A method for the probabilities of all classes together."""

    labels: Sequence[Any] | None = None

    @abstractmethod
    def fit_classes(self, sample: ClassSample) -> MulticlassFit:
        """Estimate the calibration map of a sample of several classes."""


def _with_clusters(
    sample: BinarySample | ClassSample, p: Any, clusters: Any, sample_weight: Any
) -> BinarySample | ClassSample:
    """Return a sample with the clusters of its rows, those with a weight."""
    rows = as_array(p, name=WORDING.prob)
    codes = cluster_codes(as_array(clusters, name="clusters"), name="clusters")
    check_same_length(p=rows, clusters=codes)
    weight = check_weights(sample_weight, name="sample_weight")
    used = slice(None) if weight is None else weight > 0.0
    return replace(sample, clusters=codes[used])


def _row_groups(p: Any, groups: Any, sample_weight: Any) -> tuple[list[str], list[Key]]:
    """Return names of the columns of groups, and the keys of rows with a weight."""
    rows = as_array(p, name=WORDING.prob)
    keys = keys_of_groups(groups)
    check_same_length(p=rows, groups=np.empty(len(keys)))
    weight = check_weights(sample_weight, name="sample_weight")
    if weight is not None:
        keys = [key for key, one in zip(keys, weight, strict=True) if one]
    columns = len(keys[0])
    names = ["group"] if columns == 1 else [f"group_{k}" for k in range(columns)]
    return names, keys
