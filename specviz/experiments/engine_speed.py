"""How fast an engine ran and how busy its process was otherwise. Standard library only.

These records cross from the app's process, which is measured, to the benchmark's, which measures it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specviz.traces import Event, LaneFinished, Reason, RoundDone


@dataclass(frozen=True, slots=True)
class EngineSpeed:
    """Kept tokens over all lanes; per second of the lanes' clocks, and per second of wall time in the lanes' turns.

    `failure` is the message of a lane that failed.
    """

    tokens: int
    tokens_per_second: float | None
    turn_tokens_per_second: float | None
    failure: str | None


class SpeedCounter:
    """Counts the events of a race as they come. `rounds` is how many are done."""

    def __init__(self) -> None:
        self.rounds = 0
        self._tokens = 0
        self._clock_seconds = 0.0
        self._wall_seconds = 0.0
        self._failure: str | None = None

    def add(self, event: Event) -> None:
        match event:
            case RoundDone(round=done):
                self.rounds += 1
                self._tokens += len(done.kept)
                self._clock_seconds += done.seconds
            case LaneFinished(reason=Reason.ERROR, message=message):
                self._failure = message
            case LaneFinished(wall_seconds=seconds):
                self._wall_seconds += seconds or 0.0

    def speed(self) -> EngineSpeed:
        return EngineSpeed(
            self._tokens,
            self._tokens / self._clock_seconds if self._clock_seconds else None,
            self._tokens / self._wall_seconds if self._wall_seconds else None,
            self._failure,
        )


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Processor seconds used so far by a process and by its engine, at the moment `clock` (seconds).

    `thread` identifies the engine's thread; None between races, and where the system does not tell.
    """

    thread: int | None
    engine: float = 0.0
    process: float = 0.0
    clock: float = 0.0


def cores_outside_engine(samples: Sequence[CpuTimes]) -> float | None:
    """Cores that a process used outside its engine, between the first and the last sample taken during one race.

    None where fewer than two samples show the same engine.
    """
    engine = next((sample.thread for sample in samples if sample.thread is not None), None)
    during = [sample for sample in samples if engine is not None and sample.thread == engine]
    if len(during) < 2:
        return None
    first, last = during[0], during[-1]
    spent = (last.process - first.process) - (last.engine - first.engine)
    return spent / (last.clock - first.clock)
