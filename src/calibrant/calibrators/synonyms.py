"""What other libraries and papers call our methods."""

from __future__ import annotations

CLASSICAL_ECE = (
    "the classical binned ECE is 'ew15' (15 bins of equal width) or 'es15' (15 bins of "
    "equal size)"
)
HISTOGRAM = (
    "histogram binning is 'es15' or 'ew15' (bins of equal size or width) with "
    'tops="flat"'
)
SYNONYMS = {
    "ece": CLASSICAL_ECE,
    "ece15": CLASSICAL_ECE,
    "ace": "the adaptive calibration error has bins of equal size: 'es15'",
    "ecesweep": "the sweep is 'es-sweep' or 'ew-sweep'",
    "histogram": HISTOGRAM,
    "histogrambinning": HISTOGRAM,
    "sigmoid": "sigmoid (Platt) scaling is 'platt'",
    "plattscaling": "Platt scaling is 'platt'",
    "logistic": "logistic calibration is 'platt'",
    "logisticcalibration": "logistic calibration is 'platt'",
    "quadraticscaling": "quadratic scaling is 'quadratic'",
    "ivap": "inductive Venn-Abers prediction is 'venn-abers'",
    "vennabers": "Venn-Abers prediction is 'venn-abers'",
    "betacalibration": "beta calibration is 'beta'",
    "isotonicregression": "isotonic regression is 'isotonic'",
    "guo": f"temperature scaling is 'temperature', and {CLASSICAL_ECE}",
    "temperaturescaling": "temperature scaling is 'temperature'",
    "vectorscaling": "vector scaling is 'vector'",
    "matrixscaling": "matrix scaling is 'matrix-odir'",
    "structuredvectorscaling": "structured vector scaling is 'svs'",
    "structuredmatrixscaling": "structured matrix scaling is 'sms'",
    "dirichlet": "Dirichlet calibration is 'dirichlet-odir' or 'dirichlet-l2'",
    "ici": "the ICI is the calibration error with alpha=1 by a smooth map, 'smooth'",
    "loess": "the smooth calibration curve is 'smooth'",
    "skce": "the squared kernel calibration error is 'kce'",
}
"""By the other name, in lower case without signs."""
