"""Makes text from models, traces and people harmless to a terminal.

Control characters can move the cursor, rename the window or reorder text, so they are written as escapes. Line breaks
and tabs stay where the caller wants them.
"""

from __future__ import annotations

import re

# C0 but tab and newline, DEL and C1, bidi marks and overrides, line and paragraph separators, BOM, lone surrogates
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_GLYPHS = str.maketrans({"\n": "⏎", "\t": "⇥"})


def visible(text: str) -> str:
    """`text` with control characters as escapes (\\x1b, \\u202e); line breaks and tabs stay."""
    return _CONTROLS.sub(lambda found: _escape(found[0]), text)


def one_line(text: str) -> str:
    """The same on one line: a break or a tab becomes a space."""
    return visible(re.sub(r"\s*[\n\t]\s*", " ", text.strip()))


def glyphs(text: str) -> str:
    """A rejected token, made visible on one line: white space alone becomes signs."""
    return visible("␣" * len(text) if text and not text.strip(" ") else text.translate(_GLYPHS))


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
