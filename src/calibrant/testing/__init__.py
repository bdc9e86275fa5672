"""For authors of methods: what every evaluator and map must survive."""

from __future__ import annotations

from calibrant.testing.conformance import Finding, conformance, map_conformance

__all__ = ["Finding", "conformance", "map_conformance"]
