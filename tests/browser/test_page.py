"""The page itself, the real app in headless Chromium: from a prompt to a verdict, and whatever may come between."""

import re
import threading
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from support import tiny_checkpoints

from specviz.catalogue.catalog import load_catalog
from specviz.drafting import strategies
from specviz.views.web.app import Options, build_app, launch_options
from specviz.views.web.offer import Offer

pytestmark = pytest.mark.browser
HOSTILE = (
    "<img src=x onerror='window.pwn=1'> ${window.pwn=1} `x` {{window.pwn=1}} </script><script>window.pwn=1</script>"
)
NUMBERS = "document.querySelector('#report .numbers').innerText"  # those of the first figure
TOKENS = ".log .tok:not(.rejected)"


def serve(app):
    app.blocks.launch(**launch_options(), quiet=True, prevent_thread_lock=True, server_name="127.0.0.1")
    return app.blocks.local_url.rstrip("/")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def tiny(folder):
    """The address of the app with a tiny target, which writes hundreds of tokens a second."""
    app = build_app(Options(tiny_checkpoints.save_llama(folder / "target", context=4096), "cpu", "float32"))
    app.begin_loading()
    yield serve(app)
    app.blocks.close()


@pytest.fixture
def open_page(page, tiny):
    def visit(query="", theme="light"):
        page.goto(f"{tiny}/?__theme={theme}&{query}")
        page.wait_for_selector("#device .text-line[data-kind='info']")
        return page

    return visit


def setup(page, tokens=24, prompt=None, **fields):
    page.fill("#max_new_tokens input", str(tokens))
    for name, value in fields.items():
        page.fill(f"#{name} input", str(value))
    if prompt is not None:
        page.fill("#prompt textarea", prompt)


def press_run(page):
    """Press Run and wait until the view shows a new race."""
    page.evaluate("document.querySelectorAll('.lanes .lane').forEach(lane => lane.dataset.old = 1)")
    page.click("#run")
    page.wait_for_selector(".lanes .lane:not([data-old])")


def finish(page):
    page.wait_for_selector(".final:not([hidden])")
    page.wait_for_selector("#stop:disabled")


def run(page, **fields):
    setup(page, **fields)
    press_run(page)
    finish(page)


def lanes(page):
    return page.locator(".lanes .lane").count()


def kept(page):
    """How many tokens each lane's counters say that it has."""
    return [int(text) for text in page.locator(".lane .counters p:first-child b").all_inner_texts()]


def line(page):
    return page.locator("#line .text-line").inner_text()


def test_a_prompt_becomes_two_lanes_and_a_verdict(open_page):
    page = open_page()
    run(page, tokens=24, prompt="the cat sat on the mat and the cat sat on")
    assert lanes(page) == 2
    assert kept(page)[0] == kept(page)[1] > 0
    assert re.match(r"\d+(\.\d+)?×", page.inner_text(".headline h2"))
    assert "identical" in page.inner_text(".badges")
    assert not page.is_visible("#line")
    assert page.is_enabled("#run")


def test_stop_ends_the_run_with_one_click_and_run_works_again(open_page):
    page = open_page()
    setup(page, tokens=3000)
    page.click("#more button.label-wrap")
    page.check("text=go on after the end-of-sequence token")
    press_run(page)
    page.wait_for_function("document.querySelectorAll('.log .tok').length > 20")
    page.click("#stop")
    page.wait_for_function("document.querySelector('#line')?.innerText.startsWith('Stopped.')")
    finish(page)
    assert page.locator(".lane .end").all_inner_texts() == ["stopped", "stopped"]
    assert all(0 < count < 3000 for count in kept(page))
    run(page, tokens=12)
    assert kept(page) == [12, 12]


def test_three_runs_in_a_row_each_show_their_own_tokens(open_page):
    page = open_page()
    for tokens in (9, 17, 5):
        run(page, tokens=tokens, temperature=1, seed=tokens)
        assert kept(page) == [tokens, tokens]
        assert page.locator(TOKENS).count() == 2 * tokens


def test_a_second_run_takes_the_place_of_the_first(open_page):
    page = open_page()
    setup(page, tokens=3000, temperature=1)
    press_run(page)
    page.wait_for_function("document.querySelectorAll('.log .tok').length > 10")
    setup(page, tokens=7)
    press_run(page)
    page.wait_for_function("document.querySelector('.lane.done')")
    finish(page)
    assert kept(page) == [7, 7]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"prompt": ""}, "The prompt is empty; type at least one word."),
        ({"prompt": "cat " * 6000}, "tokens"),
        ({"tokens": 0}, "New tokens must lie between 1 and 8192"),
        ({"tokens": -3}, "New tokens must lie between 1 and 8192"),
        ({"tokens": 2.5}, "New tokens must be a whole number"),
        ({"tokens": ""}, "New tokens must be a number"),
        ({"temperature": -1}, "Temperature must lie between"),
        ({"temperature": 99}, "Temperature must lie between"),
        ({"seed": -1}, "Seed must lie between"),
    ],
)
def test_a_wrong_field_is_a_sentence_and_nothing_is_lost(open_page, fields, words):
    page = open_page()
    setup(page, **fields)
    page.click("#run")
    page.wait_for_selector("#line .text-line[data-kind='error']")
    assert words in line(page)
    if fields.get("prompt") is None:
        assert page.input_value("#prompt textarea").startswith("Write an HTML table")
    run(page, tokens=3, prompt="the cat", temperature=0, seed=0)
    assert kept(page) == [3, 3]
    assert not page.is_visible("#line")


def test_all_wrong_fields_are_told_at_once_a_line_each_by_their_labels(open_page):
    page = open_page()
    setup(page, prompt="", tokens=0, temperature=99)
    page.click("#run")
    page.wait_for_selector("#line .text-line[data-kind='error']")
    heads = [sentence.split(" ")[:2] for sentence in line(page).splitlines()]
    assert heads == [["The", "prompt"], ["New", "tokens"], ["Temperature", "must"]]


def test_a_draft_of_another_tokenizer_is_refused_loudly_and_the_next_race_runs(open_page, folder):
    german = tiny_checkpoints.save_llama(folder / "german", sentences=tiny_checkpoints.GERMAN)
    page = open_page(f"draft=draft-model%3D{german.replace(':', '%3A')}%3Ak%3D2")
    assert page.input_value("#lane-1 [aria-label='Draft model']") == german
    page.evaluate("document.querySelectorAll('.lanes .lane').forEach(lane => lane.dataset.old = 1)")
    page.click("#run")
    page.wait_for_selector("#line .text-line[data-kind='error']")
    assert "tokenizers differ" in line(page)
    assert page.locator(".lanes .lane:not([data-old])").count() == 0  # no race, and no silent baseline
    page.click("#reset")
    page.wait_for_function("!document.querySelector('#lane-1 [aria-label=\"Draft model\"]')")
    run(page, tokens=3)
    assert kept(page) == [3, 3]


def test_a_target_that_cannot_be_loaded_leaves_the_old_one_usable(open_page):
    page = open_page()
    run(page, tokens=3)
    old = page.input_value("#target input")
    for source in ("path:/no/such/folder", old):
        page.fill("#target input", source)
        page.press("#target input", "Enter")
        if source != old:
            page.click("#run")
            page.wait_for_selector("#line .text-line[data-kind='error']")
            assert "There is no folder" in line(page)
            assert kept(page) == [3, 3]
    run(page, tokens=4)
    assert kept(page) == [4, 4]


def test_an_error_that_nobody_foresaw_is_told_and_the_page_goes_on(open_page, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("odd")

    page = open_page()
    setup(page, tokens=3)
    with monkeypatch.context() as patch:
        patch.setattr("specviz.races.request.RaceRequest.events", broken)
        page.click("#run")
        page.wait_for_selector("#line .text-line[data-kind='error']")
        assert "Press Run again" in line(page)
        page.wait_for_selector("#stop:disabled")
    run(page, tokens=3)
    assert kept(page) == [3, 3]


def test_hostile_text_in_prompt_source_and_output_is_only_text(open_page):
    page = open_page()
    run(page, tokens=16, prompt=HOSTILE)
    page.fill("#target input", f"path:{HOSTILE}")
    page.press("#target input", "Enter")
    page.click("#run")
    page.wait_for_selector("#line .text-line[data-kind='error']")
    assert "<img src=x" in line(page)
    assert page.evaluate("window.pwn") is None
    assert page.input_value("#prompt textarea") == HOSTILE


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_nothing_overflows(open_page, theme):
    page = open_page(theme=theme)
    page.set_viewport_size({"width": 390, "height": 844})
    run(page, tokens=30)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("document.body.classList.contains('dark')") == (theme == "dark")


def test_the_column_of_controls_stays_a_column_however_much_is_open(open_page):
    page = open_page("draft=prompt-lookup:k=2&draft=early-exit:k=3&draft=prompt-lookup:k=4")
    page.wait_for_selector("#lane-3", state="visible")
    page.click("#more button.label-wrap")
    page.wait_for_selector("text=Stop strings", state="visible")
    column = page.locator(".setup").bounding_box()
    for part in ("#prompt", "#target", "#lane-3", "#run"):
        box = page.locator(part).bounding_box()
        assert column["x"] <= box["x"] and box["x"] + box["width"] <= column["x"] + column["width"] + 1
    page.locator("#seed").scroll_into_view_if_needed()
    assert page.evaluate("document.querySelector('.fields').scrollLeft") == 0
    fields, run_button = page.locator(".fields").bounding_box(), page.locator("#run").bounding_box()
    tokens = page.locator("#max_new_tokens").bounding_box()  # in sight, whatever else is scrolled away
    assert fields["y"] + fields["height"] <= tokens["y"] and tokens["y"] + tokens["height"] <= run_button["y"]
    assert fields["y"] + fields["height"] <= run_button["y"] < run_button["y"] + run_button["height"] <= 1000


def test_lanes_come_and_go_up_to_three_drafts(open_page):
    page = open_page()
    page.click("#add-lane")
    page.wait_for_selector("#lane-2", state="visible")
    page.click("#add-lane")
    page.wait_for_selector("#lane-3", state="visible")
    page.wait_for_selector("#add-lane", state="hidden")
    run(page, tokens=10)
    assert kept(page) == [10] * 4
    page.click("#lane-2 button:has-text('remove')")
    page.wait_for_selector("#lane-3", state="hidden")
    run(page, tokens=6)
    assert kept(page) == [6] * 3


def test_a_preset_says_what_to_expect_and_typing_leaves_it(open_page):
    page = open_page()
    page.check("#presets label:has-text('high temperature') input")
    page.wait_for_selector("#expect .text-line[data-kind='info']")
    assert "Tokens are drawn" in page.inner_text("#expect")
    assert page.input_value("#temperature input") == "1.2"
    assert page.input_value("#prompt textarea").startswith("Tell a short story")
    page.type("#prompt textarea", "!")
    page.wait_for_selector("#expect", state="hidden")
    assert page.locator("#presets input:checked").count() == 0


def test_a_preset_brings_its_draft_and_another_draft_takes_its_words_away(open_page):
    page = open_page("draft=early-exit:k=3")
    page.check("#presets label:has-text('quoting') input")
    page.wait_for_selector("#expect .text-line[data-kind='info']")
    assert page.input_value("#lane-1 [aria-label='Draft']") == "Prompt lookup"
    page.click("#lane-1 [aria-label='Draft']")
    page.click("#lane-1 [role='option']:has-text('Token recycling')")
    page.wait_for_selector("#expect", state="hidden")


def test_a_policy_for_k_comes_with_its_usual_level_and_is_raced(open_page):
    page = open_page()
    assert page.inner_text("#lane-1 .policy > button").startswith("How k is chosen: always k")
    page.click("#lane-1 .policy > button")
    page.click("#lane-1 [aria-label='How k is chosen']")
    page.click("#lane-1 [role='option']:has-text('adapt')")
    page.wait_for_selector("#lane-1 .policy input[type='number']", state="visible")
    assert page.input_value("#lane-1 .policy input[type='number']") == "0.25"
    run(page, tokens=12)
    page.wait_for_function("location.search.includes('adaptive-0.25')")
    assert kept(page) == [12, 12]


def test_a_draft_becomes_a_tree_by_one_click_and_k_counts_its_nodes(open_page):
    page = open_page("draft=token-recycling:k=4")
    page.click("#lane-1 label:has-text('tree')")
    page.wait_for_selector("#lane-1 .k:has-text('k, nodes of a tree per round')")
    assert page.input_value("#lane-1 .k input[type='number']") == "16"
    run(page, tokens=12)
    assert "shape%3Dtree%2Ck%3D16" in page.evaluate("location.search") and kept(page) == [12, 12]


CUT = """labels => {
  const input = document.querySelector('#target input');
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = getComputedStyle(input).font;
  const from = input.getBoundingClientRect().left + parseFloat(getComputedStyle(input).paddingLeft);
  const room = document.querySelector('#target .icon-wrap').getBoundingClientRect().left - from;
  return labels.filter((label) => pen.measureText(label).width > room);
}"""


@pytest.mark.parametrize("width", [1440, 390])
def test_the_name_of_every_target_and_strategy_has_room_in_its_field(open_page, width):
    page = open_page()
    page.set_viewport_size({"width": width, "height": 900})
    catalog = load_catalog()
    targets = [label for label, _ in Offer(catalog, catalog.profile("local")).targets()]
    labels = [*targets, *(strategy.label for strategy in strategies().values())]
    assert page.evaluate(CUT, labels) == []
    assert page.evaluate(CUT, ["m" * 60]) == ["m" * 60]


def test_a_setup_travels_by_its_address_and_is_remembered(open_page, watched, tiny):
    page = open_page()
    setup(page, tokens=11, prompt="the dog & the cat?", seed=7)
    page.click("#add-lane")
    page.wait_for_selector("#lane-2", state="visible")
    page.click("#link")
    page.wait_for_function("location.search.includes('seed=7')")
    told = parse_qs(urlsplit(page.url).query)
    assert told["draft"] == ["cascade:shape=chain,k=4", "cascade:shape=chain,k=8"]
    assert told["prompt"] == ["the dog & the cat?"]
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    for address in (page.url, f"{tiny}/?__theme=light"):
        page.goto("about:blank")
        page.goto(address)
        page.wait_for_selector("#lane-2", state="visible")
        assert page.input_value("#prompt textarea") == "the dog & the cat?"
        assert page.input_value("#seed input") == "7"
    page.click("#reset")
    page.wait_for_selector("#lane-2", state="hidden")
    assert page.input_value("#seed input") == "0"
    page.wait_for_function("!location.search.includes('seed')")


def test_a_setup_that_no_address_can_say_is_told_and_not_copied(open_page):
    page = open_page()
    before = page.url
    page.evaluate("navigator.clipboard.writeText('kept')")
    page.fill("#seed input", "")
    page.click("#link")
    page.wait_for_selector("#line .text-line[data-kind='error']")
    assert line(page).startswith("The setup cannot be sent as a link. Seed must be a number")
    page.wait_for_timeout(300)  # what comes after the line would have come by now
    assert page.evaluate("navigator.clipboard.readText()") == "kept" and page.url == before


def test_a_broken_address_says_so_and_the_page_works(open_page):
    page = open_page("draft=turbo&temperature=1")
    page.wait_for_selector("#line .text-line[data-kind='error']")
    assert "There is no draft 'turbo'" in line(page)
    run(page, tokens=3)
    assert kept(page) == [3, 3]


def test_figures_are_drawn_when_they_are_opened_and_follow_the_theme(open_page):
    page = open_page()
    run(page, tokens=20)
    assert page.locator(".js-plotly-plot").count() == 0
    page.click("#report > button.label-wrap")
    page.wait_for_function("document.querySelectorAll('#report .js-plotly-plot .main-svg').length >= 6")
    ink = "getComputedStyle(document.querySelector('#report .gtitle')).fill"
    assert page.evaluate(ink) == "rgb(34, 34, 34)"
    page.evaluate("document.body.classList.add('dark')")
    page.wait_for_function(f"document.querySelector('#report .gtitle') && {ink} === 'rgb(238, 238, 238)'")
    page.click("#report .numbers button.label-wrap >> nth=0")
    page.wait_for_selector("#report .numbers table")
    assert "conditional" in page.inner_text("#report .numbers >> nth=0")


def at_rest(page, expression):
    """The expression's value once it stays the same: a table fills in several frames."""
    before = None
    while (now := page.evaluate(expression)) != before:
        before = now
        page.wait_for_timeout(500)
    return now


def test_a_trace_that_is_opened_takes_the_page_with_verdict_table_and_figures(open_page, tmp_path):
    page = open_page()
    run(page, tokens=20, prompt="the cat sat on the mat and the cat sat on")
    parts = (".headline h2", ".badges", ".final table", ".facts")
    told = [page.inner_text(part) for part in parts]
    page.click(".menu summary")
    with page.expect_download() as download:
        page.click("[data-act='jsonl']")
    path = tmp_path / "race.jsonl"
    download.value.save_as(path)
    page.click("#report > button.label-wrap")
    page.click("#report .numbers button.label-wrap >> nth=0")
    page.wait_for_function(f"{NUMBERS}.includes('conditional')")
    drawn = at_rest(page, NUMBERS)
    page.check("#gallery label:has-text('free') input >> nth=0")
    page.wait_for_function("document.querySelector('#caption')?.innerText.includes('Recorded on')")
    page.wait_for_function(f"drawn => {NUMBERS} !== drawn", arg=drawn)
    page.locator(".menu input[type=file]").set_input_files(path)
    page.wait_for_selector("#caption", state="hidden")
    page.wait_for_function("told => document.querySelector('.headline h2').innerText === told", arg=told[0])
    assert [page.inner_text(part) for part in parts] == told
    assert page.locator("#gallery input:checked").count() == 0 and kept(page) == [20, 20]
    page.wait_for_function(f"drawn => {NUMBERS} === drawn", arg=drawn)
    path.write_text("hello\n", "utf-8")
    page.locator(".menu input[type=file]").set_input_files(path)
    page.wait_for_selector(".menu .refusal:not([hidden])")
    assert page.inner_text(".menu .refusal") == "race.jsonl, line 1: it is not JSON."
    assert page.inner_text(".headline h2") == told[0]


def test_a_race_is_measured_again_and_its_spread_told(open_page):
    page = open_page()
    run(page, tokens=8)
    page.click("[data-act='measure']")
    page.wait_for_function("document.querySelector('.badges')?.innerText.includes('n = 5 runs')")
    assert "Median of 5 runs" in page.inner_text(".headline h2")
    page.wait_for_selector("#stop:disabled")
    assert kept(page) == [8, 8] and not page.is_visible("#line")


def test_two_tabs_at_once_get_each_their_own_race(open_page, watched, tiny):
    page, other = open_page(), watched.page.context.new_page()
    other.goto(f"{tiny}/?__theme=light&ignore_eos=1")
    other.wait_for_selector("#more:has-text('ignore eos')")
    setup(page, tokens=600, temperature=1)
    setup(other, tokens=13, temperature=1)
    press_run(page)
    press_run(other)
    finish(other)
    finish(page)
    assert kept(other) == [13, 13]
    assert all(count <= 600 for count in kept(page))
    assert page.locator(TOKENS).count() == sum(kept(page))


def test_a_reload_in_mid_run_frees_the_device(open_page, watched):
    page = open_page()
    setup(page, tokens=3000, temperature=1)
    press_run(page)
    page.reload()
    page.wait_for_selector("#device .text-line[data-kind='info']")
    # the page that was left complains of its broken stream
    assert all("abort" in error.lower() or "Connection" in error for error in watched.errors)
    watched.errors.clear()
    run(page, tokens=5)
    assert kept(page) == [5, 5]


def test_the_page_stands_and_says_what_it_waits_for_while_the_model_loads(page, folder):
    app = build_app(Options(tiny_checkpoints.save_llama(folder / "slow", context=512), "cpu", "float32"))
    gate, load = threading.Event(), app.store.loader.load_model

    def slow(*arguments, progress, **named):
        progress(0.4, "Fetching 98 MB.")
        gate.wait(60)
        return load(*arguments, progress=progress, **named)

    app.store.loader = replace(app.store.loader, load_model=slow)
    app.begin_loading()
    page.goto(serve(app))
    page.wait_for_selector("#device .text-line[data-kind='busy']")
    assert "Fetching 98 MB, 40%" in page.inner_text("#device")
    setup(page, tokens=4)
    page.click("#run")
    page.wait_for_function("document.querySelector('#line')?.innerText.includes('Fetching 98 MB')")
    gate.set()
    finish(page)
    assert kept(page) == [4, 4]
    assert page.inner_text("#device").startswith("CPU")
    app.blocks.close()


@pytest.mark.embedded
def test_the_embedded_model_copies_a_text_and_the_copying_draft_wins_passes(page, embedded):
    """On a real model: a draft that copies needs far fewer target passes for the same tokens."""
    app = build_app(Options("embedded", "cpu", "float32"), load_catalog())
    app.store.loader = replace(app.store.loader, load_model=lambda *_, **__: embedded)
    app.begin_loading()
    page.goto(serve(app) + "/?__theme=light")
    page.wait_for_selector("#device .text-line[data-kind='info']")
    page.set_default_timeout(120_000)
    page.check("#presets label:has-text('quoting') input")
    page.wait_for_selector("#expect .text-line[data-kind='info']")
    run(page, tokens=32)
    assert kept(page) == [32, 32]
    assert "identical output" in page.inner_text(".badges")
    passes = page.locator(".final tr:has-text('target passes') td").all_inner_texts()
    assert int(passes[0]) == 32 and int(passes[1]) <= 12
    assert page.evaluate("document.documentElement.scrollWidth") <= 1440
    app.blocks.close()
