"""Run an iterator in its own thread and hand its items over in batches: the engine never waits for the page."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")


class _Worker:
    def __init__(self, source: Iterator[object]) -> None:
        self._source = source
        self._items: deque[object] = deque()
        self._closing = threading.Event()
        self.over = threading.Event()
        self.error: BaseException | None = None
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._run,), name="engine", daemon=True).start()

    def _run(self) -> None:
        try:
            for item in self._source:
                self._items.append(item)
                if self._closing.is_set():
                    break
        except BaseException as error:  # raised again where the items are read
            self.error = error
        finally:
            close = getattr(self._source, "close", None)
            if close is not None:
                close()
            self.over.set()

    def take(self) -> list[object]:
        """The items since the last call."""
        return [self._items.popleft() for _ in range(len(self._items))]

    def close(self) -> None:
        """End the source after its current item. Nobody waits for it: this may be the server's own thread."""
        self._closing.set()


def in_thread(source: Iterator[T], seconds: float) -> Iterator[list[T]]:
    """The items of `source`, produced in a thread under a copy of this context: a list every `seconds`, maybe empty.

    An exception of `source` is raised here, after the items before it. Closing ends the thread after its next item.
    """
    worker = _Worker(source)
    try:
        while not worker.over.wait(seconds):
            yield worker.take()
        yield worker.take()
        if worker.error is not None:
            raise worker.error
    finally:
        worker.close()
