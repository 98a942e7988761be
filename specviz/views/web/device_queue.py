"""Who is at the device and who waits for it: first come, first served, and everybody can be told their place."""

from __future__ import annotations

import threading
from collections import deque


class DeviceQueue:
    """One at a time. A place is any object that `join` gave out; whoever is first in line has the device."""

    def __init__(self) -> None:
        self._places: deque[object] = deque()
        self._moved = threading.Condition()

    def join(self) -> object:
        """Stand at the end of the line."""
        place = object()
        with self._moved:
            self._places.append(place)
        return place

    def ahead(self, place: object) -> int:
        """How many come before this place."""
        with self._moved:
            return self._places.index(place)

    def wait(self, place: object, seconds: float) -> bool:
        """Whether it is this place's turn, after waiting at most `seconds`."""
        with self._moved:
            return self._moved.wait_for(lambda: self._places[0] is place, seconds)

    def leave(self, place: object) -> None:
        """Let go of the device, or give the wait up."""
        with self._moved:
            self._places.remove(place)
            self._moved.notify_all()
