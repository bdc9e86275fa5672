"""The page as text: escaped, whole, small, its data beside it."""

import itertools
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cb
from calibrant.exceptions import MissingDependencyError, UnknownNameError
from calibrant.report.json_numbers import counts, numbers
from calibrant.report.page import escape_markdown, json_for_script
from calibrant.report.svg import BOTTOM, LEFT, SIDE, Axes, decision_svg, reliability_svg


class Elements(HTMLParser):
    """All elements with their attributes, and the text of scripts."""

    def __init__(self):
        super().__init__()
        self.found, self.scripts, self._inside = [], [], False

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self._inside = tag == "script"

    def handle_endtag(self, _):
        self._inside = False

    def handle_data(self, data):
        if self._inside:
            self.scripts.append(data)


@pytest.fixture(scope="module")
def page(report):
    return report.to_html()


@pytest.fixture(scope="module")
def elements(page):
    parser = Elements()
    parser.feed(page)
    return parser


def test_hostile_names_are_no_markup(elements):
    tags = [tag for tag, _ in elements.found]
    assert "img" not in tags
    assert tags.count("script") == 2
    for _, attributes in elements.found:
        assert not any(name.startswith("on") for name in attributes)


def test_hostile_names_are_no_template(page):
    assert "{{7*7}}" in page


def test_the_data_in_the_page_are_the_summary(report, elements):
    data = json.loads(elements.scripts[0])
    assert [model["name"] for model in data["models"]] == [
        model["name"] for model in report.summary["models"]
    ]
    bins = report.summary["models"][0]["diagrams"][0]["bins"]
    assert data["models"][0]["diagrams"][0]["bins"] == bins


@pytest.mark.parametrize("sign", ["<", ">", "&", "\u2028", "\u2029"])
def test_json_in_a_script_holds_no_sign_that_could_end_it(sign):
    text = json_for_script({"a": f"x{sign}y"})
    assert sign not in text
    assert json.loads(text) == {"a": f"x{sign}y"}


def test_nothing_is_loaded_from_elsewhere(elements):
    for tag, attributes in elements.found:
        assert tag not in ("link", "iframe", "object", "embed")
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")


def test_only_our_script_may_run(elements):
    policy = next(a["content"] for _, a in elements.found if "http-equiv" in a)
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[\w+/]{43}='", policy)
    assert "unsafe" not in policy


def test_headings_step_down_one_at_a_time(elements):
    levels = [int(t[1]) for t, _ in elements.found if re.fullmatch("h[1-6]", t)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_identities_are_unique(elements):
    ids = [a["id"] for _, a in elements.found if "id" in a]
    assert len(ids) == len(set(ids))


def test_a_report_is_written_whole_with_its_data_beside(report, tmp_path):
    written = report.save(tmp_path / "report.html")
    assert [path.name for path in written] == ["report.html", "report.json"]
    assert json.loads(written[1].read_text(encoding="utf-8")) == report.summary
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "report.json"]


def test_a_page_that_cannot_be_made_leaves_the_old_one(report, tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    target.write_text("old", encoding="utf-8")
    monkeypatch.setattr(type(report), "to_json", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.save(target)
    assert target.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_the_name_decides_the_format(report, tmp_path):
    (written,) = report.save(tmp_path / "report.md")
    assert written.read_text(encoding="utf-8").startswith("# Calibration report")
    (written,) = report.save(tmp_path / "data", output="json")
    assert json.loads(written.read_text(encoding="utf-8")) == report.summary


def test_unknown_formats_are_refused(report):
    with pytest.raises(UnknownNameError, match="unknown format 'pdf'"):
        report.text("pdf")


def test_markdown_has_no_markup_of_users(report):
    text = report.to_markdown()
    assert "<img" not in text.replace(r"\<img", "")
    assert "| smooth |" in text
    assert "CAL001" in text


def test_markdown_has_measures_sentence_comparison_and_net_benefit(report):
    text = report.to_markdown()
    good = report.summary["models"][0]
    assert escape_markdown(good["sentence"]) in text
    for row in good["measures"]:
        assert f"| {row['measure']} | {row['value']:.3f} |" in text
    (pair,) = report.summary["comparison"]["pairs"]
    assert f"| {pair['difference']:.4f} |" in text
    benefit = report.summary["decisions"]["curves"][0]["net_benefit"][4]
    assert f"| 0.05 | {benefit:.3f} |" in text
    assert "| Brier score |" in text
    assert "Scores are for the event" not in text


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(report):
    shown = report._repr_html_()
    assert shown.startswith("<iframe")
    assert shown.count("<") == 2
    assert "allow-same-origin" not in shown


def test_without_jinja_the_extra_is_named(report, monkeypatch):
    from calibrant.report import page as module

    module._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingDependencyError, match=r"calibrant\[report\]"):
        report.to_html()


@pytest.mark.parametrize(
    ("ranks", "distinct", "words"),
    [
        ((1, 2, 2), (True, True, False), "<b>a</b> is significantly better calibrated"),
        ((1, 2, 2), (True, False, True), "better calibrated than <b>a</b>."),
        ((1, 1, 2), (False, False, True), "better calibrated than any of <b>a, b</b>."),
        ((1, 1, 1), (False, False, False), "No two models differ significantly."),
    ],
)
def test_the_sentence_about_models_is_true(report, ranks, distinct, words):
    """A model may be the only one of rank 1, and yet not differ from all others."""
    sides = {"difference": -0.1, "low": -0.2, "high": 0.1, "probability": 0.9}
    pairs = [
        {"model_a": a, "model_b": b, "distinct": one, **sides}
        for (a, b), one in zip(("ab", "ac", "bc"), distinct, strict=True)
    ]
    models = [{"model": m, "rank": r} for m, r in zip("abc", ranks, strict=True)]
    compared = {"method": "smooth", "models": models, "pairs": pairs}
    page = cb.Report(report.summary | {"comparison": compared}).to_html()
    assert words in page


def test_the_verdict_names_a_best_model_only_if_it_is_significantly_better(report):
    def overall(comparison):
        page = cb.Report(report.summary | {"comparison": comparison}).to_html()
        return re.search(r'<p class="overall">(.*?)</p>', page, re.DOTALL)[1]

    known = report.summary["comparison"]
    assert "is significantly better calibrated than" in overall(known)
    alike = [one | {"rank": 1} for one in known["models"]]
    pairs = [one | {"distinct": False} for one in known["pairs"]]
    text = overall(known | {"models": alike, "pairs": pairs})
    assert text.endswith("No two models differ significantly.")
    assert "has the smallest error" in overall(None)


def test_a_comparison_is_shown_where_there_is_one(report):
    pair = {"model_a": "good", "model_b": "bad", "difference": -0.0123}
    pair |= {"low": -0.02, "high": -0.005, "probability": 0.997, "distinct": True}
    summary = report.summary | {
        "comparison": {"method": "smooth", "models": [], "pairs": [pair]}
    }
    page = cb.Report(summary).to_html()
    assert "Which model is better calibrated?" in page
    assert "-0.0123" in page


def test_many_models_are_folded_away_but_all_there(rows, fast):
    data = rows(n=300)
    models = {f"model {k}": data["good"] ** (1 + k / 20) for k in range(22)}
    page = cb.Report.from_predictions(data["label"], models, **fast).to_html()
    assert page.count('<details class="body">') == 22
    assert page.count('class="card ') == 22
    assert "Only the first 20 models are drawn." in page


def test_findings_of_many_classes_are_told_once_a_code(fast):
    prob, digit = cb.datasets.load_multiclass("forest")
    page = cb.Report.from_predictions(digit, prob, task="classwise", **fast).to_html()
    assert page.count('<span class="code">CAL002</span>') == 1
    assert re.search(r"\d+ more like this", page)


@pytest.mark.parametrize("scale", ["prob", "logit"])
def test_axes_are_symmetric_and_rise(scale):
    axes = Axes(scale, (0.001, 0.999))
    values = np.linspace(0.001, 0.999, 50).tolist()
    places = [axes.share(value) for value in values]
    assert places == sorted(places)
    assert axes.share(0.5) == pytest.approx(0.5)
    assert axes.share(0.1) == pytest.approx(1 - axes.share(0.9))


def test_logit_axes_are_those_of_the_logit():
    axes = Axes("logit", (0.01, 0.99))  # log 99 at the end, so logit(0.9) lies at
    assert axes.share(0.9) == pytest.approx(0.5 + 0.5 * np.log(9) / np.log(99))


def test_curves_end_at_the_end_of_the_axes():
    """What lies beyond is not moved onto the edge, where it would be a line upwards."""
    logits = np.linspace(0.0, 30.0, 301)  # the axes end at 13.8
    p, calibrated = expit(logits), expit(logits / 3)
    curve = {"p": p.tolist(), "calibrated": calibrated.tolist()}
    axes = Axes("logit", (1e-6, 1.0 - 1e-6))
    (places,) = axes.curve_places([curve])
    right, *before = axes.x([1.0 - 1e-6, expit(13.7)]).tolist()
    assert places["p"][-1] == pytest.approx(right)
    assert before[0] <= places["p"][-2] < right
    end = axes.x(expit(logit(1.0 - 1e-6) / 3)) - LEFT  # both axes are the same
    assert BOTTOM - places["calibrated"][-1] == pytest.approx(end, abs=0.1)


def test_bins_beyond_the_axes_are_not_drawn(fast):
    logits = np.random.default_rng(0).normal(10.0, 8.0, 2000)
    y = (expit(logits / 3) > np.random.default_rng(1).random(2000)).astype(int)
    report = cb.Report.from_predictions(y, expit(logits), **fast)
    panel = report.summary["models"][0]["diagrams"][0]
    high = panel["limits"]["logit"][1]
    bins = panel["bins"][0]["predicted"]
    svg = reliability_svg({**panel, "bins": panel["bins"][:1]}, "one", "Title")
    on_logit = svg.split('<g class="on-logit">')[1]
    assert on_logit.count('class="dot"') == sum(p <= high for p in bins) < len(bins)


def test_five_models_of_very_many_rows_stay_small():
    """A page holds no rows, so its size hardly depends on their number."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80_000)
    models = {f"model {k}": rng.beta(1 + y, 2 - y) for k in range(5)}
    page = cb.Report.from_predictions(
        y, models, methods=["smooth", "es15"], n_resamples=2
    )
    assert len(page.to_html().encode()) < 1_500_000


@pytest.mark.parametrize("low", [0.05, 0.01, 1e-3, 1e-4, 1e-5, 1e-6])
def test_names_across_logit_axes_keep_apart(low):
    axes = Axes("logit", (low, 1.0 - low))
    named = axes.named_across()
    assert (axes.x(0.5), "0.5") in named
    halves = [3.7 * len(name) for _, name in named]  # 13 px digits are 7.4 px wide
    places = [place for place, _ in named]
    for (one, half), (other, next_half) in itertools.pairwise(
        zip(places, halves, strict=True)
    ):
        assert one + half < other - next_half


def test_numbers_near_one_stay_apart_and_counts_exact():
    assert numbers([1 - 1e-8, 1 - 2e-8]) == [1 - 1e-8, 1 - 2e-8]
    assert counts(np.array([1_709_267.0])) == [1_709_267.0]


def test_bins_next_to_one_are_written_shortly():
    p = np.concatenate([np.linspace(0.01, 0.9, 60), np.repeat([1.0 - 1e-13, 1.0], 60)])
    y = (np.arange(p.size) % 5 > 0).astype(int)
    page = cb.Report.from_predictions(y, p, methods="es5").to_html()
    assert ">1 - 1e-13<" in page
    assert ">1.000<" in page
    assert ">1.000000000000<" not in page


def test_a_page_has_a_sentence_and_the_measures_for_a_paper():
    p, y = cb.datasets.load_binary("logistic")
    report = cb.Report.from_predictions(y, p)
    (model,) = report.summary["models"]
    own = cb.summary(y, p)
    assert model["sentence"].endswith(own.sentence())
    assert model["sentence"].startswith(
        "The calibration error was 0.011 (95 % interval"
    )
    assert [row["value"] for row in model["measures"]] == own.frame()["value"].tolist()
    assert "doi:10.1002/sim.8281" in report.to_html()


def test_thousands_are_written_in_one_way():
    rng = np.random.default_rng(0)
    p = rng.random(1500)
    page = cb.Report.from_predictions(
        (rng.random(1500) < p**2).astype(int), p
    ).to_html()
    shown = page[page.index("<main") : page.index("</main>")]
    assert "n = 1,500" in shown
    assert "1,500 rows" in shown
    assert "\u202f" not in shown


def test_only_groups_that_are_worse_are_marked(report):
    """Models by groups: a group that differs by a smaller error has no badge."""
    (model, *_) = report.summary["models"]
    groups = [
        model["groups"][0] | {"group": "worse", "pvalue": 1e-4, "error": 0.2},
        model["groups"][0] | {"group": "better", "pvalue": 1e-4, "error": 0.0},
        model["groups"][0] | {"group": "alike", "pvalue": 0.4, "error": 0.2},
    ]
    models = [model | {"groups": groups, "name": name} for name in "ab"]
    page = cb.Report(report.summary | {"models": models, "comparison": None}).to_html()
    assert page.count('<tr class="flag"><th scope="row"><span class="part">worse') == 2
    assert page.count('class="flag"') == 2
    assert "Models by group" in page
    assert page.count("<b>0.200</b>") == 2


def test_the_page_cites_what_the_readme_asks_to_cite(report):
    doi = "10.1007/s10994-024-06652-6"
    readme = Path(__file__).parents[2] / "README.md"
    assert doi in readme.read_text(encoding="utf-8")
    assert doi in report.to_html()
    assert doi in report.to_markdown()


def test_a_repair_is_drawn_before_and_after(report):
    good, bold = report.summary["models"]
    assert good["repairs"]["after"] is None
    after = bold["repairs"]["after"]
    gap = np.abs(np.array(after["calibrated"]) - after["p"])
    before = bold["diagrams"][0]["curves"][0]
    assert gap.max() < 0.5 * np.abs(np.array(before["calibrated"]) - before["p"]).max()
    assert report.to_html().count('class="curve after"') == 2  # on both axes


def test_models_in_a_column_of_groups_are_not_pooled_without_a_word(rows, fast):
    data = rows(n=300)
    names = np.where(np.arange(300) % 2, "a", "b")
    table = {"y": data["label"], "p": data["good"], "model": names}
    by = cb.Predictions.from_table(table, y="y", p="p", by="model")
    (note,) = cb.Report.from_predictions(by, **fast).summary["notes"]
    assert "--model" in note
    long = cb.Predictions.from_table(table, y="y", p="p", model="model")
    found = cb.Report.from_predictions(long, **fast)
    assert [model["name"] for model in found.summary["models"]] == ["a", "b"]
    assert "Models side by side" in found.to_html()


def test_the_page_says_how_rows_were_read(rows, fast):
    data = rows(n=400)
    percent = 100 * data["good"]
    percent[:3] = np.nan
    table = {"y": data["label"], "p": percent, "visit": np.arange(400) // 4}
    with pytest.warns(cb.exceptions.CalibrantWarning):
        preds = cb.Predictions.from_table(
            table, y="y", p="p", scale="percent", cluster="visit", bad_rows="drop"
        )
    made = cb.Report.from_predictions(preds, **fast)
    page = made.to_html()
    assert "Predictions were given as percentages." in page
    assert "3 invalid rows were dropped" in page
    assert "100 clusters, by visit" in page
    found = made.summary["data"]
    assert (found["scale"], sum(found["dropped"].values())) == ("percent", 3)
    plain = cb.Report.from_predictions(data["label"], data["good"], **fast).to_html()
    assert not any(word in plain for word in ("given as", "dropped", "clusters, by"))


def test_dropped_rows_and_all_models_are_counted_at_the_top():
    rng = np.random.default_rng(3)
    p = rng.random(2000)
    y = (rng.random(2000) < p).astype(int)
    columns = {"y": y, "good": p, "bad": p**4}
    columns["good"][:5] = np.nan
    with pytest.warns(cb.exceptions.DroppedRowsWarning):
        preds = cb.Predictions.from_table(
            columns, y="y", p=["good", "bad"], bad_rows="drop"
        )
    page = cb.Report.from_predictions(preds).text("html")
    assert " rows, 5 dropped</span>" in page
    assert "1 of 2 models is clearly or badly off. <b>good</b> is significantly" in page


def test_decision_curves_end_where_nothing_is_flagged():
    def curve(name, benefit, flagged):
        limits = {"low": [b - 0.1 for b in benefit], "high": [b + 0.1 for b in benefit]}
        names = {"name": name, "net_benefit": benefit, "always": not name}
        return names | limits | {"flagged": flagged}

    curves = [curve("a", [0.2, 0.1, 0.0], 2), curve("b", [0.3, 0.0, 0.0], 1)]
    curves.append(curve("", [0.2, 0.0, -2.0], 3))
    drawn = decision_svg({"thresholds": [0.1, 0.3, 0.9], "curves": curves}, "t")
    ends = {
        kind: max(float(x) for x in re.findall(r"([\d.]+),", path))
        for kind, path in re.findall(r'path class="([^"]+)" d="([^"]+)"', drawn)
    }
    last = LEFT + 0.3 * SIDE
    for kind in ("band c0", "curve c0", "curve c1", "diagonal"):
        assert ends[kind] == pytest.approx(last, abs=0.1)
    assert ends["band c1"] == pytest.approx(LEFT + 0.1 * SIDE, abs=0.1)
