"""A queue for the device: first come, first served, and everyone can be told their place."""

from __future__ import annotations

import threading
from collections import deque


class DeviceQueue:
    """One race at a time: the first place in the queue has the device. A place is an object that `join` returned."""

    def __init__(self) -> None:
        self._places: deque[object] = deque()
        self._moved = threading.Condition()

    def join(self) -> object:
        """Take the last place."""
        place = object()
        with self._moved:
            self._places.append(place)
        return place

    def ahead(self, place: object) -> int:
        """The number of places before this one."""
        with self._moved:
            return self._places.index(place)

    def wait(self, place: object, seconds: float) -> bool:
        """Whether it is this place's turn, after waiting at most `seconds`."""
        with self._moved:
            return self._moved.wait_for(lambda: self._places[0] is place, seconds)

    def leave(self, place: object) -> None:
        """Leave the queue, from the device or while waiting."""
        with self._moved:
            self._places.remove(place)
            self._moved.notify_all()
