"""The clock of a round: how long its phases took on the device that ran them.

On a CPU the host's clock is the device's. On an accelerator a phase is over on the host long before the device has run
it, so marks are events in the device's stream; they are read after the round's one transfer has waited for them.
"""

from __future__ import annotations

import time
from typing import Any

import torch


class Stopwatch:
    """Marks in time; `between` gives the seconds from one to the next."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._host: list[float] = []
        self._events: list[Any] = []

    def mark(self) -> None:
        self._host.append(time.perf_counter())
        if self._device.type != "cpu":
            event = _event(self._device)
            event.record()
            self._events.append(event)

    def between(self, first: int, second: int) -> float:
        """Seconds between two marks, as the device ran them; the device must have passed both."""
        if self._events:
            return self._events[first].elapsed_time(self._events[second]) / 1000.0
        return self._host[second] - self._host[first]

    def wall(self) -> float:
        """Seconds of the host's clock since the first mark."""
        return time.perf_counter() - self._host[0]


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what it was given; nothing to wait for on a CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def _event(device: torch.device) -> Any:
    module = torch.cuda if device.type == "cuda" else torch.mps.event
    return module.Event(enable_timing=True)
