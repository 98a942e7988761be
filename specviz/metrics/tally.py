"""Counts a race as it happens: events in, one at a time; a Summary of any lane out, at any moment.

Adding an event takes constant time, however long the race has run; so does asking for a Summary, except for the copy
of the lane's tokens. Everything is counted from the records: no text is parsed and no clock is read.
"""

from __future__ import annotations

from collections.abc import Iterable

from specviz.core.errors import TraceError
from specviz.metrics.lane_tally import LaneTally
from specviz.metrics.summary import Summary, summary_of
from specviz.traces import (
    STANDARD,
    Calibrated,
    Event,
    Header,
    LaneFinished,
    LaneStarted,
    RaceStarted,
    RoundDone,
    VerifyCurve,
)


def summarize(events: Iterable[Event]) -> dict[str, Summary]:
    """Every lane's Summary, in the header's order. Raises TraceError for an inconsistent stream."""
    tally = Tally()
    for event in events:
        tally.add(event)
    return tally.summaries()


class Tally:
    """The running counts of all lanes of a race."""

    def __init__(self) -> None:
        self._lanes: dict[str, LaneTally] = {}
        self._header: Header | None = None
        self._curve: VerifyCurve | None = None

    def add(self, event: Event) -> None:
        match event:
            case RaceStarted(header):
                self._header, self._curve = header, header.curve
                self._lanes = {info.name: LaneTally(info) for info in header.lanes}
            case LaneStarted(lane, prefill_seconds):
                self._lane(lane).draft_prefill_seconds = prefill_seconds
            case RoundDone(lane, round_):
                self._lane(lane).add(round_)
            case LaneFinished(lane):
                self._lane(lane).finished = event
            case Calibrated(curve):
                self._curve = curve

    def summary(self, lane: str) -> Summary:
        """The numbers of a lane so far."""
        tally = self._lane(lane)
        shared_prefill = self._header.prefill_seconds if self._header else None
        return summary_of(tally, self._lanes.get(STANDARD), shared_prefill, self._curve)

    def summaries(self) -> dict[str, Summary]:
        return {lane: self.summary(lane) for lane in self._lanes}

    def _lane(self, name: str) -> LaneTally:
        if name not in self._lanes:
            raise TraceError(f"The trace has an event of lane '{name}', which its header does not list.")
        return self._lanes[name]
