"""Progress of a slow step: a callback of a fraction and a sentence, and the bar that a terminal shows of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

# fraction in [0, 1], a sentence
Progress = Callable[[float, str], None]

_WIDTH = 28


def silent(fraction: float, sentence: str) -> None:
    """The Progress that says nothing."""


def part(progress: Progress, start: float, end: float) -> Progress:
    """The Progress of a step that takes `progress` from `start` to `end`."""

    def report(fraction: float, sentence: str) -> None:
        progress(start + (end - start) * min(max(fraction, 0.0), 1.0), sentence)

    return report


def size(count: int) -> str:
    """A number of bytes as people read it: 98 MB, 1.6 GB (decimal units)."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            amount = count / scale
            return f"{amount:.1f} {unit}" if amount < 10 and unit == "GB" else f"{amount:.0f} {unit}"
    return f"{count} bytes"


class TerminalBar:
    """A Progress that draws one bar on a terminal, and one line a sentence where the stream is none."""

    def __init__(self, stream: TextIO | None = None, interval_seconds: float = 0.1) -> None:
        self._stream = stream or sys.stderr
        self._interval = interval_seconds
        self._drawn_at = 0.0
        self._sentence = ""
        self._open = False

    def __call__(self, fraction: float, sentence: str) -> None:
        if not self._stream.isatty():
            if sentence != self._sentence:
                print(sentence, file=self._stream, flush=True)
            self._sentence = sentence
            return
        now = time.monotonic()
        if now - self._drawn_at < self._interval and sentence == self._sentence and fraction < 1.0:
            return
        self._drawn_at, self._sentence, self._open = now, sentence, True
        filled = round(_WIDTH * fraction)
        bar = "#" * filled + "." * (_WIDTH - filled)
        self._stream.write(f"\r\x1b[2K[{bar}] {fraction:4.0%} {sentence}")
        self._stream.flush()

    def close(self) -> None:
        """Leave the bar on its line."""
        if self._open:
            self._stream.write("\n")
            self._open = False
