"""Measure again: run the last race several times, and report the medians of its times and the spread of its speed-ups.

One run proves little. Tokens and counts stay those of the race that is shown; only times are new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from specviz.core.errors import SpecvizError
from specviz.experiments.aggregate import Distribution, medians
from specviz.experiments.repeat import repeats
from specviz.metrics import Spread, Summary, summarize
from specviz.traces import Event, RaceFinished
from specviz.views.report import Report, race_report
from specviz.views.web.running import Cancelled, Runner, Waiting
from specviz.views.web.session import Session, Shown
from specviz.views.web.text_line import QUIET, busy, error, info

RUNS = 5
_TIMED = ("speedup", "seconds", "tokens_per_second", "first_token_seconds")


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
    for run in repeats(runs):
        yield Shown(line=busy(f"Measuring: run {run + 1} of {runs}"))
        trace: list[Event] = []
        for steps in runner(session.raced, cancelled):
            trace += [step for step in steps if not isinstance(step, Waiting)]
        if not trace or trace[-1] != RaceFinished():
            yield Shown(line=info("The measurement was stopped; the numbers are those of the one run."))
            return
        found.append(summarize(trace))
    session.stream.push_report(report_of_runs(session.trace, found))
    yield Shown(session.stream.flush(), QUIET)


def report_of_runs(trace: Sequence[Event], found: Sequence[dict[str, Summary]]) -> Report:
    """The report on the race that is shown, with the times of all runs: medians, and their spread in the verdict."""
    summaries, spreads = {}, {}
    for name, summary in summarize(trace).items():
        runs = [run[name] for run in found if name in run]
        summaries[name] = replace(summary, **medians(runs, _TIMED))
        speedups = Distribution.of(run.speedup for run in runs).samples
        if speedups and not summary.standard:
            spreads[name] = Spread(len(speedups), min(speedups), max(speedups))
    return race_report(trace, summaries, spreads)
