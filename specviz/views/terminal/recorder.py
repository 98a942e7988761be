"""Writes the trace file of a race as it happens; an error of the file is a sentence that names it."""

from __future__ import annotations

from pathlib import Path

from specviz.core.errors import TraceError
from specviz.traces import Event, TraceWriter


class Recorder:
    """Appends each event to `path`. The file is tried at once, but emptied only when the first event comes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: TraceWriter | None = None
        self._try()

    def add(self, event: Event) -> None:
        try:
            if self._writer is None:
                self._writer = TraceWriter(self._path)
            self._writer.write(event)
        except OSError as error:
            raise self._error(error) from error

    def close(self) -> None:
        try:
            if self._writer is not None:
                self._writer.close()
        except OSError as error:
            raise self._error(error) from error

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self.close()
        except TraceError:
            if kind is None:  # the error in progress says more
                raise

    def _try(self) -> None:
        """Find out, before a model is loaded, whether the file can be written; its content stays."""
        new = not self._path.exists()
        try:
            self._path.open("ab").close()
            if new:
                self._path.unlink()
        except OSError as error:
            raise self._error(error) from error

    def _error(self, error: OSError) -> TraceError:
        return TraceError(f"The trace cannot be written to {self._path}: {error.strerror}.")
