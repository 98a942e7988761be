"""Corpus: text that a target wrote, kept as token ids in a file that only grows.

The first line of `text.jsonl` holds facts (what wrote the text, and how), each further line a batch of conversations.
A batch is written whole or not at all: a line that a killed run left unfinished is dropped, and the run that resumes
writes that batch again. Knows nothing of models; standard library only.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

from specviz.core.errors import InputError

FORMAT = 1
FILE = "text.jsonl"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A prompt and its reply: `ids` (n,) as the target reads them; the reply is `ids[reply_start:]`."""

    ids: tuple[int, ...]
    reply_start: int

    @property
    def prompt(self) -> tuple[int, ...]:
        return self.ids[: self.reply_start]

    @property
    def reply(self) -> tuple[int, ...]:
        return self.ids[self.reply_start :]


class Corpus:
    """The conversations in a folder: those it held when it was opened, and those added since.

    With `facts` the corpus is open for writing, to one process at a time; a new folder is made with these facts, and
    one made with others is refused. Without `facts` it is read-only, and another process may write meanwhile. Iterating
    reads the file again. `batches` counts whole lines, `tokens` reply tokens, `seconds` the time it took to write them;
    `largest_id` is -1 for an empty corpus. Raises InputError.
    """

    def __init__(self, folder: Path | str, facts: Mapping[str, Any] | None = None) -> None:
        self._path = _path(folder)
        self._file = None if facts is None else _writable(self._path)
        self.batches = self.tokens = self._count = 0
        self.seconds, self.largest_id = 0.0, -1
        self._end = 0  # bytes of whole lines
        if facts is not None and not _first_line(self._path):
            self._begin(facts)
        self.facts = _facts(self._path)
        if facts is not None and self.facts != _plain(facts):
            self.close()
            raise InputError(_differs(self._path, self.facts, _plain(facts)))
        for line in _whole_lines(self._path):
            self._measure(line)

    def add(self, conversations: Iterable[Conversation], seconds: float = 0.0) -> None:
        """Append a batch, which may be empty, and the time it took; it is on the disk when this returns."""
        if self._file is None:
            raise InputError(f"The text in {self._path.parent} was opened to be read; open it with its facts to write.")
        rows = [[each.reply_start, *each.ids] for each in conversations]
        line = _encoded({"seconds": round(seconds, 3), "conversations": rows})
        self._append(line)
        self._measure(line)

    def held_out(self) -> tuple[Conversation, ...]:
        """The first batch that is not empty: never learnt from, and the same however the corpus grows."""
        return next((batch for batch in self._read() if batch), ())

    def training(self) -> Iterator[Conversation]:
        """Every conversation that is not held out."""
        batches = (batch for batch in self._read() if batch)
        next(batches, None)
        for batch in batches:
            yield from batch

    def __iter__(self) -> Iterator[Conversation]:
        for batch in self._read():
            yield from batch

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        """Let another process write."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, facts: Mapping[str, Any]) -> None:
        self._append(_encoded({"format": FORMAT, **facts}))

    def _append(self, line: bytes) -> None:
        self._file.truncate(self._end)  # an earlier append may have failed on a full disk
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())

    def _measure(self, line: bytes) -> None:
        if self._end:  # the first line holds the facts
            batch, seconds = _batch(self._path, line)
            self.batches += 1
            self.seconds += seconds
            self._count += len(batch)
            self.tokens += sum(len(each.reply) for each in batch)
            self.largest_id = max([self.largest_id, *(max(each.ids) for each in batch)])
        self._end += len(line)

    def _read(self) -> Iterator[tuple[Conversation, ...]]:
        with open(self._path, "rb") as file:
            file.readline()
            while file.tell() < self._end:
                yield _batch(self._path, file.readline())[0]


def is_begun(folder: Path | str) -> bool:
    """Whether the line of facts is complete; a run that was killed while writing it starts again."""
    try:
        return _first_line(_path(folder)) is not None
    except (OSError, ValueError):
        return False


def _path(folder: Path | str) -> Path:
    return Path(os.path.expanduser(folder)) / FILE


def _writable(path: Path) -> BinaryIO:
    """The file, open for appending and locked against other writers."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "ab")  # the corpus closes it
    except OSError as error:
        raise InputError(f"The text cannot be written to {path} ({error.strerror}); choose another folder.") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise InputError(
            f"Another run is writing text to {path.parent}; wait for it or choose another folder."
        ) from error
    return file


def _whole_lines(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from (line for line in file if line.endswith(b"\n"))


def _first_line(path: Path) -> bytes | None:
    return next(_whole_lines(path), None)


def _facts(path: Path) -> dict[str, Any]:
    """The facts in the first line."""
    try:
        facts = json.loads(_first_line(path) or b"null")
    except OSError as error:
        raise InputError(
            f"There is no text in {path.parent} ({error.strerror}); write some with 'specviz distil'."
        ) from error
    except ValueError as error:
        raise InputError(_not_ours(path)) from error
    if not isinstance(facts, dict) or facts.pop("format", None) != FORMAT:
        raise InputError(_not_ours(path))
    return facts


def _batch(path: Path, line: bytes) -> tuple[tuple[Conversation, ...], float]:
    """(conversations, seconds) of a line."""
    try:
        value = json.loads(line)
        batch = tuple(Conversation(tuple(ids), start) for start, *ids in value["conversations"])
        seconds = float(value["seconds"])
        if all(map(_is_sound, batch)) and math.isfinite(seconds):
            return batch, seconds
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise InputError(_not_ours(path)) from error
    raise InputError(_not_ours(path))


def _is_sound(each: Conversation) -> bool:
    whole = {type(number) for number in (each.reply_start, *each.ids)} == {int}
    return whole and 0 < each.reply_start <= len(each.ids) and min(each.ids) >= 0


def _not_ours(path: Path) -> str:
    return f"{path} is not text that specviz wrote, or is damaged; choose another folder."


def _differs(path: Path, there: dict[str, Any], asked: dict[str, Any]) -> str:
    name = next(name for name in (*asked, *there) if there.get(name) != asked.get(name))
    return (
        f"The text in {path.parent} was written with {name} {there.get(name)!r}, not {asked.get(name)!r}; "
        "choose another folder, or ask for the same text."
    )


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(facts))


def _encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
