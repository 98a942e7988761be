"""Text from strangers reaches a terminal without its control characters, and loses nothing else."""

import unicodedata

import pytest

from specviz.views.terminal.escaping import glyphs, one_line, visible


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
        ("a\rb\x08c\x00", "a\\x0db\\x08c\\x00"),
        ("\x9b31m\x85\x7f", "\\x9b31m\\x85\\x7f"),
        ("abc\u202etxt.exe\u2066", "abc\\u202etxt.exe\\u2066"),
        ("\u2028\u2029\ufeff\u200f", "\\u2028\\u2029\\ufeff\\u200f"),
        ("\udcff", "\\udcff"),
    ],
)
def test_controls_become_escapes(hostile, shown):
    assert visible(hostile) == shown


def test_no_control_and_no_bidi_mark_is_left():
    whole = "".join(map(chr, range(0x3100))) + "\ufeff"
    left = {character for character in visible(whole) if unicodedata.category(character) == "Cc"}
    assert left == {"\n", "\t"}
    marks = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    assert not [character for character in visible(whole) if unicodedata.bidirectional(character) in marks]


def test_text_stays_as_it_is():
    text = "Ünï 日本 👩‍👩‍👧 ${x} [bold]\n\tif a < b:"
    assert visible(text) == text


def test_one_line_has_no_breaks():
    assert one_line("  a\n   b\tc\x1b\n") == "a b c\\x1b"


@pytest.mark.parametrize(("token", "seen"), [("\n\n", "⏎⏎"), ("  ", "␣␣"), (" the", " the"), ("\t", "⇥"), ("", "")])
def test_a_rejected_token_is_seen_and_breaks_no_line(token, seen):
    assert glyphs(token) == seen
