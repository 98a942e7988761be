"""Trace files: one event per line, written as it happens, read back as the same stream."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from specviz.core.errors import SpecvizError, TraceError
from specviz.traces.codec import event_from_json, event_to_json
from specviz.traces.records import SCHEMA_VERSION, Event, RaceStarted, RoundDone

MAX_TRACE_BYTES = 64 * 1024 * 1024


def dumps(event: Event) -> str:
    """One line of a trace file, without its newline."""
    return json.dumps(event_to_json(event), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class TraceWriter:
    """Appends events to a file as they come, so that a killed run leaves a readable trace."""

    def __init__(self, path: str | Path) -> None:
        try:
            self._file: IO[str] = open(path, "w", encoding="utf-8", errors="surrogatepass")
        except OSError as error:
            raise TraceError(f"The trace cannot be written to {path}: {error.strerror}.") from error

    def write(self, event: Event) -> None:
        self._file.write(dumps(event) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_trace(path: str | Path, events: Iterable[Event]) -> None:
    with TraceWriter(path) as writer:
        for event in events:
            writer.write(event)


def read_trace(path: str | Path) -> Iterator[Event]:
    """The events of a trace file, in order; a last line that a kill cut short is left out.

    Raises TraceError, naming the line, where the file is missing, too large, of another schema or broken.
    """
    path = Path(path)
    yield from parse_trace(_read(path), path.name)


def parse_trace(data: bytes | str, name: str = "the trace") -> Iterator[Event]:
    """The events of a trace file's content, as `read_trace` gives them; errors call it by `name`."""
    content = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(content) > MAX_TRACE_BYTES:
        raise TraceError(f"{name} is larger than {MAX_TRACE_BYTES // 1024**2} MB, the limit for a trace.")
    *lines, cut = content.split(b"\n")
    if _is_json(cut) or not lines:
        lines.append(cut)
    yield from parse_lines(lines, name)


def parse_lines(lines: Iterable[bytes | str], name: str = "the trace") -> Iterator[Event]:
    """Events from the lines of a trace; the first must be a RaceStarted of this schema."""
    started = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        event = _parse(line, f"{name}, line {number}")
        if not started and not isinstance(event, RaceStarted):
            raise TraceError(f"{name} does not begin with a RaceStarted event, so it is no trace.")
        if started and isinstance(event, RaceStarted):
            raise TraceError(f"{name}, line {number}: a second race begins here; keep each race in a file of its own.")
        started = True
        yield event
    if not started:
        raise TraceError(f"{name} holds no events.")


def _read(path: Path) -> bytes:
    """The file's bytes, unpacked where its name ends in .gz; of either, at most one more than a trace may have."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            return file.read(MAX_TRACE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"The trace {path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _parse(line: bytes | str, where: str) -> Event:
    try:
        value = json.loads(line, parse_constant=_refuse_constant)
        _check_schema(value)
        event = event_from_json(value)
        _check_tree(event)
        return event
    except RecursionError as error:
        raise TraceError(f"{where}: it is nested too deeply.") from error
    except SpecvizError as error:
        raise TraceError(f"{where}: {error}") from error
    except ValueError as error:
        raise TraceError(f"{where}: it is not JSON.") from error


def _refuse_constant(name: str) -> None:
    raise TraceError(f"{name} is not a number that a trace may hold.")


def _check_schema(value: object) -> None:
    header = value.get("header") if isinstance(value, dict) else None
    schema = header.get("schema", SCHEMA_VERSION) if isinstance(header, dict) else SCHEMA_VERSION
    if schema != SCHEMA_VERSION:
        raise TraceError(f"it has schema {schema!r}; this version reads schema {SCHEMA_VERSION}.")


def _check_tree(event: Event) -> None:
    """A drafted token follows the context (-1) or one drafted before it."""
    for index, draft in enumerate(event.round.drafts if isinstance(event, RoundDone) else ()):
        if draft.parent is not None and not -1 <= draft.parent < index:
            raise TraceError(f"drafted token {index + 1} of the round follows a token that does not come before it.")
