"""The one default of everything: Python, command line, report, figures and demo."""

from __future__ import annotations

DEFAULT_METHOD = "smooth"
"""How a calibration error is estimated, and what diagrams show."""
DEFAULT_REPAIR = "auto"
"""How predictions are recalibrated."""
DEFAULT_METHODS = ("smooth", "es15", "ew15")
"""What `evaluate` and reports show."""
DEFAULT_CONFIDENCE = 0.95
"""Level of intervals and bands."""
MAX_DROPPED = 0.2
"""The share of invalid rows that may be dropped."""
