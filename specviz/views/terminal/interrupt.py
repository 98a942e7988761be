"""Ctrl-C: once, the race ends after the round in hand and shows what there is; again, or between lanes, at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

from specviz.views.terminal.race_progress import Stage


class Interrupt:
    """While entered, a first SIGINT sets `asked` if lanes of `stage` run; any other raises KeyboardInterrupt."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._previous: Any = None
        self.asked = False

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():  # no other thread may set a handler
            self._previous = signal.signal(signal.SIGINT, self._pressed)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _pressed(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked or not self._stage.running:
            raise KeyboardInterrupt
        self.asked = True
