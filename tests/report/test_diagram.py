"""The numbers behind the page's diagrams."""

import numpy as np

import calibrant as cb
from calibrant.report.diagram import nearest_end


def test_diagrams_of_classes_have_the_same_axes(fast):
    prob, digit = cb.datasets.load_multiclass("forest")
    report = cb.Report.from_predictions(digit, prob, task="classwise", **fast)
    panels = report.summary["models"][0]["diagrams"]
    assert len({(panel["low"], panel["axes"]) for panel in panels}) == 1
    rows = [sum(panel["histogram"]["logit"]["rows"]) for panel in panels]
    assert rows == [len(digit)] * len(panels)


def test_bins_are_those_of_the_library(report, rows):
    data = rows()
    display = cb.ReliabilityDisplay.from_predictions(
        data["label"], data["good"], method="es15"
    )
    bins = report.summary["models"][0]["diagrams"][0]["bins"][0]
    assert bins["method"] == "es15"
    np.testing.assert_allclose(bins["observed"], display.frame()["observed"], 1e-5)
    assert sum(bins["rows"]) == 3000


def test_histograms_hold_every_row(report):
    for model in report.summary["models"]:
        for scale in ("prob", "logit"):
            assert sum(model["diagrams"][0]["histogram"][scale]["rows"]) == 3000


def test_logit_axes_reach_about_to_the_outermost_rows():
    assert nearest_end(np.array([0.2, 0.5, 0.9])) == 0.05
    assert nearest_end(np.full(1000, 1e-9)) == 1e-6
    assert nearest_end(np.array([0.0, 1.0])) == 0.01


def test_rare_events_are_drawn_on_logit_axes(fast):
    rng = np.random.default_rng(0)
    for scale, axes in ((0.04, "logit"), (1.0, "prob")):
        p = scale * rng.random(500)
        y = (rng.random(500) < p).astype(int)
        y[0] = 1
        found = cb.Report.from_predictions(y, p, **fast).summary["models"][0]
        assert found["diagrams"][0]["axes"] == axes
