"""RaceStream: the events and the report of one run, as values of the RaceView component.

A value is `{"run": id, "ring": [16 slots], "live": bool}`. A slot holds `"number|batch"`. Each new batch overwrites the
oldest slot, so an update costs one slot on the wire, however long the run is. A browser that missed more than the ring
holds asks `resync` for the rest. Knows nothing of Gradio.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from specviz.traces import Event
from specviz.views.report import Report
from specviz.views.web.race_view import wire

SLOTS = 16
MAX_RUNS = 64
MAX_RUN_BYTES = 32 * 1024 * 1024
MAX_REPLY_BYTES = 2 * 1024 * 1024

Value = dict[str, Any]


class _Store:
    """The batches of recent runs, by run id. An id cannot be guessed, so whoever has it was sent the run."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, list[str]] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, run: str, batches: list[str]) -> None:
        with self._lock:
            self._runs[run] = batches
            while len(self._runs) > MAX_RUNS:
                self._runs.popitem(last=False)

    def drop(self, run: str) -> None:
        with self._lock:
            self._runs.pop(run, None)

    def after(self, run: str, number: int) -> list[str] | None:
        """Batches from number + 1 on, as many as a reply holds; None where the run is not known."""
        with self._lock:
            batches = self._runs.get(run)
            if batches is None:
                return None
            reply: list[str] = []
            size = 0
            for text in batches[number:]:
                size += len(text)
                if reply and size > MAX_REPLY_BYTES:
                    break
                reply.append(text)
            return reply


_STORE = _Store()


def resync(request: Any) -> dict[str, Any]:
    """The batches of `{"run": id, "after": number}` that a browser missed; `{"gone": true}` where there are none."""
    run = request.get("run") if isinstance(request, dict) else None
    after = request.get("after") if isinstance(request, dict) else None
    if not isinstance(run, str) or isinstance(after, bool) or not isinstance(after, int) or after < 0:
        return {"gone": True}
    batches = _STORE.after(run, after)
    return {"gone": True} if batches is None else {"run": run, "batches": batches}


class RaceStream:
    """One run on its way to the browser: push events as they happen, send `value()` when it gives one.

    Gives at most `hz` values per second, however fast the events come. Not for several threads at once.
    """

    def __init__(
        self, run: str | None = None, hz: float = 15.0, live: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.run = run or secrets.token_urlsafe(16)
        self._encoder = wire.Encoder()
        self._pending: list[Event] = []
        self._extra: list[list[Any]] = []
        self._ring = [""] * SLOTS
        self._batches: list[str] = []
        self._bytes = 0
        self._live = live
        self._interval = 1.0 / hz
        self._clock = clock
        self._sent = float("-inf")
        _STORE.open(self.run, self._batches)

    def push(self, event: Event) -> None:
        self._pending.append(event)

    def push_report(self, report: Report) -> None:
        """The report on the race, as far as it goes; a later one takes its place."""
        self._extra.append(["s", report.as_json()])

    def value(self, force: bool = False) -> Value | None:
        """The value to send now; None where nothing is new or the last value is younger than 1 / hz seconds."""
        now = self._clock()
        if not (self._pending or self._extra) or (now - self._sent < self._interval and not force):
            return None
        self._sent = now
        self._append()
        return {"run": self.run, "ring": list(self._ring), "live": self._live}

    def flush(self) -> Value:
        """The value with everything that was pushed; the last one of a run."""
        return self.value(force=True) or {"run": self.run, "ring": list(self._ring), "live": self._live}

    def _append(self) -> None:
        batch = self._encoder.batch(self._pending)
        batch["e"] += self._extra
        self._pending, self._extra = [], []
        text = wire.dumps(batch)
        self._batches.append(text)
        self._bytes += len(text)
        if self._bytes > MAX_RUN_BYTES:
            _STORE.drop(self.run)
        number = len(self._batches)
        self._ring[number % SLOTS] = f"{number}|{text}"


def recorded(events: Iterable[Event], report: Report) -> Value:
    """The value that shows a finished trace with its report, ready to be replayed."""
    stream = RaceStream(live=False)
    for event in events:
        stream.push(event)
    stream.push_report(report)
    return stream.flush()


def refused(sentence: str) -> Value:
    """The value that says why a file cannot be opened, where it was chosen; the race that is shown stays."""
    return {"refused": sentence, "nonce": secrets.token_urlsafe(8)}  # the same refusal again must be a new value
