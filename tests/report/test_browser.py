"""The page in a real browser: Debian's Chromium, driven by Playwright."""

import csv

import numpy as np
import pytest

import calibrant as cb
from calibrant.report.svg import LEFT, SIDE, TOP, WIDTH

SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def address(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    report.save(path)
    return path.as_uri()


@pytest.fixture
def opened(browser, address):
    """Open the page without a network; whatever goes wrong fails the test."""
    contexts, troubles = [], []

    def open_page(*, width=1200, url=address, **options):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, offline=True, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "request", lambda asked: asked.url != url and troubles.append(asked.url)
        )
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [t for t in troubles if not t.startswith("blob:")] == []


def diagram(page, number=1):
    return page.locator("figure.diagram").nth(number)


def hover(page, figure, p, y):
    """Point at a prediction and an outcome on probability axes."""
    box = figure.locator("svg.chart").bounding_box()
    unit = box["width"] / WIDTH
    page.mouse.move(
        box["x"] + unit * (LEFT + SIDE * p), box["y"] + unit * (TOP + SIDE * (1 - y))
    )


def test_it_opens_from_a_file_without_network_or_trouble(opened):
    page = opened()
    assert page.locator("h1").count() == 1
    assert page.locator("figure.diagram").count() == 3


def test_hovering_a_bin_shows_its_numbers(opened, report):
    page = opened()
    figure = diagram(page)
    figure.scroll_into_view_if_needed()
    bins = report.summary["models"][0]["diagrams"][0]["bins"][0]
    hover(page, figure, bins["predicted"][7], bins["observed"][7])
    told = figure.locator(".tip").inner_text()
    assert told.startswith("10 bins")
    assert (
        f"predicted {bins['predicted'][7]:.3f}, observed {bins['observed'][7]:.3f}"
        in told
    )
    assert f"{bins['rows'][7]:.0f} rows" in told


def test_hovering_the_curve_shows_its_band(opened, report):
    page = opened()
    figure = diagram(page)
    figure.scroll_into_view_if_needed()
    hover(page, figure, 0.5, 0.05)
    curve = report.summary["models"][0]["diagrams"][0]["curves"][0]
    told = figure.locator(".tip").inner_text()
    near = min(range(len(curve["p"])), key=lambda k: abs(curve["p"][k] - 0.5))
    assert f"smooth: {curve['calibrated'][near]:.3f}" in told
    assert f"({curve['low'][near]:.3f} to {curve['high'][near]:.3f})" in told


def test_leaving_takes_the_numbers_away(opened):
    page = opened()
    figure = diagram(page)
    figure.scroll_into_view_if_needed()
    hover(page, figure, 0.5, 0.5)
    assert figure.locator(".tip").inner_text()
    page.mouse.move(2, 2)
    assert figure.locator(".tip").inner_text() == ""


def test_methods_are_switched_on_and_off(opened):
    page = opened()
    figure = diagram(page)
    bins, sizes = figure.locator(".on-prob .l2"), figure.locator(".on-prob .l3")
    assert bins.is_visible()
    assert not sizes.is_visible()
    figure.get_by_label("10 bins").uncheck()
    figure.get_by_label("es15").check()
    assert not bins.is_visible()
    assert sizes.is_visible()


def test_models_are_switched_on_and_off(opened):
    page = opened()
    overview = diagram(page, 0)
    curve = overview.locator(".on-prob .l0 .curve")
    assert curve.is_visible()
    overview.get_by_label("good").uncheck()
    assert not curve.is_visible()


def test_axes_change_between_probability_and_logit(opened, report):
    page = opened()
    figure = diagram(page)
    assert figure.locator(".on-prob").is_visible()
    figure.get_by_label("logit").check()
    assert figure.locator(".on-logit").is_visible()
    assert not figure.locator(".on-prob").is_visible()
    bins = report.summary["models"][0]["diagrams"][0]["bins"][0]
    dot = figure.locator(".on-logit .l2 .dot").nth(2).bounding_box()
    page.mouse.move(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2)
    assert (
        f"predicted {bins['predicted'][2]:.3f}" in figure.locator(".tip").inner_text()
    )


def test_switches_work_with_scripts_off(opened):
    page = opened(java_script_enabled=False)
    figure = diagram(page)
    figure.locator("input[value=logit]").check()
    assert figure.locator(".on-logit").is_visible()
    figure.locator("input.t2").uncheck()
    assert not figure.locator(".on-logit .l2").is_visible()
    assert page.get_by_text("What to do").first.is_visible()
    assert page.locator("button").count() == 0


def test_arrow_keys_walk_through_the_bins(opened, report):
    page = opened()
    figure = diagram(page)
    figure.locator(".plot").focus()
    bins = report.summary["models"][0]["diagrams"][0]["bins"][0]
    for number in (0, 1):
        page.keyboard.press("ArrowRight")
        told = figure.locator(".tip").inner_text()
        assert f"observed {bins['observed'][number]:.3f}" in told
    page.keyboard.press("Escape")
    assert figure.locator(".tip").inner_text() == ""


def test_tables_are_sorted_by_their_heads(opened):
    page = opened()
    table = page.locator("table[data-name=errors]").first
    head = table.get_by_role("columnheader", name="Error")
    head.get_by_role("button").click()
    values = [
        float(cell.get_attribute("data-value"))
        for cell in table.locator("tbody td:nth-child(2)").all()
    ]
    assert values == sorted(values, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"


def downloaded(page, button, folder):
    with page.expect_download() as waiting:
        button.click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_diagram_is_downloaded_as_csv(opened, report, tmp_path, hostile):
    page = opened(accept_downloads=True)
    button = diagram(page, 2).get_by_role("button", name="Download the diagram")
    rows = downloaded(page, button, tmp_path)
    panel = report.summary["models"][1]["diagrams"][0]
    bins = [row for row in rows if row["method"] == "10 bins"]
    assert [float(row["observed"]) for row in bins] == panel["bins"][0]["observed"]
    assert {row["model"] for row in rows} == {hostile}


def test_downloaded_text_is_no_formula(opened, tmp_path, hostile):
    page = opened(accept_downloads=True)
    button = page.get_by_role("button", name="Download the table of groups").first
    rows = downloaded(page, button, tmp_path)
    assert {row["region"] for row in rows} == {
        "'=HYPERLINK(1)",
        hostile,
        "north",
    }


@pytest.mark.parametrize(
    ("output", "first"),
    [
        ("CSV", "Method,Error,low,high,What it fits"),
        ("Markdown", "| Method | Error | Interval | What it fits |"),
        ("LaTeX", r"\begin{tabular}{lrrl}"),
    ],
)
def test_tables_are_copied(opened, output, first):
    page = opened()
    page.evaluate(
        "navigator.clipboard.writeText = text => { window.copied = text;"
        " return Promise.resolve(); }"
    )
    button = page.get_by_role("button", name=f"Copy the table of errors as {output}")
    button.first.click()
    copied = page.evaluate("window.copied")
    assert copied.splitlines()[0] == first
    assert "smooth" in copied
    assert page.get_by_text("copied").first.is_visible()


def test_hostile_names_stay_text(opened, hostile):
    page = opened()
    assert page.evaluate("window.hacked") is None
    assert page.locator("h1").inner_text() == hostile
    assert page.locator("img").count() == 0


def test_escaping_alone_would_do(opened, hostile, report, tmp_path):
    """Without the policy that lets no foreign script run, nothing runs either."""
    html = report.to_html()
    start = html.index("<meta http-equiv")
    bare = html[:start] + html[html.index(">", start) + 1 :]
    path = tmp_path / "bare.html"
    path.write_text(bare, encoding="utf-8")
    page = opened(url=path.as_uri())
    hover(page, diagram(page, 2), 0.5, 0.5)
    assert page.evaluate("window.hacked") is None
    assert page.locator("h1").inner_text() == hostile


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_axe_finds_no_serious_fault(opened, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = opened(width=width, color_scheme=scheme, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    found = Axe().run(page).response["violations"]
    told = [
        (v["id"], v["nodes"][0]["html"], v["nodes"][0]["failureSummary"])
        for v in found
        if v["impact"] in SERIOUS
    ]
    assert told == []


@pytest.mark.parametrize("width", [1200, 768, 390, 320])
def test_nothing_sticks_out_sideways(opened, width):
    page = opened(width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_table_that_can_be_scrolled_shows_it(opened):
    page = opened(width=390)
    table = page.locator(".scroll").first
    assert table.evaluate("box => box.scrollWidth > box.clientWidth")
    shown = table.evaluate("box => getComputedStyle(box).backgroundImage")
    assert "radial-gradient" in shown


@pytest.mark.usefixtures("browser")
def test_chromium_prints_a_report(report, tmp_path):
    (path,) = report.save(tmp_path / "report.pdf")
    assert path.read_bytes().startswith(b"%PDF")


def test_dark_and_light_differ(opened):
    colours = {
        scheme: opened(color_scheme=scheme).evaluate(
            "getComputedStyle(document.body).backgroundColor"
        )
        for scheme in ("light", "dark")
    }
    assert colours["light"] != colours["dark"]


def test_print_shows_whole_tables_and_no_buttons(opened):
    page = opened()
    page.emulate_media(media="print")
    assert not page.locator(".save").first.is_visible()
    assert page.locator("table").first.is_visible()


def test_print_shows_what_the_page_folds_and_large_diagrams(opened):
    page = opened(width=760)
    page.emulate_media(media="print")
    for name in ("measures", "bins"):
        assert page.locator(f"table[data-name={name}]").first.is_visible()
    width = page.locator("body").bounding_box()["width"]
    for chart in page.locator(".diagram svg.chart, .static svg.chart").all():
        assert chart.bounding_box()["width"] > 0.5 * width


def test_names_of_groups_break_between_their_columns(opened, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(400)
    rows = {
        "y": (rng.random(400) < p).astype(int),
        "p": p,
        "ward": rng.choice(["north", "south"], 400),
        "age_group": rng.choice(["<60", "60-75"], 400),
    }
    preds = cb.Predictions.from_table(rows, y="y", p="p", by=["ward", "age_group"])
    path = tmp_path / "groups.html"
    cb.Report.from_predictions(preds, methods=["es15"], n_resamples=20).save(path)
    page = opened(url=path.as_uri(), width=760)
    page.emulate_media(media="print")
    parts = page.locator("table[data-name=groups] .part").all()
    assert len(parts) == 8
    assert len({round(part.bounding_box()["height"]) for part in parts}) == 1


def test_classes_open_without_trouble(opened, tmp_path):
    prob, digit = cb.datasets.load_multiclass("forest")
    options = {"methods": ["es15"], "n_resamples": 20}
    path = tmp_path / "classes.html"
    cb.Report.from_predictions(digit, prob, task="classwise", **options).save(path)
    page = opened(url=path.as_uri())
    assert page.locator("figure.diagram").count() == 4


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """The page of a network that is nearly sure of everything."""
    rng = np.random.default_rng(0)
    p = 1.0 - 10.0 ** rng.uniform(-7, -2, 2000)
    report = cb.Report.from_predictions(
        (rng.random(2000) < 0.97).astype(int), p, methods=["es15"], n_resamples=20
    )
    path = tmp_path_factory.mktemp("crowded") / "report.html"
    report.save(path)
    return path.as_uri()


@pytest.mark.parametrize("width", [1200, 390])
def test_names_of_ticks_never_overlap_nor_leave_the_drawing(opened, crowded, width):
    page = opened(width=width, url=crowded)
    assert page.locator("input[value=logit]").is_checked()
    chart = page.locator("figure.diagram svg.chart").bounding_box()
    for names in (".on-logit .tick.across", ".on-logit .tick:not(.across)"):
        boxes = [
            tick.bounding_box()
            for tick in page.locator("figure.diagram").locator(names).all()
        ]
        assert len(boxes) > 4
        for k, one in enumerate(boxes):
            assert one["x"] >= chart["x"] - 1
            assert one["x"] + one["width"] <= chart["x"] + chart["width"] + 1
            for other in boxes[k + 1 :]:
                apart = (
                    one["x"] + one["width"] <= other["x"] + 0.5
                    or other["x"] + other["width"] <= one["x"] + 0.5
                    or one["y"] + one["height"] <= other["y"] + 0.5
                    or other["y"] + other["height"] <= one["y"] + 0.5
                )
                assert apart, (one, other)


def test_bins_of_crowded_predictions_can_be_significantly_different(opened, crowded):
    page = opened(url=crowded)
    page.locator("figure details").evaluate("details => details.open = true")
    rows = page.locator("table[data-name=bins] tbody tr").all()
    ends = [row.locator("td").all_inner_texts()[:2] for row in rows]
    assert all(left != right for left, right in ends)
    assert len({left for left, _ in ends}) == len(ends)
    page.locator("figure.diagram .plot").focus()
    for left, right in ends[:3]:
        page.keyboard.press("ArrowRight")
        assert f"es15, {left} to {right}" in page.locator(".tip").inner_text()
