"""The scikit-learn shell around any family of binary calibration maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from calibrant._validation.sample import check_binary_sample, warn_if_small
from calibrant._validation.wording import CALIBRATORS
from calibrant.calibrators.registry import find_method

if TYPE_CHECKING:
    from calibrant._typing import ArrayLike, FloatVector
    from calibrant.calibrators.base import Fit
    from calibrant.maps.base import CalibrationMap


class BinaryCalibrator(TransformerMixin, BaseEstimator):
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

    def __init__(self, method: str = "es15", **params: Any) -> None:
        self.method = method
        self._given = params

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002
        """Return the method and all its hyper-parameters."""
        return {
            "method": self.method,
            **find_method(self.method).defaults(),
            **self._given,
        }

    def set_params(self, **params: Any) -> Self:
        """Change the method or hyper-parameters.

        With another method, hyper-parameters that it does not have are forgotten.
        """
        method = params.pop("method", self.method)
        found = find_method(method)
        kept = {k: v for k, v in self._given.items() if k in found.defaults()}
        found.build(**{**kept, **params})
        self.method, self._given = method, {**kept, **params}
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        told = "".join(f", {name}={value!r}" for name, value in self._given.items())
        return f"{type(self).__name__}({self.method!r}{told})"

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
        warn_if_small(sample, stacklevel=3)
        self.fit_: Fit = find_method(self.method).build(**self._given).fit(sample)
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


def make_calibrator(name: str, **params: Any) -> BinaryCalibrator:
    """Return an unfitted calibrator.

    Parameters
    ----------
    name : str
        Name of the method; see `calibrator_names`. A trailing number is the number
        of bins.
    **params
        Hyper-parameters of the method, such as ``tops="flat"``.

    Returns
    -------
    BinaryCalibrator
        A scikit-learn transformer with ``fit(p, y)``, ``transform(p)`` and ``map_``.

    Examples
    --------
    >>> import calibrant as cb
    >>> cb.make_calibrator("es-cv", max_bins=20)
    BinaryCalibrator('es-cv', max_bins=20)
    """
    find_method(name).build(**params)
    return BinaryCalibrator(name, **params)
