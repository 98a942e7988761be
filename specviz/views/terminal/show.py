"""Shows a stream of events on a terminal, or to a program as JSON; a live race and a replay alike."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Protocol

from rich.console import Console

from specviz.metrics import Place, Summary, Tally, values
from specviz.traces import Calibrated, Event, Header, RaceStarted
from specviz.views.terminal.escaping import one_line
from specviz.views.terminal.printed_report import notes_of, print_header, print_numbers, print_verdicts
from specviz.views.terminal.race_progress import Stage
from specviz.views.terminal.screen import Lanes, screen_for

_NEVER_WRAPS = 10_000


class Sink(Protocol):
    """Takes the events of a race, one at a time."""

    def add(self, event: Event) -> None: ...


def show(events: Iterable[Event], stage: Stage, sinks: Sequence[Sink] = (), *, as_json: bool = False) -> bool:
    """Show a race as it happens, then its numbers and verdicts; returns whether Ctrl-C interrupted it.

    Every event also goes to `stage` and `sinks`; after Ctrl-C so do the events that end the race.
    """
    interrupted = _show_json(events, stage, sinks) if as_json else _show_text(events, stage, sinks)
    if stage.header is None:
        print("Stopped before the race began.", file=sys.stderr)
    return interrupted


def to_json(header: Header, summaries: Mapping[str, Summary]) -> str:
    """One line of ASCII: lanes by name, the settings shared by all lanes, device and dtype."""
    lanes = {name: values(summary, Place.JSON) for name, summary in summaries.items()}
    settings = asdict(header.lanes[0].settings) if header.lanes else {}
    value = {"lanes": lanes, "settings": settings, "device": header.device, "dtype": header.dtype}
    return json.dumps(value, allow_nan=False)


def console() -> Console:
    """stdout: coloured and wrapped on a terminal, plain and never wrapped elsewhere."""
    terminal = sys.stdout.isatty()
    return Console(
        file=sys.stdout,
        force_terminal=terminal,
        width=None if terminal else _NEVER_WRAPS,
        markup=False,
        emoji=False,
        highlight=False,
    )


def note(text: str) -> None:
    print(f"note: {one_line(text)}", file=sys.stderr, flush=True)


class _Opening:
    """Prints the notes and the header of a race when it starts."""

    def __init__(self, out: Console | None) -> None:
        self._out = out

    def add(self, event: Event) -> None:
        if not isinstance(event, RaceStarted):
            return
        for text in notes_of(event.header):
            note(text)
        if self._out is not None:
            print_header(self._out, event.header)


class _Curve:
    """The verify curve, from the header or from its own event."""

    def __init__(self) -> None:
        self.curve = None

    def add(self, event: Event) -> None:
        if isinstance(event, RaceStarted):
            self.curve = event.header.curve
        elif isinstance(event, Calibrated):
            self.curve = event.curve


def _show_text(events: Iterable[Event], stage: Stage, sinks: Sequence[Sink]) -> bool:
    out, tally, curve = console(), Tally(), _Curve()
    lanes = Lanes(tally)
    with screen_for(out, lanes) as screen:
        interrupted = _drain(events, stage, (stage, *sinks, tally, curve, lanes, _Opening(out), screen))
    if stage.header is not None:
        for text in lanes.notes():
            note(text)
        summaries = list(tally.summaries().values())
        print_numbers(out, summaries, stage.header.lanes, curve.curve)
        print_verdicts(out, summaries, stage.header.lanes)
    return interrupted


def _show_json(events: Iterable[Event], stage: Stage, sinks: Sequence[Sink]) -> bool:
    tally = Tally()
    lanes = Lanes(tally)
    interrupted = _drain(events, stage, (stage, *sinks, tally, lanes, _Opening(None)))
    if stage.header is not None:
        for text in (*lanes.notes(), *(f"{end.lane}: {end.message}" for end in stage.failed)):
            note(text)
        print(to_json(stage.header, tally.summaries()), flush=True)
    return interrupted


def _drain(events: Iterable[Event], stage: Stage, sinks: Sequence[Sink]) -> bool:
    """Give every event to every sink; returns whether Ctrl-C interrupted the race, whose endings then follow."""
    try:
        for event in events:
            for sink in sinks:
                sink.add(event)
    except KeyboardInterrupt:
        for event in tuple(stage.endings()):
            for sink in sinks:
                sink.add(event)
        return True
    return False
