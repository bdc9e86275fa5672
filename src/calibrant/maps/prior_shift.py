"""Predictions of a model that was trained at another rate of events."""

from __future__ import annotations

import numpy as np

from calibrant.core.parameters import check_fraction
from calibrant.maps.beta import BetaMap
from calibrant.numerics.links import logit


def adjust_prior(new_rate: float, *, old_rate: float = 0.5) -> BetaMap:
    """Return the map for a model trained on data with a different rate of events.

    Training data are often rebalanced: events are sampled more often, or other rows
    are dropped, until half of the rows are events. Predictions are then too high where
    the model is used. If rows were sampled by label only, this shifts log-odds by a
    constant, and the map reverses the shift:

        logit(p) - logit(old_rate) + logit(new_rate)

    No labels are needed. Class weights have the same effect as sampling. If you have
    labels, `make_calibrator` corrects other faults as well.

    Parameters
    ----------
    new_rate : float
        Rate of events where the model is used, between 0 and 1.
    old_rate : float
        Rate of events in the training data; 0.5 if they were balanced.

    Returns
    -------
    CalibrationMap
        A map with `transform`, `to_sql` and `to_python`; `save_map` stores it.

    See Also
    --------
    make_calibrator : fits a map to labels.
    diagnose : recognises predictions of balanced training data (CAL013).

    References
    ----------
    C. Elkan (2001). The foundations of cost-sensitive learning. IJCAI, theorem 2.

    M. Saerens, P. Latinne, C. Decaestecker (2002). Adjusting the outputs of a
    classifier to new a priori probabilities: a simple procedure.
    doi:10.1162/089976602753284446

    Examples
    --------
    A model trained on balanced data and used where 2 % of the rows are events:

    >>> import calibrant as cb
    >>> cb.adjust_prior(0.02).transform([0.1, 0.5, 0.9]).round(4)
    array([0.0023, 0.02  , 0.1552])
    """
    rates = [
        check_fraction(rate, name=name)
        for rate, name in ((old_rate, "old_rate"), (new_rate, "new_rate"))
    ]
    old, new = logit(np.array(rates)).tolist()
    return BetaMap(1.0, 1.0, new - old)
