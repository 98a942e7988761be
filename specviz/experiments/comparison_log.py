"""The log of a comparison of drafts: a line that says what is measured, then one line per race, written as it ends.

A comparison that was stopped continues where its log ends; a half-written last line is dropped. No torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from specviz.core.errors import InputError
from specviz.experiments.json_form import inlined, to_json
from specviz.metrics import Summary
from specviz.metrics.definitions import Place, shown_in
from specviz.traces import Reason

SCHEMA = 1
# the numbers that are kept of every lane: what the tables show, and what one may want to work out later
KEPT = tuple(metric.field for metric in shown_in(Place.BENCH))


@dataclass(frozen=True, slots=True)
class LaneRun:
    """One lane in one race, in the words of `specviz.metrics.Summary`; `numbers` are those of KEPT, by name."""

    kept_tokens: int
    finish_reason: str | None
    message: str | None
    identical_to_standard: bool | None
    first_divergence: int | None
    numbers: Mapping[str, float | None] = inlined()

    @classmethod
    def of(cls, summary: Summary) -> Self:
        own = {name: getattr(summary, name) for name in _OWN}
        return cls(**own, numbers={name: getattr(summary, name) for name in KEPT})

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        own = {name: form.get(name) for name in _OWN}
        return cls(**own, numbers={name: form.get(name) for name in KEPT})

    def failed(self) -> bool:
        return self.finish_reason == Reason.ERROR


_OWN = tuple(field.name for field in fields(LaneRun) if field.name != "numbers")


@dataclass(frozen=True, slots=True)
class LoggedRace:
    """One race on a prompt: the standard lane, and those of drafts by their names."""

    prompt: str
    repeat: int
    prompt_tokens: int
    standard: LaneRun
    lanes: Mapping[str, LaneRun]

    @classmethod
    def from_json(cls, form: Any) -> Self:
        """Raises ValueError where `form` is not the JSON of a race."""
        kinds = {"prompt": str, "repeat": int, "prompt_tokens": int, "standard": dict, "lanes": dict}
        if not isinstance(form, dict) or not all(isinstance(form.get(name), kind) for name, kind in kinds.items()):
            raise ValueError("not a race")
        lanes = {name: LaneRun.from_json(lane) for name, lane in form["lanes"].items()}
        standard = LaneRun.from_json(form["standard"])
        return cls(form["prompt"], form["repeat"], form["prompt_tokens"], standard, lanes)


class ComparisonLog:
    """`races` so far. Without a path they are kept in memory alone.

    Raises InputError where the file holds something else than a comparison with these `facts`.
    """

    def __init__(self, path: Path | None, facts: Mapping[str, Any]) -> None:
        self._path = path
        self.races: list[LoggedRace] = []
        if path is not None:
            self._open(path, {"schema": SCHEMA, **facts})

    def add(self, race: LoggedRace) -> None:
        self.races.append(race)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(to_json(race), allow_nan=False) + "\n")

    def lanes_of(self, prompt: str, repeat: int) -> frozenset[str]:
        """The lanes that have run on this prompt in this repeat."""
        races = (race for race in self.races if (race.prompt, race.repeat) == (prompt, repeat))
        return frozenset(lane for race in races for lane in race.lanes)

    def races_of(self, lanes: Sequence[str], repeats: int) -> list[LoggedRace]:
        """The races of these lanes in the first `repeats` repeats, without other lanes."""
        kept = (replace(race, lanes={name: race.lanes[name] for name in lanes if name in race.lanes})
                for race in self.races)  # fmt: skip
        return [race for race in kept if race.lanes and race.repeat < repeats]

    def _open(self, path: Path, facts: Mapping[str, Any]) -> None:
        """Changes nothing in the file before it is known to be the log of a comparison with these facts."""
        header = json.dumps(facts).encode()
        try:
            held = path.read_bytes() if path.exists() else b""
            lines = held.split(b"\n")[:-1]
            if not lines and header.startswith(held):  # a new file, or one whose first line was half written
                path.write_bytes(header + b"\n")
                return
            self.races = _read(path, lines, facts)
            path.write_bytes(b"".join(line + b"\n" for line in lines))
        except OSError as error:
            raise InputError(f"The file {path} cannot be used: {error.strerror}.") from error


def _read(path: Path, lines: Sequence[bytes], facts: Mapping[str, Any]) -> list[LoggedRace]:
    """The races in a file's whole lines. Raises InputError where the file is something else."""
    try:
        first, *rest = map(json.loads, lines)
        races = [LoggedRace.from_json(form) for form in rest]
        if not isinstance(first, dict) or "schema" not in first:
            raise ValueError("not the log of a comparison")
    except ValueError as error:
        raise InputError(f"The file {path} is not the log of a comparison of drafts; name another one.") from error
    other = [f"{name} {first.get(name)}, not {facts[name]}" for name in facts if first.get(name) != facts[name]]
    if other:
        said = f"The file {path} holds another comparison ({'; '.join(other)}); ask for the same, or name another file."
        raise InputError(said)
    return races
