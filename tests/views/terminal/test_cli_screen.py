"""Lanes on a terminal: how each token looks, and that colour is never the only cue."""

import io
import re

import pytest
from rich.console import Console
from support.scripted import race

from specviz.metrics import Tally
from specviz.traces import DraftToken, Kind, LaneFinished, Reason, Round, TargetToken, Token, Verdict
from specviz.views.terminal.lane_text import LaneText, legend, styles_of
from specviz.views.terminal.screen import Lanes, screen_for

UNDERLINE, STRIKE, BOLD, DOUBLE = "4", "9", "1", "21"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch, width=100, height=30, **environ):
    for name in ("NO_COLOR", "COLORFGBG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", "COLORTERM": "truecolor", **environ}.items():
        monkeypatch.setenv(name, value)
    return Console(file=Terminal(), width=width, height=height, highlight=False, markup=False)


def draft(text, verdict, piece=None):
    return DraftToken(Token(1, text, piece or text), verdict)


def round_(drafts, text, kind, **facts):
    target = None if kind is None else TargetToken(Token(2, text, text), kind)
    return Round(0, len(drafts), len(drafts), tuple(drafts), target, **facts)


MIXED = round_(
    [draft(" good", Verdict.ACCEPTED), draft("\n", Verdict.REJECTED), draft(" never", Verdict.UNTESTED)],
    " right",
    Kind.CORRECTION,
)
FULL = round_([draft(" yes", Verdict.ACCEPTED)], " more", Kind.BONUS)


def spans(text):
    """[(shown, style), ...] of a rich Text."""
    return [(text.plain[span.start : span.end], span.style) for span in text.spans]


def test_each_status_has_its_style_and_untested_is_not_shown():
    styles = styles_of("dark")
    text = LaneText(styles)
    text.add(MIXED)
    text.add(FULL)
    shown = text.styled()
    assert shown.plain == " good⏎ right yes+ more"
    kept = dict(spans(shown))
    assert kept[" good"] == styles[Verdict.ACCEPTED] and kept["⏎"] == styles[Verdict.REJECTED]
    assert kept[" right"] == styles[Kind.CORRECTION] and kept["+"].dim
    assert text.plain == " good right yes more"


def test_every_cue_survives_without_colour(monkeypatch):
    console = terminal(monkeypatch, NO_COLOR="1")
    console.print(legend(styles_of("dark")))
    out = console.file.getvalue()
    assert f"\x1b[{UNDERLINE}maccepted draft" in out and f"\x1b[{STRIKE}mrejected draft" in out
    assert f"\x1b[{BOLD};{UNDERLINE};{DOUBLE}mthe target's correction" in out
    assert "38;" not in out and "48;" not in out


@pytest.mark.parametrize(("background", "ink"), [("15;0", (0x56, 0xB4, 0xE9)), ("0;15", (0x1F, 0x5F, 0xBF))])
def test_the_ink_suits_the_background_that_the_terminal_tells(monkeypatch, background, ink):
    monkeypatch.setenv("COLORFGBG", background)
    assert styles_of()[Verdict.ACCEPTED].color.triplet == ink


def test_a_lane_ends_before_its_stop_string_and_its_tail_is_part_of_it():
    text = LaneText(styles_of("dark"))
    text.add(round_([draft(" one END", Verdict.ACCEPTED), draft(" two", Verdict.ACCEPTED)], "", None))
    text.finish(LaneFinished("x", Reason.STOP, " one "))
    assert text.styled().plain == text.plain == " one "
    text.finish(LaneFinished("x", Reason.LENGTH, " one END two�", tail="�"))
    assert text.styled().plain == text.plain == " one END two�"


def test_without_telemetry_the_text_comes_at_the_end():
    bare = Round(0, 1, 1, (DraftToken(Token(5), Verdict.ACCEPTED),), TargetToken(Token(6), Kind.BONUS))
    text = LaneText(styles_of("dark"))
    text.add(bare)
    assert text.styled().plain == "·+·" and text.plain == ""
    text.finish(LaneFinished("x", Reason.LENGTH, "ab"))
    assert text.styled().plain == text.plain == "ab"


def test_hostile_tokens_are_escaped_in_every_form():
    text = LaneText(styles_of("dark"))
    text.add(
        round_([draft("\x1b[2J", Verdict.ACCEPTED), draft("\x9b1m\u202e", Verdict.REJECTED)], "\x07", Kind.CORRECTION)
    )
    assert text.styled().plain == "\\x1b[2J\\x9b1m\\u202e\\x07"
    assert text.plain == "\\x1b[2J\\x07"


def shown(console, events):
    tally = Tally()
    lanes = Lanes(tally)
    with screen_for(console, lanes) as screen:
        for event in events:
            for sink in (tally, lanes, screen):
                sink.add(event)
    return lanes, console.file.getvalue()


def long_race(rounds=300):
    each = [round_([draft(f" w{number}", Verdict.ACCEPTED)], ".", Kind.BONUS) for number in range(rounds)]
    return list(race({"standard": each, "other": each}))


def test_a_terminal_shows_lanes_side_by_side_and_all_their_text_at_the_end(monkeypatch):
    console = terminal(monkeypatch, NO_COLOR="1")
    _, out = shown(console, long_race())
    heads = [line for line in out.splitlines() if "standard" in line and "other" in line]
    assert heads
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out[out.rindex("standard") :])
    assert all(len(re.findall(rf"\bw{number}\b", last)) == 2 for number in range(300))


def test_while_it_runs_a_frame_fits_the_screen(monkeypatch):
    console = terminal(monkeypatch, width=70, height=12)
    tally = Tally()
    lanes = Lanes(tally)
    for event in long_race():
        tally.add(event)
        lanes.add(event)
    screen = screen_for(console, lanes)
    lines = console.render_lines(screen._frame, console.options)
    assert len(lines) <= 11
    last = "".join(segment.text for line in lines for segment in line)
    assert "w299" in last and "w0 " not in last


@pytest.mark.parametrize("width", [1, 20, 45, 400])
def test_any_width_and_any_number_of_lanes_can_be_drawn(monkeypatch, width):
    rounds = [MIXED, FULL]
    lanes = {"standard": rounds, **{f"lane {number}": rounds for number in range(7)}}
    console = terminal(monkeypatch, width=width, NO_COLOR="1")
    shown(console, race(lanes))
    assert "right" in console.file.getvalue() or width < 20


def test_elsewhere_each_lane_is_a_block_of_clean_text():
    console = Console(file=io.StringIO(), width=10_000, highlight=False, markup=False)
    code = round_([], "\tif x:\n\t\t" + "y" * 200, Kind.STANDARD)
    _, out = shown(console, race({"standard": [MIXED, code], "a\x1b[1m\n": [FULL]}))
    code = "\tif x:\n\t\t" + "y" * 200
    assert out == f"== standard ==\n good right{code}\n\n== a\\x1b[1m ==\n yes more\n\n"


def test_what_rounds_had_to_say_is_kept_once_with_its_count():
    rounds = [round_([], " a", Kind.STANDARD, note="draft off")] * 3
    lanes, _ = shown(Console(file=io.StringIO(), width=100), race({"standard": [MIXED], "x": rounds}))
    assert list(lanes.notes()) == ["x: draft off (3 rounds)"]
