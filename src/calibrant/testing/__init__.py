"""For those who write methods: what every evaluator must survive."""

from __future__ import annotations

from calibrant.testing.conformance import Finding, conformance

__all__ = ["Finding", "conformance"]
