"""Tracks a race: its header, which lanes still run, and how it would end if it ended now."""

from __future__ import annotations

from collections.abc import Iterator

from specviz.traces import Event, Header, LaneFinished, RaceFinished, RaceStarted, Reason


class Stage:
    """Takes events one at a time. `cancelled` and `failed` are known once they have happened."""

    def __init__(self) -> None:
        self.header: Header | None = None
        self.running: list[str] = []
        self.finished: list[LaneFinished] = []
        self.over = False
        self.cancelled = False

    def add(self, event: Event) -> None:
        match event:
            case RaceStarted(header):
                self.header, self.finished, self.over = header, [], False
                self.running = [lane.name for lane in header.lanes]
            case LaneFinished(lane):
                self.running = [name for name in self.running if name != lane]
                self.finished.append(event)
            case RaceFinished(cancelled):
                self.over, self.cancelled = True, cancelled

    @property
    def failed(self) -> list[LaneFinished]:
        """The lanes that ended by an error."""
        return [end for end in self.finished if end.reason is Reason.ERROR]

    def endings(self) -> Iterator[Event]:
        """The events that close a race interrupted here; none where it has not begun or is over."""
        if self.header is None or self.over:
            return
        for name in tuple(self.running):
            yield LaneFinished(name, Reason.CANCELLED, None)
        yield RaceFinished(cancelled=True)
