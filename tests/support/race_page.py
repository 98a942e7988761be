"""What tests of the race view share: a trace as a saved page, moving in its time, and waiting for what is drawn."""

from __future__ import annotations

from dataclasses import replace

from playwright.sync_api import expect
from support.saved_pages import saved_page
from support.synthetic_race import race_events

from specviz.traces import (
    Kind,
    LaneFinished,
    LaneStarted,
    RaceFinished,
    RaceStarted,
    Reason,
    Round,
    RoundDone,
    TargetToken,
    Token,
)


def open_saved(page, folder, events, report=None):
    """Shows a trace as a saved file, with no server."""
    path = folder / "race.html"
    path.write_text(saved_page(events, report), "utf-8")
    page.goto(path.as_uri())
    page.wait_for_selector(".lanes .lane")
    settle(page)


def seek(page, t):
    page.evaluate(
        """t => { const slider = document.querySelector('.transport input'); slider.value = t;
                slider.dispatchEvent(new Event('input', { bubbles: true })); }""",
        t,
    )
    settle(page)


def settle(page):
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_function("!document.querySelector('.specviz-race[data-stale]')")


def has(page, selector, number):
    """Asserts it, once what was drawn last is on the page."""
    expect(page.locator(selector)).to_have_count(number)


def race_of(lanes, k=4, temperature=0.0, sources=()):
    """The events of a race from {lane name: rounds}; the first is the standard lane, the others have `sources`."""
    header = race_events(1, (k,) * (len(lanes) - 1), temperature)[0].header
    infos = tuple(replace(info, name=name) for info, name in zip(header.lanes, lanes, strict=True))
    infos = (infos[0], *(replace(info, sources=tuple(sources)) for info in infos[1:]))
    yield RaceStarted(replace(header, lanes=infos))
    for name, rounds in lanes.items():
        yield LaneStarted(name)
        yield from (RoundDone(name, done) for done in rounds)
        yield LaneFinished(name, Reason.LENGTH, "".join(token.text for done in rounds for token in done.kept))
    yield RaceFinished()


def plain_rounds(count, seconds, start=0):
    """Rounds that drafted nothing, from round `start` on: one token each, in `seconds`."""
    for index in range(start, start + count):
        token = TargetToken(Token(index, f" t{index}", f" t{index}"), Kind.STANDARD, margin=1.0)
        yield Round(index, 4, 0, (), token, None, index * seconds, 0.0, seconds, 0.0)
