"""The research bench: data with a known truth, and how methods perform on them.

- Data: `synthetic` (the paper's shapes and others), `predictions` (of models, in memory
  or in files), `embedded` (digits whose truth is exact), `prediction_truths` (the true
  maps of models).
- A study: `design` (methods and the grid of data), `studies` (the paper's and ours).
- The arena of calibrators: `arena`, its models, files (`arena_sets`) and tables.
- What is measured: `assessment`. How it is run and stored: `runner`.
- Results: `tables` (as numbers and as text), `study_tables` (of each study), `figures`.
"""

from calibrant.experiments import assessment, synthetic
from calibrant.experiments.assessment import KnownSample
from calibrant.experiments.design import Contender, Design, Truth
from calibrant.experiments.embedded import embedded_predictions
from calibrant.experiments.prediction_sets import (
    Event,
    PredictionSet,
    Split,
    StoredPredictions,
    find_predictions,
)
from calibrant.experiments.prediction_truths import (
    ClassContender,
    PseudoRealTruth,
    RealTruth,
)
from calibrant.experiments.runner import run
from calibrant.experiments.studies import (
    PseudoRealStudy,
    RealStudy,
    paper_contenders,
    paper_design,
    quick_design,
)
from calibrant.experiments.synthetic import SyntheticTruth, add_shape

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
