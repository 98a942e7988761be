"""What the race view says: of a replay, of a speed near 1, of what holds a win back, of rounds that drafted nothing."""

import re
from dataclasses import replace

import pytest
from support.race_page import open_saved, plain_rounds, race_of, seek, settle
from support.synthetic_race import race_events

from specviz.traces import DraftToken, Kind, LaneFinished, RaceFinished, RoundDone, TargetToken, Token, Verdict
from specviz.views.report import race_report

pytestmark = pytest.mark.browser


def headline(page):
    return re.sub(r"\s+", " ", page.inner_text(".headline h2")).strip()


def end_of(events):
    return max(event.round.end_seconds for event in events if isinstance(event, RoundDone))


def test_a_replay_says_that_it_is_one_and_the_finished_runs_table_stays(page, tmp_path):
    events = race_events(120, (5,))
    open_saved(page, tmp_path, events, race_report(events))
    final, table = headline(page), page.inner_text(".final")
    assert "Replay" not in final
    assert table.startswith("The finished run")
    seek(page, 0)
    assert headline(page).startswith(f"Replay, 0.00 s of {end_of(events):.2f} s:")
    assert "Racing" not in headline(page)
    seek(page, end_of(events) / 2)
    assert re.match(r"Replay, \d\.\d\d s of \d\.\d\d s: \d\.\d× faster so far", headline(page))
    assert page.inner_text(".final") == table
    page.click('[data-act="play"]')
    page.wait_for_timeout(200)
    assert headline(page).startswith("Replay, ")
    assert page.is_visible(".final")
    seek(page, 1e9)
    assert headline(page) == final


@pytest.mark.parametrize(
    ("seconds", "live", "over"),
    [
        (0.1001, "1.00× as fast as standard decoding so far: ", "1.00× as fast as standard decoding: "),
        (0.0999, "1.00× as fast as standard decoding so far: ", "1.00× as fast as standard decoding: "),
        (0.1031, "0.97× slower so far: ", "0.97× slower: "),
        (0.0971, "1.05× faster so far ", "1.03× faster "),
        (0.2, "0.5× slower so far: ", "0.5× slower: "),
    ],
)
def test_a_speed_is_said_as_the_metrics_say_it(page, tmp_path, seconds, live, over):
    events = list(race_of({"standard": plain_rounds(30, 0.1), "draft": plain_rounds(30, seconds)}))
    open_saved(page, tmp_path, events)
    # no numbers came with it: the view's own words at the end
    assert headline(page).startswith(over)
    # 29 tokens of standard decoding; of the lane 29, 29, 28, all 30 at 2.913 s, 14
    seek(page, 2.95)
    assert headline(page).split(": ", 1)[1].startswith(live)


def test_what_holds_a_win_back_is_said_in_the_final_table(page, tmp_path):
    events = race_events(60, (5,))
    report = race_report(events)
    (said,) = report.reasons
    assert "faster, the same 60 tokens" in said and "What holds it back most: the draft costs" in said
    open_saved(page, tmp_path, events, report)
    assert page.inner_text(".final .why") == said
    open_saved(page, tmp_path, events, replace(report, reasons=("1.2× faster.",)))
    assert "holds it back" not in page.inner_text(".final")


def mixed_lane():
    """Four rounds: nothing drafted, two drafted and kept with a bonus, nothing drafted, nothing drafted; 0.1 s each."""
    rounds = list(plain_rounds(4, 0.1))
    drafts = tuple(DraftToken(Token(50 + i, f" d{i}", f" d{i}"), Verdict.ACCEPTED) for i in range(2))
    bonus = TargetToken(Token(60, " b", " b"), Kind.BONUS)
    rounds[1] = replace(rounds[1], drafted=2, drafts=drafts, target=bonus)
    return rounds


def test_a_round_that_drafted_nothing_is_a_plain_pass_on_the_timeline(page, tmp_path):
    open_saved(page, tmp_path, race_of({"standard": plain_rounds(6, 0.1), "draft": mixed_lane()}))
    # the colours of each lane's blocks along their middle, where a count would stand
    colours = page.evaluate(
        """() => { const canvas = document.querySelector('.timeline canvas');
             const pen = canvas.getContext('2d'); const wide = canvas.width / 6; const ratio = devicePixelRatio;
             const block = (lane, i) => { const data = pen.getImageData(Math.round(i * wide) + 3,
               Math.round((lane * 49 + 15 + 13) * ratio), Math.round(wide) - 8, 1).data; const seen = new Set();
               for (let at = 0; at < data.length; at += 4) seen.add(data.slice(at, at + 3).join(','));
               return [...seen]; };
             return [block(0, 0), [0, 1, 2, 3].map(i => block(1, i))]; }"""
    )
    standard, lane = colours
    assert len(standard) == 1
    assert [lane[0], lane[2], lane[3]] == [standard] * 3
    # verified: another colour, and a count written on it
    assert standard[0] not in lane[1]
    assert len(lane[1]) > 1


def test_the_card_of_a_round_that_drafted_nothing_says_so(page, tmp_path):
    open_saved(page, tmp_path, race_of({"standard": plain_rounds(6, 0.1), "draft": mixed_lane()}))
    page.locator('[data-lane="1"] .log .tok').nth(0).click()
    said = page.inner_text(".card")
    assert "Nothing was drafted in this round: a plain pass, as in standard decoding" in said
    assert "standard" in page.inner_text(".card .where")
    assert "(found nothing)" in page.inner_text(".card .times")
    page.locator('[data-lane="1"] .log .tok').nth(3).click()
    assert "All 2 drafted tokens passed" in page.inner_text(".card")
    assert "found nothing" not in page.inner_text(".card .times")
    page.locator('[data-lane="0"] .log .tok').nth(0).click()
    assert "One pass of the target, one token" in page.inner_text(".card")


def test_a_round_in_flight_that_drafted_nothing_says_so(page, tmp_path):
    open_saved(page, tmp_path, race_of({"standard": plain_rounds(6, 0.1), "draft": mixed_lane()}))
    for t, said in ((0.05, "nothing drafted: one plain pass"), (0.15, "target is checking 2 of k = 4")):
        seek(page, t)
        settle(page)
        assert page.inner_text('[data-lane="1"] .flight em') == said


def test_a_trace_that_was_cut_off_is_shown_to_its_end(page, tmp_path):
    """Its lanes never finish, so no common clock would lead there."""
    whole = list(race_of({"standard": plain_rounds(6, 0.5), "tree": plain_rounds(3, 0.5)}))
    cut = [event for event in whole if not isinstance(event, LaneFinished | RaceFinished)]
    open_saved(page, tmp_path, cut, race_report(cut))
    assert page.locator('[data-lane="0"] .counters b').first.inner_text() == "6"
    assert not headline(page).startswith("Replay")
