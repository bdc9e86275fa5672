"""The scikit-learn shell around any family of binary calibration maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.utils.validation import check_is_fitted

from calibrant.calibrators.fitting import fit_family
from calibrant.calibrators.multiclass_estimator import MulticlassCalibrator
from calibrant.calibrators.named import NamedCalibrator
from calibrant.calibrators.registry import find_method
from calibrant.core.defaults import DEFAULT_METHOD
from calibrant.core.sample import check_binary_sample, warn_if_small
from calibrant.core.wording import CALIBRATORS

if TYPE_CHECKING:
    from calibrant.calibrators.base import Fit
    from calibrant.core.array_types import ArrayLike, FloatVector
    from calibrant.maps.base import CalibrationMap


class BinaryCalibrator(NamedCalibrator):
    """Calibrate the probabilities of a binary event.

    Made by `make_calibrator`. Fit on held-out data to correct new predictions; fit
    on test data to evaluate them.

    Parameters
    ----------
    method : str
        Name of the method; see `calibrator_names`.
    **params
        Hyper-parameters of the method.

    Attributes
    ----------
    map_ : CalibrationMap
        The fitted map.
    fit_ : Fit
        The map with what else the fit found, such as the table of bins.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> calibrator = cb.make_calibrator("es-cv").fit(p, y)
    >>> calibrator.transform([0.01, 0.5, 0.99]).round(2)
    array([0.  , 0.39, 1.  ])
    """

    _kind = "binary"

    def __init__(self, method: str = DEFAULT_METHOD, **params: Any) -> None:
        self.method = method
        self._given = params

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
        p : array-like of shape (n,)
            Predicted probabilities.
        y : array-like of shape (n,)
            Labels, 0 or 1.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of 2 equals the row twice.

        Returns
        -------
        BinaryCalibrator
            Itself.
        """
        sample = check_binary_sample(
            y, p, sample_weight=sample_weight, wording=CALIBRATORS
        )
        warn_if_small(sample)
        family = self._found(self.method).build(**self._given)
        self.fit_: Fit = fit_family(family, sample)
        self.n_features_in_ = 1
        return self

    @property
    def map_(self) -> CalibrationMap:
        """Return the fitted map."""
        check_is_fitted(self, "fit_")
        return self.fit_.map

    def transform(self, p: ArrayLike) -> FloatVector:
        """Return calibrated probabilities, held within [0, 1].

        Parameters
        ----------
        p : array-like of shape (n,)
            Predicted probabilities.

        Returns
        -------
        ndarray of shape (n,)
            Calibrated probabilities.
        """
        return self.map_.transform(p)


def make_calibrator(
    name: str = DEFAULT_METHOD, **params: Any
) -> BinaryCalibrator | MulticlassCalibrator:
    """Return an unfitted calibrator.

    Parameters
    ----------
    name : str
        Name of the method; see `calibrator_names`. A trailing number is the number
        of bins; ``ovr-`` and ``top-`` lift a binary method to several classes.
    **params
        Hyper-parameters of the method, such as ``tops="flat"``; of multi-class
        methods also ``scale`` and ``labels``. ``get_params()`` of the result names
        them all with their values.

    Returns
    -------
    BinaryCalibrator or MulticlassCalibrator
        A scikit-learn transformer with ``fit(p, y)``, ``transform(p)`` and ``map_``.

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
    find_method(name).build(**params)
    return BinaryCalibrator(name, **params)
