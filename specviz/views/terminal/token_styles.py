"""How a token's status looks in a terminal: colour, and always a second cue that needs none.

Accepted and rejected bring their own background, so they read on any terminal's; the rest is the terminal's own ink.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from rich.style import Style
from rich.text import Text

from specviz.traces import Kind, Verdict

FAINT = Style(dim=True)
BOLD = Style(bold=True)
BONUS_MARK = "+"

# accepted, rejected: ink and ground
_COLOURS = {
    "light": (("#1F5FBF", "#d6eaf8"), ("#B34700", "#fbe3d6")),
    "dark": (("#56B4E9", "#10324a"), ("#FF9E6B", "#4a2412")),
}

Looks = Mapping[Verdict | Kind, Style]


def looks(theme: str | None = None) -> Looks:
    """The style of each status; `theme` light or dark, by default as far as the terminal tells."""
    accepted, rejected = _COLOURS[theme or _theme(os.environ)]
    return {
        Verdict.ACCEPTED: Style(color=accepted[0], bgcolor=accepted[1], underline=True),
        Verdict.REJECTED: Style(color=rejected[0], bgcolor=rejected[1], strike=True),
        # a terminal without a double underline shows the single one
        Kind.CORRECTION: Style(bold=True, underline=True, underline2=True),
        Kind.BONUS: Style(),
        Kind.STANDARD: Style(),
    }


def legend(styles: Looks) -> Text:
    """One line that says what the looks mean."""
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


def _theme(environ: Mapping[str, str]) -> str:
    """Terminals that set COLORFGBG give their background last: 7 and 15 are the light ones."""
    return "light" if environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15") else "dark"
