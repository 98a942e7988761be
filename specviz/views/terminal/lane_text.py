"""What one lane has written so far, as styled text: the kept tokens in order, rejected ones where they stood.

A status has a colour, and always a second cue that needs none. Accepted and rejected bring their own background, so
they read on any terminal's; the rest is the terminal's own ink. Counts nothing and prints nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping

from rich.style import Style
from rich.text import Text

from specviz.traces import Kind, LaneFinished, Round, Token, Verdict
from specviz.views.terminal.escaping import glyphs, visible

FAINT = Style(dim=True)
BOLD = Style(bold=True)
BONUS_MARK = "+"
_UNTOLD = "·"  # a kept token whose text is not known while the lane runs

# accepted, rejected: ink and ground
_COLOURS = {
    "light": (("#1F5FBF", "#d6eaf8"), ("#B34700", "#fbe3d6")),
    "dark": (("#56B4E9", "#10324a"), ("#FF9E6B", "#4a2412")),
}

Styles = Mapping[Verdict | Kind, Style]


def styles_of(theme: str | None = None) -> Styles:
    """The style of each status; `theme` is light or dark, by default what the terminal tells."""
    accepted, rejected = _COLOURS[theme or _theme(os.environ)]
    return {
        Verdict.ACCEPTED: Style(color=accepted[0], bgcolor=accepted[1], underline=True),
        Verdict.REJECTED: Style(color=rejected[0], bgcolor=rejected[1], strike=True),
        # a terminal without a double underline shows the single one
        Kind.CORRECTION: Style(bold=True, underline=True, underline2=True),
        Kind.BONUS: Style(),
        Kind.STANDARD: Style(),
    }


def legend(styles: Styles) -> Text:
    """One line that says what the styles mean."""
    words = {
        Verdict.ACCEPTED: "accepted draft",
        Verdict.REJECTED: "rejected draft",
        Kind.CORRECTION: "the target's correction",
        Kind.BONUS: "the target's bonus token",
    }
    line = Text()
    for status, meaning in words.items():
        line.append("   " if line else "")
        line.append(BONUS_MARK if status is Kind.BONUS else "", FAINT)
        line.append(meaning, styles[status])
    return line


class LaneText:
    """The text of a lane as it grows; `notes` counts the notes of its rounds."""

    def __init__(self, styles: Styles) -> None:
        self._styles = styles
        self._spans: list[tuple[str, Style, bool]] = []  # text, style, whether it is part of the output
        self._told = True
        self._end: LaneFinished | None = None
        self.notes: Counter[str] = Counter()

    def add(self, round_: Round) -> None:
        for draft in round_.drafts:
            if draft.verdict is Verdict.ACCEPTED:
                self._keep(draft.token, Verdict.ACCEPTED)
            elif draft.verdict is Verdict.REJECTED:
                self._reject(draft.token)
        if round_.target is not None:
            self._keep(round_.target.token, round_.target.kind)
        if round_.note:
            self.notes[round_.note] += 1

    def finish(self, event: LaneFinished) -> None:
        self._end = event

    @property
    def plain(self) -> str:
        """The output alone: nothing rejected, no marks, controls escaped."""
        if self._end is not None and self._end.text is not None:
            return visible(self._end.text)
        return visible("".join(text for text, _, kept in self._spans if kept)) if self._told else ""

    def styled(self) -> Text:
        """Every token in the style of its status."""
        if not self._told and self._end is not None:
            return Text(self.plain)
        return Text.assemble(*((shown, style) for shown, style in self._shown()))

    def _keep(self, token: Token, status: Verdict | Kind) -> None:
        if status is Kind.BONUS:
            self._spans.append((BONUS_MARK, FAINT, False))
        self._told = self._told and token.text is not None
        self._spans.append((_UNTOLD if token.text is None else token.text, self._styles[status], True))

    def _reject(self, token: Token) -> None:
        piece = token.piece if token.piece is not None else token.text
        self._spans.append((_UNTOLD if piece is None else glyphs(piece), self._styles[Verdict.REJECTED], False))

    def _shown(self) -> Iterator[tuple[str, Style]]:
        """The spans, up to where the lane's text ends: a stop string is no part of it."""
        room = None if self._end is None or self._end.text is None else len(self._end.text)
        for text, style, kept in self._spans:
            if kept and room is not None:
                text, room = text[:room], room - min(room, len(text))
            yield visible(text), style
        if room and self._end.tail:
            yield visible(self._end.tail[:room]), Style()


def _theme(environ: Mapping[str, str]) -> str:
    """Terminals that set COLORFGBG give their background last: 7 and 15 are the light ones."""
    return "light" if environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15") else "dark"
