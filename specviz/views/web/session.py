"""A visitor's tab: which run it wants, and what its last run left behind.

A run has a ticket; it goes on for as long as the session wants that ticket. Stop takes the wish back, a second Run
replaces it: either way the run in progress ends within a round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specviz.core.errors import SpecvizError
from specviz.metrics import Tally
from specviz.races.racing import STANDARD
from specviz.races.request import RaceRequest
from specviz.traces import Event, LaneInfo, RaceFinished, RaceStarted
from specviz.views.report import opening_report, race_report
from specviz.views.web.race_view.race_stream import RaceStream, Value
from specviz.views.web.running import Runner, Waiting
from specviz.views.web.text_line import QUIET, Line, busy, error, info


class Session:
    """One for each tab. `request` is the last one made; `raced`, `trace`, `stream` belong to the last finished race.

    `running` tells a run that has begun from one that waits in line; `theme` and `report_open`: what the tab looks at.
    """

    def __init__(self) -> None:
        self.request: RaceRequest | None = None
        self.raced: RaceRequest | None = None
        self.trace: tuple[Event, ...] = ()
        self.stream: RaceStream | None = None
        self.running_ticket: int | None = None
        self.looks = 0  # how often a recording took the page
        self.theme = "light"
        self.report_open = False
        self._tickets = 0
        self._wanted: int | None = None

    def __deepcopy__(self, memo: object) -> Session:
        """Gradio copies a state's value for each visitor: everybody starts afresh."""
        return Session()

    @property
    def running(self) -> bool:
        return self.running_ticket is not None

    def left(self, ticket: int | None) -> None:
        """The run of this ticket computes no more; another may."""
        if self.running_ticket == ticket:
            self.running_ticket = None

    def look_at(self, trace: tuple[Event, ...]) -> None:
        """A recording takes the page: a run in progress ends, and what it still says is not shown."""
        self.stop()
        self.looks += 1
        self.trace, self.raced, self.stream = trace, None, None

    @property
    def busy(self) -> bool:
        """Whether a run is wanted that has not ended."""
        return self._wanted is not None

    def begin(self, request: RaceRequest | None = None) -> int:
        """Want this run, or the last finished race again, and no other; returns its ticket."""
        self._tickets += 1
        self.request, self._wanted = request or self.raced, self._tickets
        return self._tickets

    def wants(self, ticket: int | None) -> bool:
        return ticket is not None and ticket == self._wanted

    def stop(self) -> None:
        self._wanted = None

    def end(self, ticket: int) -> None:
        """The run of this ticket is over."""
        if self._wanted == ticket:
            self._wanted = None


@dataclass(frozen=True, slots=True)
class Shown:
    """What changes on the page: the race view's value and the status line, each None where it stays."""

    view: Value | None = None
    line: Line | None = None


def run(session: Session, ticket: int | None, runner: Runner, hz: float) -> Iterator[Shown]:
    """The run of `ticket` as changes of the page. Closing the iterator, or the session's change of mind, ends it."""
    request = session.request
    if request is None or not session.wants(ticket):
        return
    stopped = _Stopped(session, ticket)
    session.running_ticket = ticket
    try:
        yield from _follow(session, request, runner, stopped, hz)
    except SpecvizError as refusal:
        yield Shown(line=error(str(refusal)))
    finally:
        session.left(ticket)
        session.end(ticket)


class _Stopped:
    """The question an engine asks before each round: is this run still wanted?"""

    def __init__(self, session: Session, ticket: int) -> None:
        self._session, self._ticket = session, ticket

    def __call__(self) -> bool:
        return not self._session.wants(self._ticket)


def _follow(session: Session, request: RaceRequest, runner: Runner, stopped: _Stopped, hz: float) -> Iterator[Shown]:
    """Steps to what is shown: nothing is worked out here that the events do not say."""
    stream, tally, trace = RaceStream(hz=hz), Tally(), []
    line: Line | None = None
    looks = session.looks
    for steps in runner(request, stopped):
        if session.looks != looks:
            continue  # a recording is being looked at; the run only ends
        for step in steps:
            if isinstance(step, Waiting):
                line = busy(step.sentence)
                continue
            tally.add(step)
            trace.append(step)
            stream.push(step)
            if isinstance(step, RaceStarted):
                stream.push_report(opening_report(step.header))
            line = _line(step, line)
        if trace and isinstance(trace[-1], RaceFinished):
            stream.push_report(race_report(trace, tally.summaries()))
            session.raced, session.trace, session.stream = request, tuple(trace), stream
            yield Shown(stream.flush(), line)
            return
        value = stream.value()
        if value is not None or line is not None:
            yield Shown(value, line)
            line = None
    if session.looks == looks:
        yield Shown(line=info("Stopped before the race began."))


def _line(event: Event, line: Line | None) -> Line | None:
    """What the status line says once `event` has happened."""
    match event:
        case RaceStarted(header):
            notes = [lane.note for lane in header.lanes if lane.note and _is_news(lane)]
            return info(" ".join(notes)) if notes else QUIET
        case RaceFinished(cancelled=True):
            return info("Stopped. What was written so far can be replayed and saved.")
        case _:
            return line


def _is_news(lane: LaneInfo) -> bool:
    """Whether a lane's note is about the prompt or a pair of models; what a free draft knows stands with the run."""
    return lane.draft_model is not None or lane.name == STANDARD
