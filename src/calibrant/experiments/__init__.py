"""The research bench: data with a known truth, and how methods perform on them.

- Data: `synthetic` (the paper's shapes and others), `prediction_sets` (of models, in
  files), `models` (trained here), `prediction_truths` (the true maps of models).
- What is measured: `assessment`. How it is run and stored: `runner`.
- What is run: `studies` (synthetic), `model_studies` (pseudo-real and real), `arena`
  (of calibrators). Results: `tables`, `figures`.
"""

from calibrant.experiments import assessment, synthetic
from calibrant.experiments.arena import arena_sets, arena_study
from calibrant.experiments.assessment import Contender, KnownSample, Truth
from calibrant.experiments.model_studies import pseudo_real_study, real_study
from calibrant.experiments.models import digit_models, train_models
from calibrant.experiments.prediction_sets import (
    Event,
    Split,
    StoredPredictions,
    find_predictions,
)
from calibrant.experiments.prediction_truths import (
    ClassContender,
    PseudoRealTruth,
    RealTruth,
)
from calibrant.experiments.runner import Design, run
from calibrant.experiments.studies import (
    Study,
    fresh_study,
    paper_contenders,
    paper_design,
    synthetic_study,
)
from calibrant.experiments.synthetic import SyntheticTruth

__all__ = [
    "ClassContender",
    "Contender",
    "Design",
    "Event",
    "KnownSample",
    "PseudoRealTruth",
    "RealTruth",
    "Split",
    "StoredPredictions",
    "Study",
    "SyntheticTruth",
    "Truth",
    "arena_sets",
    "arena_study",
    "assessment",
    "digit_models",
    "find_predictions",
    "fresh_study",
    "paper_contenders",
    "paper_design",
    "pseudo_real_study",
    "real_study",
    "run",
    "synthetic",
    "synthetic_study",
    "train_models",
]
