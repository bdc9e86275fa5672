"""The research bench: data with a known truth, and how methods do on them."""

from calibrant.experiments import assessment, synthetic
from calibrant.experiments.class_contenders import ClassContender
from calibrant.experiments.design import (
    Contender,
    Design,
    paper_contenders,
    paper_design,
    quick_design,
)
from calibrant.experiments.embedded import embedded_predictions
from calibrant.experiments.prediction_files import StoredPredictions, find_predictions
from calibrant.experiments.predictions import Event, PredictionSet, Split
from calibrant.experiments.pseudo_real import PseudoRealTruth
from calibrant.experiments.real import RealStudy, RealTruth
from calibrant.experiments.runner import run
from calibrant.experiments.shapes import add_shape
from calibrant.experiments.studies import PseudoRealStudy
from calibrant.experiments.truths import KnownSample, SyntheticTruth, Truth

__all__ = [
    "ClassContender",
    "Contender",
    "Design",
    "Event",
    "KnownSample",
    "PredictionSet",
    "PseudoRealStudy",
    "PseudoRealTruth",
    "RealStudy",
    "RealTruth",
    "Split",
    "StoredPredictions",
    "SyntheticTruth",
    "Truth",
    "add_shape",
    "assessment",
    "embedded_predictions",
    "find_predictions",
    "paper_contenders",
    "paper_design",
    "quick_design",
    "run",
    "synthetic",
]
