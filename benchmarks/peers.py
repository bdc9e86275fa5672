"""Calibration errors of other libraries, as ``measure(y, p)``; probcal takes weights.

Libraries are imported at the first call, so all that are installed can be timed. An
adapter does only what the documentation of the library requires: the order of the
arguments, tensors, integer labels. It does not fix, check or hide anything else.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import numpy as np

BINS = 15

MODULES = {
    "netcal": "netcal",
    "torchmetrics": "torchmetrics",
    "uncertainty-calibration": "calibration",
    "probcal": "probcal",
    "relplot": "relplot",
    "mapie": "mapie",
    "calibstats": "calibstats",
    "pycalib": "pycalib",
}
"""The module of each library."""


def netcal_width(y, p):
    return float(import_module("netcal.metrics").ECE(BINS).measure(p, y))


def netcal_size(y, p):
    ece = import_module("netcal.metrics").ECE(BINS, equal_intervals=False)
    return float(ece.measure(p, y))


def torchmetrics_width(y, p):
    functional = import_module("torchmetrics.functional.classification")
    error = functional.binary_calibration_error(
        _tensor(p), _tensor(y), n_bins=BINS, norm="l1"
    )
    return float(error)


def _tensor(values):
    # torch supports only the native byte order; torchmetrics is not to blame.
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    return import_module("torch").from_numpy(native)


def mapie_width(y, p):
    """Ask for 15 edges, which make 14 bins and one for p = 0."""
    metrics = import_module("mapie.metrics.calibration")
    return metrics.expected_calibration_error(y, p, num_bins=BINS)


def uncertainty_calibration_width(y, p):
    return float(import_module("calibration").get_ece(p, _integers(y)))


def uncertainty_calibration_size(y, p):
    return float(import_module("calibration").get_ece_em(p, _integers(y)))


def uncertainty_calibration_plain(y, p):
    """Use the default bins: one per value if values repeat, otherwise 15."""
    calibration = import_module("calibration")
    return float(calibration.get_calibration_error(p, _integers(y), p=1, debias=False))


def uncertainty_calibration_debiased_l1(y, p):
    return float(import_module("calibration").get_calibration_error(p, _integers(y), 1))


def uncertainty_calibration_debiased_l2(y, p):
    """Return the root of the debiased squared error, the library's default."""
    return float(import_module("calibration").get_calibration_error(p, _integers(y)))


def _integers(y):
    return y.astype(np.int64, copy=False)


def probcal_width(y, p, weight=None):
    ece = import_module("probcal.metrics").ece
    return ece(y, p, n_bins=BINS, strategy="width", sample_weight=weight)


def probcal_size(y, p, weight=None):
    return import_module("probcal.metrics").ece(y, p, n_bins=BINS, sample_weight=weight)


def probcal_debiased(y, p, weight=None):
    return import_module("probcal.metrics").ece_debiased(y, p, sample_weight=weight)


def probcal_sweep(y, p, weight=None):
    return import_module("probcal.metrics").ece_sweep(y, p, sample_weight=weight)


def calibstats_width(y, p):
    return import_module("calibstats").ece(p, y, n_bins=BINS)


def calibstats_size(y, p):
    return import_module("calibstats").ace(p, y, n_bins=BINS)


def relplot_width(y, p):
    return float(import_module("relplot").metrics.binnedECE(p, y, nbins=BINS))


def pycalib_width(y, p):
    return float(import_module("pycalib.metrics").binary_ECE(y, p, bins=BINS))


EQUAL_WIDTH = {
    "netcal": netcal_width,
    "torchmetrics": torchmetrics_width,
    "uncertainty-calibration": uncertainty_calibration_width,
    "probcal": probcal_width,
    "relplot": relplot_width,
    "mapie": mapie_width,
    "calibstats": calibstats_width,
    "pycalib": pycalib_width,
}

EQUAL_SIZE = {
    "netcal": netcal_size,
    "uncertainty-calibration": uncertainty_calibration_size,
    "probcal": probcal_size,
    "calibstats": calibstats_size,
}

DEBIASED = {
    "uncertainty-calibration": uncertainty_calibration_debiased_l1,
    "probcal": probcal_debiased,
}

SWEEP = {"probcal": probcal_sweep}


def installed(measures):
    """Return the measures of the installed libraries."""
    return {name: found for name, found in measures.items() if _is_here(name)}


def missing():
    """Return the names of the libraries that are not installed."""
    return [name for name in MODULES if not _is_here(name)]


def _is_here(name):
    return find_spec(MODULES[name]) is not None


def versions(*others):
    """Return the versions of the given packages and of the installed libraries."""
    found = {}
    for name in (*others, *MODULES):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
