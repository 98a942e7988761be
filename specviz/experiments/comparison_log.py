"""The file of a contest: a line that says what is measured, then one line a race, each written as the race ends.

A contest that was stopped goes on where its file ends; a half-written last line is dropped. No torch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specviz.core.errors import InputError

SCHEMA = 1
Row = dict[str, Any]


class ContestLog:
    """`rows` of the races so far. Without a path they are kept in memory alone.

    Raises InputError where the file holds something else than a contest with these `facts`.
    """

    def __init__(self, path: Path | None, facts: dict[str, Any]) -> None:
        self._path = path
        self.rows: list[Row] = []
        if path is not None:
            self._open(path, {"schema": SCHEMA, **facts})

    def add(self, row: Row) -> None:
        self.rows.append(row)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, allow_nan=False) + "\n")

    def done(self, prompt: str, repeat: int) -> frozenset[str]:
        """The lanes whose numbers of this prompt and repeat are there."""
        rows = (row for row in self.rows if (row["prompt"], row["repeat"]) == (prompt, repeat))
        return frozenset(lane for row in rows for lane in row["lanes"])

    def of(self, lanes: Sequence[str], repeats: int) -> list[Row]:
        """The rows of these lanes in the first `repeats` repeats."""
        kept = (
            {**row, "lanes": {lane: row["lanes"][lane] for lane in lanes if lane in row["lanes"]}} for row in self.rows
        )
        return [row for row in kept if row["lanes"] and row["repeat"] < repeats]

    def _open(self, path: Path, facts: dict[str, Any]) -> None:
        """Nothing of a file is changed before it is known to be a contest's with these facts."""
        header = json.dumps(facts).encode()
        try:
            held = path.read_bytes() if path.exists() else b""
            lines = held.split(b"\n")[:-1]
            if not lines and header.startswith(held):  # a new file, or one whose first line was half written
                path.write_bytes(header + b"\n")
                return
            self.rows = _rows(path, lines, facts)
            path.write_bytes(b"".join(line + b"\n" for line in lines))
        except OSError as error:
            raise InputError(f"The file {path} cannot be used: {error.strerror}.") from error


def _rows(path: Path, lines: Sequence[bytes], facts: dict[str, Any]) -> list[Row]:
    """The races in a file's whole lines. Raises InputError where it is of something else."""
    try:
        first, *rows = map(json.loads, lines)
    except ValueError as error:
        raise InputError(_not_ours(path)) from error
    if not isinstance(first, dict) or "schema" not in first or not all(map(_is_row, rows)):
        raise InputError(_not_ours(path))
    other = [name for name in facts if first.get(name) != facts[name]]
    if other:
        raise InputError(f"The file {path} is of a contest with another {' and '.join(other)}; name another one.")
    return rows


def _is_row(row: Any) -> bool:
    kinds = (("prompt", str), ("repeat", int), ("lanes", dict), ("standard", dict))
    return isinstance(row, dict) and all(isinstance(row.get(name), kind) for name, kind in kinds)


def _not_ours(path: Path) -> str:
    return f"The file {path} is not one of a contest of drafts; name another one."
