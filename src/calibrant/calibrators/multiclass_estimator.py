"""The scikit-learn shells around multi-class families."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant.calibrators.fitting import fit_family
from calibrant.calibrators.named import NamedCalibrator
from calibrant.core.array_types import Scale
from calibrant.core.class_sample import check_class_sample
from calibrant.core.defaults import DEFAULT_METHOD
from calibrant.core.options import check_choice
from calibrant.core.sample import warn_if_small

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.calibrators.multiclass import MulticlassFit
    from calibrant.calibrators.registry import Method
    from calibrant.core.array_types import ArrayLike, FloatMatrix
    from calibrant.maps.multiclass import MulticlassMap


class MulticlassCalibrator(NamedCalibrator):
    """Calibrate the probabilities of all classes together.

    Made by `make_calibrator`. Fit on held-out data to correct new predictions.

    Parameters
    ----------
    method : str
        Name of a multi-class method; see `calibrator_names`.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are: probabilities, logits, percentages or logarithms of
        probabilities; nothing is guessed.
    labels : sequence, optional
        The label of each column of predictions, in order; 0 to k - 1 without.
    **params
        Hyper-parameters of the method.

    Attributes
    ----------
    map_ : MulticlassMap
        The fitted map.
    fit_ : MulticlassFit
        The map with what else the fit found, such as the penalties chosen.
    classes_ : ndarray of shape (k,)
        The label of each column.

    Examples
    --------
    >>> import calibrant as cb
    >>> prob, digit = cb.datasets.load_multiclass("forest")
    >>> calibrator = cb.make_calibrator("temperature").fit(prob, digit)
    >>> round(calibrator.map_.temperature, 2)     # below 1: the forest was unsure
    0.27
    >>> calibrator.transform(prob).shape
    (1797, 10)
    """

    _kind = "multi-class"
    _own_params = ("scale", "labels")
    _lift: ClassVar[str] = ""

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
        self._given = params

    def _found(self, method: str) -> Method:
        return super()._found(self._lift + str(method))

    def _told(self) -> dict[str, Any]:
        own = {"scale": "prob", "labels": None}
        given = {k: getattr(self, k) for k in own if getattr(self, k) != own[k]}
        return {**given, **super()._told()}

    def checked(self) -> Self:
        """Return itself, or raise where a hyper-parameter cannot be."""
        check_choice(self.scale, get_args(Scale), name="scale")
        self._found(self.method).build(**self._given)
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
            Counts: a weight of 2 equals the row twice.

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
        family: Any = self._found(self.method).build(**self._given)
        self.fit_: MulticlassFit = fit_family(family, sample)
        self.classes_ = np.arange(sample.n_classes)
        if self.labels is not None:
            self.classes_ = np.asarray(self.labels)
        self.n_features_in_ = sample.n_classes
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


class OneVsRest(MulticlassCalibrator):
    """Calibrate each class against the rest by a binary method.

    Rows are then divided by their sum. The top label may change. The same as
    ``make_calibrator("ovr-" + method)``.

    Parameters
    ----------
    method : str
        Name of a binary method.
    scale, labels
        As in `MulticlassCalibrator`.
    **params
        Hyper-parameters of the binary method.

    Examples
    --------
    >>> import calibrant as cb
    >>> prob, digit = cb.datasets.load_multiclass("forest")
    >>> calibrator = cb.OneVsRest("es10", tops="flat").fit(prob, digit)
    >>> calibrator.transform(prob[:1]).sum()
    np.float64(1.0)
    """

    _lift = "ovr-"

    def __init__(
        self,
        method: str = DEFAULT_METHOD,
        *,
        scale: Scale = "prob",
        labels: Sequence[Any] | None = None,
        **params: Any,
    ) -> None:
        super().__init__(method, scale=scale, labels=labels, **params)


class TopLabel(MulticlassCalibrator):
    """Calibrate the top label's probability by a binary method.

    The other classes share what is left in proportion. The top label changes where
    its calibrated probability falls below another's share. The same as
    ``make_calibrator("top-" + method)``.

    Parameters
    ----------
    method : str
        Name of a binary method.
    scale, labels
        As in `MulticlassCalibrator`.
    **params
        Hyper-parameters of the binary method.

    Examples
    --------
    >>> import calibrant as cb
    >>> prob, digit = cb.datasets.load_multiclass("forest")
    >>> repaired = cb.TopLabel("pl").fit(prob, digit).transform(prob)
    >>> round(cb.calibration_error(digit, repaired, task="confidence"), 2)
    0.0
    """

    _lift = "top-"

    def __init__(
        self,
        method: str = DEFAULT_METHOD,
        *,
        scale: Scale = "prob",
        labels: Sequence[Any] | None = None,
        **params: Any,
    ) -> None:
        super().__init__(method, scale=scale, labels=labels, **params)
