"""RaceView through the real Gradio server, in headless Chromium: what arrives, how it is shown, what cannot happen."""

import json
import re
from dataclasses import replace

import pytest
from support.browser_kit import launch, race_app
from support.race_page import has, seek, settle
from support.saved_pages import saved_page
from support.synthetic_race import HOSTILE, race_events

from specviz.traces import LaneFinished, RaceStarted, Reason, RoundDone, Verdict, event_to_json, read_trace, write_trace
from specviz.views.report import race_report

pytestmark = pytest.mark.browser

TRACES = {
    "two": race_events(200, (5,)),
    "four": race_events(120, (2, 5, 8), temperature=1.0),
    "hostile": race_events(60, (4,), temperature=1.0, hostile=True),
}
# what the report fills in
REPORTED = (".headline h2", ".badges", ".final", ".facts")
TEXT = "[...document.querySelectorAll('[data-lane=\"%d\"] .log .tok:not(.rejected)')].map(n => n.textContent).join('')"


@pytest.fixture(scope="module")
def url(serve):
    return serve(race_app(TRACES))


@pytest.fixture(scope="module")
def slow_url(serve):
    """A run long enough to be looked at, and stopped, on a busy machine."""
    return serve(race_app({"two": TRACES["two"]}, seconds=6))


def run(page, url, name="two"):
    page.goto(f"{url}?__theme=light")
    start(page, name)


def start(page, name="two"):
    page.click(f"#run-{name}")
    finish(page)


def finish(page):
    """Waits until the final table of the run that was just started stands."""
    page.wait_for_function("document.querySelector('.final').hidden")
    page.wait_for_selector(".final:not([hidden])")


def rounds_of(name, lane):
    return [event.round for event in TRACES[name] if isinstance(event, RoundDone) and event.lane == lane]


def count(page, selector):
    return page.locator(selector).count()


def test_every_token_arrives_with_its_verdict_in_three_runs_in_a_row(page, url):
    page.goto(url)
    rounds = rounds_of("two", "k=5")
    drafts = [draft for done in rounds for draft in done.drafts]
    for _ in range(3):
        start(page)
        has(page, '[data-lane="0"] .log .tok.standard', 200)
        for status in (Verdict.ACCEPTED, Verdict.REJECTED):
            wanted = sum(draft.verdict is status for draft in drafts)
            has(page, f'[data-lane="1"] .log .tok.{status}', wanted)
        for kind in ("correction", "bonus"):
            wanted = sum(done.target is not None and done.target.kind == kind for done in rounds)
            has(page, f'[data-lane="1"] .log .tok.{kind}', wanted)
        shown = page.locator('[data-lane="1"] .counters b').all_inner_texts()
        assert shown[:3] == ["200", str(len(rounds)), str(len(drafts))]


def test_the_text_on_the_page_is_the_text_of_the_events(page, url):
    run(page, url)
    text = next(event.text for event in TRACES["two"] if isinstance(event, LaneFinished))
    assert page.evaluate(TEXT % 0) == text
    assert page.evaluate(TEXT % 1) == text


def test_lanes_grow_while_the_run_goes_on(page, slow_url):
    page.goto(slow_url)
    page.wait_for_selector(".specviz-race", state="attached")
    page.evaluate(
        """() => { window.sizes = []; new MutationObserver(() => sizes.push(
                document.querySelectorAll('[data-lane="1"] .log .tok').length))
                .observe(document.querySelector('.specviz-race'), { childList: true, subtree: true }); }"""
    )
    start(page)
    sizes = page.evaluate("sizes")
    assert len(set(sizes)) >= 6
    assert sizes == sorted(sizes)


def test_hostile_text_is_shown_as_text_and_runs_nothing(page, url):
    run(page, url, "hostile")
    text = page.evaluate(TEXT % 0)
    assert all(token in text for token in HOSTILE)
    assert "<img src=x" in page.locator(".facts p").text_content()
    page.hover('[data-lane="1"] .log .tok.rejected >> nth=0')
    page.wait_for_selector(".card:not([hidden])")
    page.locator('[data-lane="0"] .log .tok').first.click()
    for _ in HOSTILE:
        page.keyboard.press("ArrowRight")
        assert page.locator(".card.pinned code").first.is_visible()
    page.wait_for_timeout(100)
    assert page.evaluate("window.pwn") is None
    has(page, ".specviz-race img, .specviz-race script", 0)


def test_a_character_split_over_tokens_is_one_text_with_faint_parts(page, url):
    run(page, url, "hostile")
    part = page.locator('[data-lane="0"] .log .tok[data-piece]').first
    assert part.get_attribute("data-piece") == "<F0 9F>"
    assert part.text_content() == ""
    assert "🙂日本" in page.evaluate(TEXT % 0)
    assert "\ufffd" not in page.evaluate(TEXT % 1)


def test_copied_text_is_clean(page, url):
    run(page, url)
    page.click(".menu summary")
    for option in ("untested", "glyphs"):
        page.check(f'[data-option="{option}"]')
    page.evaluate("document.querySelector('.lane.done').scrollIntoView()")
    page.evaluate(
        """() => { const range = document.createRange();
                range.selectNodeContents(document.querySelector('[data-lane="1"] .log'));
                getSelection().removeAllRanges(); getSelection().addRange(range); }"""
    )
    page.keyboard.press("Control+c")
    text = next(event.text for event in TRACES["two"] if isinstance(event, LaneFinished))
    assert page.evaluate("navigator.clipboard.readText()") == text


def test_the_replay_shows_at_t_what_the_lanes_had_at_t(page, url):
    run(page, url)
    for share in (0.0, 0.13, 0.5, 0.77, 0.3, 1.0):
        t = share * rounds_of("two", "standard")[-1].end_seconds
        seek(page, t)
        for lane, name in enumerate(("standard", "k=5")):
            had = [done for done in rounds_of("two", name) if done.end_seconds <= t + 2e-5]
            kept = sum(len(done.kept) for done in had)
            has(page, f'[data-lane="{lane}"] .log .tok:not(.rejected)', kept)
            assert page.locator(f'[data-lane="{lane}"] .counters b').all_inner_texts()[0] == str(kept)
    text = next(event.text for event in TRACES["two"] if isinstance(event, LaneFinished))
    assert page.evaluate(TEXT % 1) == text


def test_a_round_in_flight_shows_its_drafts_pending_then_judged(page, url):
    run(page, url)
    done = rounds_of("two", "k=5")[3]
    seek(page, done.start_seconds + done.draft_seconds + 0.001)
    assert page.locator('[data-lane="1"] .flight .chip.waiting').count() == len(done.drafts)
    seek(page, done.end_seconds + 0.001)
    statuses = [draft.verdict for draft in done.drafts]
    for status in set(statuses):
        assert page.locator(f'[data-lane="1"] .flight .chip.{status}').count() == statuses.count(status)


def test_play_pause_and_speed_run_on_the_true_clock(page, url):
    run(page, url)
    seek(page, 0)
    page.select_option(".transport select", "2")
    before = page.evaluate("performance.now()")
    page.click('[data-act="play"]')
    page.wait_for_timeout(700)
    page.click('[data-act="play"]')
    wall = (page.evaluate("performance.now()") - before) / 1000
    settle(page)
    t = float(page.locator(".transport input").input_value())
    # the two clicks take some of the wall time
    assert 0.6 * 2 * wall <= t <= 2 * wall
    page.wait_for_timeout(150)
    assert float(page.locator(".transport input").input_value()) == t


def test_steps_go_from_round_end_to_round_end(page, url):
    run(page, url)
    seek(page, 0)
    ends = sorted(done.end_seconds for name in ("standard", "k=5") for done in rounds_of("two", name))
    for end in ends[:4]:
        page.click('[data-act="round+"]')
        settle(page)
        assert float(page.locator(".transport input").input_value()) == pytest.approx(end, abs=1e-5)
    page.click('[data-act="round-"]')
    settle(page)
    assert float(page.locator(".transport input").input_value()) == pytest.approx(ends[2], abs=1e-5)


def test_token_steps_walk_the_tokens_of_a_lane_with_the_card(page, url):
    run(page, url)
    seek(page, 0)
    seen = []
    for _ in range(5):
        page.click('[data-act="token+"]')
        settle(page)
        seen.append(page.locator(".log .tok.here").text_content())
    assert seen == page.locator('[data-lane="1"] .log .tok').all_text_contents()[:5]
    assert page.locator(".card.pinned").is_visible()


def test_keyboard_reaches_every_token_pins_and_closes_the_card(page, url):
    run(page, url)
    has(page, '.log .tok[tabindex="0"]', 2)
    page.locator('[data-lane="1"] .log .tok[tabindex="0"]').focus()
    first = page.locator('[data-lane="1"] .log .tok').first.text_content()
    assert page.evaluate("document.activeElement.textContent") == first
    assert page.locator(".card").is_visible()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement === document.querySelectorAll('[data-lane=\"1\"] .log .tok')[1]")
    page.keyboard.press("ArrowDown")
    assert "round 2" in page.locator(".card .where").text_content()
    page.keyboard.press("Enter")
    assert page.locator(".card.pinned").is_visible()
    page.mouse.move(5, 5)
    page.wait_for_timeout(300)
    assert page.locator(".card.pinned").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator(".card").is_visible()
    page.keyboard.press("End")
    assert page.evaluate(
        "document.activeElement === [...document.querySelectorAll('[data-lane=\"1\"] .log .tok')].pop()"
    )


def test_a_token_marks_the_same_position_in_the_other_lanes_and_its_passes(page, url):
    run(page, url)
    page.locator('[data-lane="1"] .log .tok.accepted').nth(3).hover()
    page.wait_for_selector(".card:not([hidden])")
    here = page.locator('[data-lane="1"] .log .tok.here').text_content()
    assert page.locator('[data-lane="0"] .log .tok.peer').all_text_contents() == [here]
    assert page.locator(".mark").is_visible()


def test_pointing_at_a_pass_marks_its_tokens_and_zoom_changes_the_window(page, url):
    run(page, url)
    box = page.locator(".timeline canvas").bounding_box()
    end = rounds_of("two", "standard")[-1].end_seconds
    done = rounds_of("two", "k=5")[6]
    x = box["x"] + box["width"] * (done.start_seconds + done.seconds / 2) / end
    page.mouse.move(x, box["y"] + 49 + 26)
    settle(page)
    shown = sum(draft.verdict is not Verdict.UNTESTED for draft in done.drafts) + (done.target is not None)
    has(page, ".log .tok.in-round", shown)
    page.click('[data-zoom="+"]')
    assert f"to {end:.1f} s" in page.locator(".scale").text_content()
    assert not page.locator(".scale").text_content().startswith("0.0 s")
    page.click('[data-zoom="−"]')
    assert page.locator(".scale").text_content().startswith("0.0 s")


def test_a_gap_in_the_ring_is_filled_from_the_server(browser, url):
    context = browser.new_context()
    page = context.new_page()
    # withholds half of the batches, as a browser that slept would miss them
    page.add_init_script(
        """const parse = JSON.parse; window.withheld = 0;
           JSON.parse = function (text, ...rest) { const value = parse.call(this, text, ...rest);
             const data = value && value.msg === 'process_generating' && value.output && value.output.data;
             if (data && Array.isArray(data[0]) && data[0].length && Math.random() < 0.5) {
               data[0] = data[0].filter(([, path]) => !String(path).includes('ring')); window.withheld += 1; }
             return value; };"""
    )
    page.goto(url)
    start(page)
    assert page.evaluate("window.withheld") > 3
    has(page, '[data-lane="0"] .log .tok', 200)
    text = next(event.text for event in TRACES["two"] if isinstance(event, LaneFinished))
    assert page.evaluate(TEXT % 1) == text
    context.close()


def test_theme_switched_in_mid_run_changes_colours_and_loses_nothing(page, url):
    page.goto(f"{url}?__theme=light")
    page.click("#run-two")
    page.wait_for_timeout(500)
    colour = "getComputedStyle(document.querySelector('.specviz-race')).getPropertyValue('--sv-paper').trim()"
    light = page.evaluate(colour)
    page.evaluate("document.body.classList.toggle('dark')")
    assert page.evaluate(colour) != light
    page.wait_for_selector(".final:not([hidden])")
    has(page, '[data-lane="0"] .log .tok', 200)


def test_four_lanes_at_390_pixels_do_not_overflow(page, url):
    page.set_viewport_size({"width": 390, "height": 844})
    run(page, url, "four")
    has(page, ".lane", 4)
    page.locator('[data-lane="3"] .log .tok.rejected').first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Escape")
    page.click(".menu summary")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_stop_in_mid_run_leaves_what_came_and_a_new_run_is_whole(page, slow_url):
    page.goto(slow_url)
    page.click("#run-two")
    page.wait_for_function("document.querySelectorAll('[data-lane=\"0\"] .log .tok').length > 20")
    page.click("#stop-two")
    page.wait_for_timeout(400)
    stopped = count(page, '[data-lane="0"] .log .tok')
    page.wait_for_timeout(400)
    assert count(page, '[data-lane="0"] .log .tok') == stopped < 200
    page.click("#run-two")
    page.wait_for_selector(".final:not([hidden])")
    has(page, '[data-lane="0"] .log .tok', 200)


def test_two_tabs_at_once_and_a_reload_each_see_their_own_run(browser, url):
    context = browser.new_context()
    one, two = context.new_page(), context.new_page()
    one.goto(url)
    two.goto(url)
    one.click("#run-two")
    two.click("#run-four")
    for tab in (one, two):
        tab.wait_for_selector(".final:not([hidden])")
    assert (count(one, ".lane"), count(two, ".lane")) == (2, 4)
    has(one, '[data-lane="0"] .log .tok', 200)
    has(two, '[data-lane="0"] .log .tok', 120)
    one.click("#run-two")
    one.wait_for_timeout(300)
    one.reload()
    one.click("#run-two")
    one.wait_for_selector(".final:not([hidden])")
    has(one, '[data-lane="0"] .log .tok', 200)
    context.close()


def test_download_open_and_save_keep_the_run(page, url, tmp_path):
    run(page, url)
    page.click(".menu summary")
    with page.expect_download() as download:
        page.click('[data-act="jsonl"]')
    path = tmp_path / "race.jsonl"
    download.value.save_as(path)
    lines = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    assert len(lines) == len(TRACES["two"])
    assert [line["event"] for line in lines] == [event_to_json(event)["event"] for event in TRACES["two"]]
    with page.expect_download() as download:
        page.click('[data-act="html"]')
    saved = tmp_path / "race.html"
    download.value.save_as(saved)
    report = json.loads(json.dumps(race_report(TRACES["two"]).as_json()))
    data = saved.read_text("utf-8").split('id="trace">')[1].split("</script>")[0]
    assert json.loads(data) == {"saved": lines, "report": report}
    settle(page)
    live = [page.inner_text(part) for part in REPORTED]
    page.goto(saved.as_uri())
    page.wait_for_selector(".final:not([hidden])")
    has(page, '[data-lane="0"] .log .tok', 200)
    assert [page.inner_text(part) for part in REPORTED] == live
    page.click(".menu summary")
    has(page, '.menu input[type=file], [data-act="load"]', 0)  # no server there to read a trace


def test_a_trace_that_is_opened_gets_all_that_a_run_gets(page, url, tmp_path):
    run(page, url, "four")
    path = tmp_path / "race.jsonl"
    write_trace(path, TRACES["two"])
    page.locator(".menu input[type=file]").set_input_files(path)
    has(page, ".lane", 2)
    page.wait_for_selector(".final:not([hidden])")
    has(page, '[data-lane="0"] .log .tok', 200)
    opened = [page.inner_text(part) for part in REPORTED]
    run(page, url)
    assert [page.inner_text(part) for part in REPORTED] == opened


def test_a_broken_file_is_refused_in_words_where_it_was_chosen_and_the_view_stays(page, url, tmp_path):
    run(page, url)
    path = tmp_path / "<img src=x onerror='window.pwn=1'>.jsonl"
    path.write_text("{", "utf-8")
    page.click(".menu summary")
    for _ in range(2):
        page.locator(".menu input[type=file]").set_input_files(path)
        page.wait_for_selector(".menu .refusal:not([hidden])")
        assert "line 1: it is not JSON" in page.locator(".refusal").text_content()
    path.write_text('{"event":"RaceFinished"}\n', "utf-8")
    page.locator(".menu input[type=file]").set_input_files(path)
    page.wait_for_function("document.querySelector('.refusal').textContent.includes('no trace')")
    has(page, '[data-lane="0"] .log .tok', 200)
    assert page.evaluate("window.pwn") is None
    write_trace(path, TRACES["two"])
    page.locator(".menu input[type=file]").set_input_files(path)
    page.wait_for_selector(".menu .refusal", state="hidden")


def test_a_saved_page_opens_offline_and_replays(page, tmp_path):
    path = tmp_path / "race.html"
    path.write_text(saved_page(TRACES["hostile"], race_report(TRACES["hostile"])), "utf-8")
    page.goto(path.as_uri())
    page.wait_for_selector(".final:not([hidden])")
    has(page, '[data-lane="0"] .log .tok', 60)
    seek(page, 0)
    has(page, ".log .tok", 0)
    page.click('[data-act="round+"]')
    settle(page)
    assert count(page, ".log .tok") > 0
    assert page.evaluate("window.pwn") is None


def test_a_lane_that_fails_is_said_loudly(page, tmp_path):
    events = race_events(20, (4,))
    failed = [
        LaneFinished("k=4", Reason.ERROR, "", None, "The draft ran out of memory.")
        if isinstance(event, LaneFinished) and event.lane == "k=4"
        else event
        for event in events
    ]
    path = tmp_path / "race.html"
    path.write_text(saved_page(failed), "utf-8")
    page.goto(path.as_uri())
    assert page.locator(".banner .error").text_content() == "k=4 failed: The draft ran out of memory."
    assert page.locator(".lane.failed .end").text_content() == "failed: The draft ran out of memory."


def test_looks_change_and_are_remembered(page, url):
    run(page, url)
    page.click(".menu summary")
    page.check('[data-option="untested"]')
    untested = [d for done in rounds_of("two", "k=5") for d in done.drafts if d.verdict is Verdict.UNTESTED]
    settle(page)
    has(page, ".log .tok.untested", len(untested))
    page.select_option('[data-option="palette"]', "mono")
    page.check('[data-option="projector"]')
    run(page, url)
    assert page.locator(".specviz-race").get_attribute("data-palette") == "mono"
    assert page.locator(".specviz-race.projector").is_visible()
    has(page, ".log .tok.untested", len(untested))


def test_every_chart_has_its_numbers_as_a_table(page, url):
    run(page, url)
    names = ("passes", "tokens", "acceptance", "passes", "time")
    has(page, "figure[data-chart]", len(names))
    for figure in page.locator("figure[data-chart]").all():
        figure.locator("button.numbers").click()
        assert figure.locator("tbody tr").count() >= 3
        assert not re.search(r"NaN|Infinity|undefined|null", figure.inner_text())
    rounds = rounds_of("two", "k=5")
    rows = page.locator(".acceptance tbody tr").all_inner_texts()
    assert len(rows) == len(rounds)
    accepted = sum(len(done.accepted) for done in rounds)
    tested = accepted + sum(done.target is not None and done.target.kind == "correction" for done in rounds)
    assert rows[-1].split("\t")[-1] == f"{accepted / tested:.3f}"


def test_status_for_screen_readers_changes_at_most_every_three_seconds(page, url):
    page.goto(url)
    page.wait_for_selector(".specviz-race [role=status]", state="attached")
    page.evaluate(
        """() => { window.spoken = 0; new MutationObserver(() => { window.spoken += 1; })
                .observe(document.querySelector('.specviz-race [role=status]'), { childList: true }); }"""
    )
    start(page)
    # the run takes 1.5 s: one sentence in it, one at its end
    assert page.evaluate("window.spoken") <= 3
    assert "faster" in page.locator(".specviz-race [role=status]").text_content()
    assert page.locator('.log[aria-live="off"]').count() == 2


def test_what_arrived_outlives_the_server(browser, tmp_path):
    demo = race_app({"trace": race_events(400, (5,))}, seconds=4)
    context = browser.new_context()
    page = context.new_page()
    page.goto(launch(demo))
    page.click("#run-trace")
    page.wait_for_function("document.querySelectorAll('[data-lane=\"0\"] .log .tok').length > 60")
    demo.close()
    page.wait_for_timeout(500)
    page.click(".menu summary")
    with page.expect_download() as download:
        page.click('[data-act="jsonl"]')
    path = tmp_path / "race.jsonl"
    download.value.save_as(path)
    events = list(read_trace(path))
    assert sum(isinstance(event, RoundDone) for event in events) > 60
    seek(page, 1.0)
    had = [e for e in events if isinstance(e, RoundDone) and e.lane == "standard" and e.round.end_seconds <= 1.0 + 2e-5]
    assert count(page, '[data-lane="0"] .log .tok') == len(had) > 5
    context.close()


def test_measure_is_offered_of_a_run_of_this_page_only_and_reaches_python(page, serve):
    import gradio as gr

    from specviz.views.web.race_view.component import RaceView, recorded

    events = race_events(20, (4,))
    with gr.Blocks() as demo:
        view = RaceView(recorded(events, race_report(events)), measurable=True)
        said = gr.Textbox(elem_id="said")
        view.measure(lambda: "asked", None, said)
        gr.Button("Run", elem_id="run").click(lambda: run_value(events), None, view, show_progress="hidden")
        gr.Button("Show", elem_id="show").click(
            lambda: recorded(events, race_report(events)), None, view, show_progress="hidden"
        )
    page.goto(serve(demo))
    page.wait_for_selector(".final:not([hidden])")
    has(page, '[data-act="measure"]', 0)
    page.click("#run")
    page.click('[data-act="measure"]')
    page.wait_for_function("document.querySelector('#said textarea, #said input').value === 'asked'")
    page.click("#show")
    has(page, '[data-act="measure"]', 0)
    page.click("#run")
    has(page, '[data-act="measure"]', 1)
    has(page, '[data-act="load"]', 0)


def run_value(events):
    """The last value of a run: all its events and its numbers."""
    from specviz.views.web.race_view.component import RaceStream

    stream = RaceStream()
    for event in events:
        stream.push(event)
    stream.push_report(race_report(events))
    return stream.flush()


def test_one_lane_after_the_other_shows_all_that_came(page, tmp_path):
    events = race_events(30, (4,))
    header = replace(events[0].header, mode="sequential")
    path = tmp_path / "race.html"
    path.write_text(saved_page([RaceStarted(header), *events[1:40]]), "utf-8")
    page.goto(path.as_uri())
    rounds = [event for event in events[1:40] if isinstance(event, RoundDone)]
    page.wait_for_function("document.querySelectorAll('[data-lane=\"0\"] .log .tok').length > 0")
    assert count(page, '[data-lane="0"] .log .tok') == sum(event.lane == "standard" for event in rounds)


def test_reduced_motion_has_no_animation(browser, url):
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    run(page, url)
    page.locator('[data-lane="1"] .log .tok').first.click()
    assert page.evaluate("document.getAnimations().length") == 0
    context.close()
