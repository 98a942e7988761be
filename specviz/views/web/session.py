"""A visitor's tab: which run it wants, and what its last run left behind.

Each run has a ticket and goes on while the session wants that ticket. Stop withdraws it, and a second Run replaces it;
either way the run in progress ends within a round.
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
    """One per tab. `request` is the last one made; `raced`, `trace` and `stream` belong to the last finished race.

    `running` tells a run that has begun from one that waits; `theme` and `report_open` are the state of the tab.
    """

    def __init__(self) -> None:
        self.request: RaceRequest | None = None
        self.raced: RaceRequest | None = None
        self.trace: tuple[Event, ...] = ()
        self.stream: RaceStream | None = None
        self.running_ticket: int | None = None
        self.recordings_shown = 0
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
        """The run of this ticket no longer computes."""
        if self.running_ticket == ticket:
            self.running_ticket = None

    def show_recording(self, trace: tuple[Event, ...]) -> None:
        """A recording takes the page: a run in progress ends, and nothing more of it is shown."""
        self.stop()
        self.recordings_shown += 1
        self.trace, self.raced, self.stream = trace, None, None

    @property
    def busy(self) -> bool:
        """Whether a wanted run has not ended yet."""
        return self._wanted is not None

    def begin(self, request: RaceRequest | None = None) -> int:
        """Want this run alone, by default the last finished race again; returns its ticket."""
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
    """A change of the page: the race view's value and the status line, each None where it stays as it is."""

    view: Value | None = None
    line: Line | None = None


def run(session: Session, ticket: int | None, runner: Runner, hz: float) -> Iterator[Shown]:
    """The run of `ticket` as changes of the page. It ends when the iterator is closed or the ticket is withdrawn."""
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
    """Turn steps into changes of the page; everything shown follows from the events."""
    stream, tally, trace = RaceStream(hz=hz), Tally(), []
    line: Line | None = None
    shown = session.recordings_shown
    for steps in runner(request, stopped):
        if session.recordings_shown != shown:
            continue  # a recording has taken the page; the run only ends
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
    if session.recordings_shown == shown:
        yield Shown(line=info("Stopped before the race began."))


def _line(event: Event, line: Line | None) -> Line | None:
    """The status line after `event`."""
    match event:
        case RaceStarted(header):
            notes = [lane.note for lane in header.lanes if lane.note and _is_news(lane)]
            return info(" ".join(notes)) if notes else QUIET
        case RaceFinished(cancelled=True):
            return info("Stopped. You can replay and save what was written.")
        case _:
            return line


def _is_news(lane: LaneInfo) -> bool:
    """Whether a lane's note is about the prompt or a pair of models; other notes stand in the report alone."""
    return lane.draft_model is not None or lane.name == STANDARD
