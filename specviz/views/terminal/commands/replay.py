"""Show a recorded race again, from its trace.

Prints what the race printed. With --speed the tokens come as they came, on the lanes' own clocks.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from specviz.core.errors import InputError
from specviz.core.spelling import number
from specviz.metrics import summarize
from specviz.traces import Event, LaneFinished, LaneStarted, RaceStarted, RoundDone, read_trace
from specviz.views.terminal.race_progress import Stage
from specviz.views.terminal.show import show


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a trace, as race --trace writes it")
    words = "1 is the true speed, 0.5 half of it (default: at once)"
    parser.add_argument("--speed", type=number, metavar="N", help=words)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(arguments: argparse.Namespace) -> int:
    speed = _checked(arguments.speed)
    events = tuple(read_trace(arguments.file))
    summarize(events)  # refuses a trace that does not hang together before anything is shown
    interrupted = show(events if speed is None else paced(events, speed), Stage(), as_json=arguments.json)
    return 130 if interrupted else 0


def paced(events: Sequence[Event], speed: float) -> Iterator[Event]:
    """The events in the order of the lanes' clocks, each at its moment divided by `speed`."""
    start = time.monotonic()
    for moment, event in sorted(_moments(events), key=lambda pair: pair[0]):
        if math.isfinite(moment):
            time.sleep(max(0.0, moment / speed - (time.monotonic() - start)))
        yield event


def _moments(events: Sequence[Event]) -> Iterator[tuple[float, Event]]:
    clocks: dict[str, float] = {}
    for event in events:
        match event:
            case RoundDone(lane, round_):
                clocks[lane] = clocks.get(lane, 0.0) + round_.seconds
                yield clocks[lane], event
            case LaneFinished(lane):
                yield clocks.get(lane, 0.0), event
            case RaceStarted() | LaneStarted():
                yield 0.0, event
            case _:
                yield math.inf, event


def _checked(speed: int | float | str | None) -> float | None:
    if speed is None:
        return None
    if isinstance(speed, str) or not 0.01 <= speed <= 1000:
        raise InputError(f"The speed must be a number from 0.01 to 1000, not {speed}.")
    return float(speed)
