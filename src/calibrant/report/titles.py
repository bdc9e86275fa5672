"""What methods and scores are called in sentences."""

from __future__ import annotations

TITLES = {
    "platt": "Platt scaling",
    "beta": "Beta calibration",
    "isotonic": "Isotonic calibration",
    "temperature": "Temperature scaling",
    "vector": "Vector scaling",
    "smooth": "Smooth calibration",
}
LIFTED = {"top-": "of the top label", "ovr-": "of each class"}


def title_of(method: str) -> str:
    """Return what a method is called at the start of a sentence.

    Examples
    --------
    >>> title_of("platt"), title_of("top-smooth"), title_of("es15")
    ('Platt scaling', 'Smooth calibration of the top label', 'Calibration by es15')
    """
    lift = LIFTED.get(method[:4])
    if lift is not None and method[4:] in TITLES:
        return f"{TITLES[method[4:]]} {lift}"
    return TITLES.get(method, f"Calibration by {method}")


def scored_event(task: str) -> str:
    """Return which event Brier score and log-loss are about.

    Examples
    --------
    >>> scored_event("binary"), scored_event("confidence")
    ('the event', 'whether the top label is right')
    """
    events = {
        "binary": "the event",
        "confidence": "whether the top label is right",
        "classwise": "each class against the rest, averaged over classes",
    }
    return events.get(task, f"class {task} against the rest")
