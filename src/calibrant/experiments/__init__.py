"""The research bench: data with a known truth, and how methods perform on them.

- Synthetic data: `shapes` (from c to p), `synthetic` (the paper's data).
- Predictions of models: `predictions` (in memory), `prediction_files` (in files),
  `embedded` (digits whose truth is exact), `prediction_truths` (their true maps).
- What is compared: `contenders` (methods), `design` (the grid of a study),
  `synthetic_studies` and `prediction_studies` (the designs of the four studies).
- What is measured: `assessment`. How it is run: `runner`, and `store` for results.
- Results: `tables`, `prediction_tables`, `rendering` (as text), `figures`.
"""

from calibrant.experiments import assessment, synthetic
from calibrant.experiments.assessment import KnownSample
from calibrant.experiments.contenders import ClassContender, Contender
from calibrant.experiments.design import Design, Truth
from calibrant.experiments.embedded import embedded_predictions
from calibrant.experiments.prediction_files import StoredPredictions, find_predictions
from calibrant.experiments.prediction_studies import PseudoRealStudy, RealStudy
from calibrant.experiments.prediction_truths import PseudoRealTruth, RealTruth
from calibrant.experiments.predictions import Event, PredictionSet, Split
from calibrant.experiments.runner import run
from calibrant.experiments.shapes import add_shape
from calibrant.experiments.synthetic import SyntheticTruth
from calibrant.experiments.synthetic_studies import (
    paper_contenders,
    paper_design,
    quick_design,
)

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
