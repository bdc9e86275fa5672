"""The research bench: data with a known truth, and how methods do on them."""

from calibrant.experiments import assessment, synthetic
from calibrant.experiments.design import (
    Contender,
    Design,
    paper_contenders,
    paper_design,
    quick_design,
)
from calibrant.experiments.runner import run
from calibrant.experiments.shapes import add_shape
from calibrant.experiments.truths import KnownSample, SyntheticTruth, Truth

__all__ = [
    "Contender",
    "Design",
    "KnownSample",
    "SyntheticTruth",
    "Truth",
    "add_shape",
    "assessment",
    "paper_contenders",
    "paper_design",
    "quick_design",
    "run",
    "synthetic",
]
