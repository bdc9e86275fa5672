"""The research bench: data with a known truth."""

from calibrant.experiments import synthetic

__all__ = ["synthetic"]
