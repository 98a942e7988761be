"""How the race view is laid out: full rows of lanes, a whole card on a phone, charts whose words keep apart."""

import pytest
from support.race_page import open_saved, settle
from support.synthetic_race import race_events

from specviz.views.report import race_report

pytestmark = pytest.mark.browser

KS = {1: (), 2: (5,), 3: (2, 8), 4: (2, 5, 8)}


def boxes(page, selector):
    return [node.bounding_box() for node in page.locator(selector).all()]


@pytest.mark.parametrize(
    ("width", "count", "rows"),
    [
        (1440, 2, [2]),
        (1440, 3, [3]),
        (1000, 3, [3]),
        (900, 3, [1, 1, 1]),
        (390, 3, [1, 1, 1]),
        (1440, 4, [2, 2]),
        (800, 4, [2, 2]),
        (390, 4, [1, 1, 1, 1]),
        (1440, 1, [1]),
    ],
)
def test_every_row_of_lanes_is_full(page, tmp_path, width, count, rows):
    page.set_viewport_size({"width": width, "height": 900})
    open_saved(page, tmp_path, race_events(20, KS[count]))
    whole = page.locator(".lanes").bounding_box()
    found = {}
    for box in boxes(page, ".lane"):
        found.setdefault(round(box["y"]), []).append(box)
    assert [len(row) for row in found.values()] == rows
    for row in found.values():
        assert min(box["x"] for box in row) == pytest.approx(whole["x"], abs=1)
        assert max(box["x"] + box["width"] for box in row) == pytest.approx(whole["x"] + whole["width"], abs=1)
        assert all(box["width"] >= 300 for box in row)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_the_pinned_card_is_a_whole_sheet_and_its_token_is_in_sight(page, tmp_path, theme):
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme=theme)
    open_saved(page, tmp_path, race_events(60, (5,), temperature=1.0))
    for selector in (".tok.rejected >> nth=0", ".tok.correction >> nth=-1"):
        token = page.locator(f'[data-lane="1"] .log {selector}')
        token.click()
        settle(page)
        card = page.locator(".card.pinned")
        box, place = card.bounding_box(), token.bounding_box()
        assert (box["x"], box["x"] + box["width"], box["y"] + box["height"]) == (0, 390, 844)
        assert box["y"] >= 844 * 0.3
        assert 0 <= place["y"] <= place["y"] + place["height"] <= box["y"]
        # what does not fit is reached by scrolling inside
        card.evaluate("node => { node.scrollTop = 1e6; }")
        last = page.locator(".card .keys").bounding_box()
        assert last["y"] + last["height"] <= 844
        hit = "([x, y]) => !!document.elementFromPoint(x, y)?.closest('.card')"
        assert page.evaluate(hit, [195, box["y"] + 20])
        assert page.evaluate(hit, [195, 834])
        page.click(".card .close")
        assert not page.locator(".card").is_visible()
        assert token.evaluate("node => node === document.activeElement")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_card_goes_back_beside_its_token_when_the_window_is_wide(page, tmp_path):
    page.set_viewport_size({"width": 390, "height": 844})
    open_saved(page, tmp_path, race_events(60, (5,)))
    token = page.locator('[data-lane="1"] .log .tok').nth(2)
    token.click()
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 1440, "height": 900})
    settle(page)
    token.click()
    box, place = page.locator(".card").bounding_box(), token.bounding_box()
    assert box["width"] == pytest.approx(372, abs=1)
    assert min(abs(box["y"] - place["y"] - place["height"]), abs(place["y"] - box["y"] - box["height"])) < 20


@pytest.mark.parametrize(("width", "count"), [(1440, 2), (1440, 3), (1440, 4), (390, 4)])
def test_no_words_of_a_chart_lie_on_others(page, tmp_path, width, count):
    page.set_viewport_size({"width": width, "height": 1000})
    events = race_events(300, KS[count])
    open_saved(page, tmp_path, events, race_report(events))
    page.wait_for_timeout(200)
    for chart in page.locator(".chart").all():
        words = [node for node in chart.locator("svg text, h3, .legend, button").all() if node.text_content().strip()]
        found = [(node.text_content(), node.bounding_box()) for node in words]
        for i, (one, box) in enumerate(found):
            for other, second in found[:i]:
                apart = (
                    box["x"] + box["width"] <= second["x"] + 1
                    or second["x"] + second["width"] <= box["x"] + 1
                    or box["y"] + box["height"] <= second["y"] + 3
                    or second["y"] + second["height"] <= box["y"] + 3
                )
                assert apart, f"{one!r} lies on {other!r}"
