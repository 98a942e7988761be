"""One run proves little: the last race again, several times, and the median and spread of its speed-ups.

Every run is a race of its own, lanes alternating as ever; tokens and counts are those of the race that is shown, only
times are new.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from specviz.core.errors import SpecvizError
from specviz.metrics import Spread, Summary, summarize, verdict_of
from specviz.traces import Event, RaceFinished
from specviz.views.web.running import Cancelled, Runner, Waiting
from specviz.views.web.session import Session, Shown
from specviz.views.web.summary_json import numbers
from specviz.views.web.text_line import QUIET, busy, error, info

RUNS = 5


def measure(session: Session, ticket: int | None, runner: Runner, runs: int = RUNS) -> Iterator[Shown]:
    """The measurement of `ticket` as changes of the page. Stop, another run or leaving end it and change nothing."""
    if not session.wants(ticket) or session.raced is None or session.stream is None:
        return
    session.running_ticket = ticket
    try:
        yield from _measured(session, runner, lambda: not session.wants(ticket), runs)
    except SpecvizError as refusal:
        yield Shown(line=error(str(refusal)))
    finally:
        session.left(ticket)
        session.end(ticket)


def _measured(session: Session, runner: Runner, cancelled: Cancelled, runs: int) -> Iterator[Shown]:
    found: list[dict[str, Summary]] = []
    for number in range(1, runs + 1):
        yield Shown(line=busy(f"Measuring: run {number} of {runs}"))
        trace: list[Event] = []
        for steps in runner(session.raced, cancelled):
            trace += [step for step in steps if not isinstance(step, Waiting)]
        if not trace or trace[-1] != RaceFinished():
            yield Shown(line=info("The measurement was stopped; the numbers are those of the one run."))
            return
        found.append(summarize(trace))
    session.stream.push_summary(together(summarize(session.trace), found))
    yield Shown(session.stream.flush(), QUIET)


def together(shown: dict[str, Summary], found: Sequence[dict[str, Summary]]) -> dict[str, dict[str, Any]]:
    """The shown race's numbers, by lane, with the times of all runs: medians, and their spread in the verdict."""
    return {name: _lane(summary, [run[name] for run in found if name in run]) for name, summary in shown.items()}


def _lane(summary: Summary, runs: Sequence[Summary]) -> dict[str, Any]:
    middle = {name: _median(runs, name) for name in ("speedup", "seconds", "tokens_per_second", "first_token_seconds")}
    speedups = [run.speedup for run in runs if run.speedup is not None]
    told = speedups and not summary.standard
    spread = Spread(len(speedups), min(speedups), max(speedups)) if told else None
    median = replace(summary, **middle)
    return {**numbers(median, verdict=verdict_of(median, spread)), "runs": len(runs)}


def _median(runs: Sequence[Summary], name: str) -> float | None:
    values = [getattr(run, name) for run in runs if getattr(run, name) is not None]
    return statistics.median(values) if values else None
