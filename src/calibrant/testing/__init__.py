"""For those who write methods: what every evaluator and map must survive."""

from __future__ import annotations

from calibrant.testing.conformance import Finding, conformance
from calibrant.testing.map_conformance import map_conformance

__all__ = ["Finding", "conformance", "map_conformance"]
