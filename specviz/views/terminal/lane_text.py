"""What one lane has written so far, as styled text: the kept tokens in order, rejected ones where they stood.

Knows the records of a trace and the looks of a status; counts nothing and prints nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.style import Style
from rich.text import Text

from specviz.traces import Kind, LaneFinished, Round, Token, Verdict
from specviz.views.terminal.escaping import glyphs, visible
from specviz.views.terminal.token_styles import BONUS_MARK, FAINT, Looks

_UNTOLD = "·"  # a kept token whose text is not told while the lane runs


class LaneText:
    """The text of a lane as it grows; `notes` counts what its rounds had to say."""

    def __init__(self, looks: Looks) -> None:
        self._looks = looks
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
        """Every token in the look of its status."""
        if not self._told and self._end is not None:
            return Text(self.plain)
        return Text.assemble(*((shown, style) for shown, style in self._shown()))

    def _keep(self, token: Token, status: Verdict | Kind) -> None:
        if status is Kind.BONUS:
            self._spans.append((BONUS_MARK, FAINT, False))
        self._told = self._told and token.text is not None
        self._spans.append((_UNTOLD if token.text is None else token.text, self._looks[status], True))

    def _reject(self, token: Token) -> None:
        piece = token.piece if token.piece is not None else token.text
        self._spans.append((_UNTOLD if piece is None else glyphs(piece), self._looks[Verdict.REJECTED], False))

    def _shown(self) -> Iterator[tuple[str, Style]]:
        """The spans, up to where the lane's text ends: a stop string is no part of it."""
        room = None if self._end is None or self._end.text is None else len(self._end.text)
        for text, style, kept in self._spans:
            if kept and room is not None:
                text, room = text[:room], room - min(room, len(text))
            yield visible(text), style
        if room and self._end.tail:
            yield visible(self._end.tail[:room]), Style()
