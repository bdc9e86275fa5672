"""The numbers behind the page's diagrams."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.report.diagram import curve_numbers


def test_diagrams_of_classes_have_the_same_axes(fast):
    prob, digit = cb.datasets.load_multiclass("forest")
    report = cb.Report.from_predictions(digit, prob, task="classwise", **fast)
    panels = report.summary["models"][0]["diagrams"]
    assert len({(*panel["limits"]["logit"], panel["axes"]) for panel in panels}) == 1
    rows = [sum(panel["histogram"]["logit"]["rows"]) for panel in panels]
    assert rows == [len(digit)] * len(panels)


def test_the_diagram_has_the_data_of_the_figure(report, rows):
    data = rows()
    display = cb.ReliabilityDisplay.from_predictions(data["label"], data["good"])
    panel = report.summary["models"][0]["diagrams"][0]
    for name in ("predicted", "observed", "low", "high"):
        np.testing.assert_allclose(panel["bins"][0][name], display.frame()[name], 1e-5)
    drawn, curve = panel["curves"][0], display.frame("curve")
    assert drawn["method"] == display.method
    assert (drawn["p"][0], drawn["p"][-1]) == pytest.approx(
        (data["good"].min(), data["good"].max()), rel=1e-5
    )
    for place in (0.1, 0.5, 0.9):
        ours = np.interp(place, drawn["p"], drawn["calibrated"])
        theirs = np.interp(place, curve["p"], curve["calibrated"])
        assert ours == pytest.approx(theirs, abs=1e-3)
    histogram = display.frame("histogram")
    assert panel["histogram"]["prob"]["events"] == histogram["events"].tolist()
    assert panel["statistics"][0] == display.statistics.lines()[0]


def test_bins_are_those_of_the_library(report, rows):
    data = rows()
    display = cb.ReliabilityDisplay.from_predictions(
        data["label"], data["good"], method="es15"
    )
    bins = report.summary["models"][0]["diagrams"][0]["bins"][1]
    assert bins["method"] == "es15"
    np.testing.assert_allclose(bins["observed"], display.frame()["observed"], 1e-5)
    assert sum(bins["rows"]) == 3000


def test_thinned_curves_keep_their_jumps():
    p = np.linspace(0.0, 1.0, 2001)
    steps = np.where(p < 0.5, 0.2, 0.8)
    drawn = curve_numbers({"p": p, "calibrated": steps})
    assert len(drawn["p"]) < 300
    at = drawn["calibrated"].index(0.8)
    assert drawn["p"][at] - drawn["p"][at - 1] == pytest.approx(0.0005)


def test_histograms_hold_every_row(report):
    for model in report.summary["models"]:
        for scale in ("prob", "logit"):
            assert sum(model["diagrams"][0]["histogram"][scale]["rows"]) == 3000


def test_rare_events_are_drawn_on_logit_axes(fast):
    rng = np.random.default_rng(0)
    for scale, axes in ((0.04, "logit"), (1.0, "prob")):
        p = scale * rng.random(500)
        y = (rng.random(500) < p).astype(int)
        y[0] = 1
        found = cb.Report.from_predictions(y, p, **fast).summary["models"][0]
        assert found["diagrams"][0]["axes"] == axes


def test_models_share_the_kind_of_their_axes(fast):
    """Such as those before and after a repair, of which one alone is near 1."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.96, 1.0, 500)
    y = (rng.random(500) < p - 0.3).astype(int)
    models = {"before": p, "after": p - 0.3}
    found = cb.Report.from_predictions(y, models, **fast).summary["models"]
    assert [one["diagrams"][0]["axes"] for one in found] == ["logit", "logit"]
