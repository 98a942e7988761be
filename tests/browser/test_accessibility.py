"""No violation of WCAG 2.1 A and AA: axe-core on the real page in every state that it can be in, light and dark."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from support import tiny_checkpoints
from support.saved_pages import saved_page

from specviz.catalogue.gallery import recordings
from specviz.views.report import race_report
from specviz.views.web.app import Options, build_app, launch_options

pytestmark = pytest.mark.browser
THEMES = ("light", "dark")
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "resultTypes": ["violations"]}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("accessibility")
    app = build_app(Options(tiny_checkpoints.save_llama(folder / "target", context=1024), "cpu", "float32"))
    app.begin_loading()
    app.blocks.launch(**launch_options(), quiet=True, prevent_thread_lock=True, server_name="127.0.0.1")
    yield app.blocks.local_url.rstrip("/")
    app.blocks.close()


def violations(page):
    """(rule, selector, markup) of each element that breaks a rule; Gradio's own elements are not left out."""
    page.wait_for_timeout(250)  # colours on their way from one to another have no contrast yet
    found = Axe().run(page, options=RULES).response["violations"]
    return [(rule["id"], node["target"][0], node["html"][:160]) for rule in found for node in rule["nodes"]]


@pytest.fixture
def opened(page, url):
    page.emulate_media(reduced_motion="reduce")

    def visit(theme, query=""):
        page.goto(f"{url}/?__theme={theme}&{query}")
        page.wait_for_selector("#device .text-line[data-kind='info']")
        page.wait_for_selector(".log .tok")
        return page

    return visit


def unfold(page):
    """Every fold of the column open, three drafts, a preset's words."""
    page.check("#presets label:has-text('story') input")
    page.wait_for_selector("#expect .text-line[data-kind='info']")
    for number in (2, 3):
        page.click("#add-lane")
        page.wait_for_selector(f"#lane-{number}", state="visible")
    for fold in ("#more", "#lane-1 .options"):
        page.locator(f"{fold} > button.label-wrap").locator("visible=true").first.click()
    page.wait_for_selector("#weights", state="visible")


def refuse(page):
    page.fill("#max_new_tokens input", "0")
    page.click("#run")
    page.wait_for_selector("#line .text-line[data-kind='error']")


def run(page):
    page.fill("#max_new_tokens input", "16")
    page.evaluate("document.querySelectorAll('.lanes .lane').forEach(lane => lane.dataset.old = 1)")
    page.click("#run")
    page.wait_for_selector(".lanes .lane:not([data-old])")
    page.wait_for_selector(".final:not([hidden])")
    page.wait_for_selector("#stop:disabled")


def pin_a_token(page):
    page.locator(".log .tok").nth(3).click()
    page.wait_for_selector(".card.pinned")


def draw(page):
    page.keyboard.press("Escape")
    page.click("#report > button.label-wrap")
    page.wait_for_function("document.querySelectorAll('#report .js-plotly-plot .main-svg').length >= 6")
    page.click("#report .numbers button.label-wrap >> nth=0")
    page.wait_for_selector("#report .numbers table")


@pytest.mark.parametrize("theme", THEMES)
def test_the_page_as_it_is_first_painted(opened, theme):
    assert violations(opened(theme)) == []


@pytest.mark.parametrize("theme", THEMES)
def test_the_card_of_a_recorded_token(opened, theme):
    page = opened(theme)
    pin_a_token(page)
    assert violations(page) == []


@pytest.mark.parametrize("theme", THEMES)
def test_the_column_with_everything_open_and_a_refusal(opened, theme):
    page = opened(theme)
    unfold(page)
    assert violations(page) == []
    refuse(page)
    assert violations(page) == []


@pytest.mark.parametrize("theme", THEMES)
def test_a_finished_run_its_card_and_its_figures(opened, theme):
    page = opened(theme)
    run(page)
    assert violations(page) == []
    pin_a_token(page)
    assert violations(page) == []
    draw(page)
    assert violations(page) == []


@pytest.mark.parametrize("theme", THEMES)
def test_the_page_on_a_phone(opened, page, theme):
    page.set_viewport_size({"width": 390, "height": 844})
    opened(theme)
    assert violations(page) == []
    pin_a_token(page)
    assert violations(page) == []


@pytest.mark.parametrize("theme", THEMES)
def test_a_saved_page(page, tmp_path, theme):
    events = tuple(next(iter(recordings().values())).events())
    file = tmp_path / "run.html"
    file.write_text(saved_page(events, race_report(events)), "utf-8")
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.goto(file.as_uri())
    page.wait_for_selector(".log .tok")
    assert violations(page) == []
    pin_a_token(page)
    assert violations(page) == []


def test_a_fault_is_found(opened):
    page = opened("light")
    page.evaluate("document.querySelector('.masthead').append(document.createElement('input'))")
    assert [rule for rule, *_ in violations(page)] == ["label"]
