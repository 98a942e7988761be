"""How fast an engine was by what its events say, whoever reads them. Standard library only."""

from __future__ import annotations

from typing import Any

from specviz.traces import Event, LaneFinished, Reason, RoundDone


class EngineSpeed:
    """Takes the events of a race. `rounds` is how many are done."""

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

    def numbers(self) -> dict[str, Any]:
        """Kept tokens over all lanes, a second of the lanes' clocks, and a second of what their turns took."""
        return {
            "tokens": self._tokens,
            "tokens_per_second": self._tokens / self._clock_seconds if self._clock_seconds else None,
            "turn_tokens_per_second": self._tokens / self._wall_seconds if self._wall_seconds else None,
            "failure": self._failure,
        }
