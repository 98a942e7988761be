"""Time the phases of a round on the device that runs them.

On a CPU the host's clock is the device's clock. On an accelerator the host finishes a phase long before the device has
run it, so marks are events in the device's stream, read after the round's one transfer has waited for them.
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
        """Seconds between two marks on the device, which must have passed both."""
        if self._events:
            return self._events[first].elapsed_time(self._events[second]) / 1000.0
        return self._host[second] - self._host[first]

    def wall(self) -> float:
        """Seconds on the host's clock since the first mark."""
        return time.perf_counter() - self._host[0]


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished its work; a CPU has nothing to wait for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def _event(device: torch.device) -> Any:
    module = torch.cuda if device.type == "cuda" else torch.mps.event
    return module.Event(enable_timing=True)
