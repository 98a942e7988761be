"""The gallery: runs recorded with real models, as trace files in assets/gallery with their index beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from specviz.core.paths import ASSETS
from specviz.traces import Event, read_trace


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded run and how it was made: `drafts` as for the command line, `what` says what to look for."""

    name: str
    title: str
    what: str
    target: str
    drafts: tuple[str, ...]
    prompt: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return ASSETS / "gallery" / f"{self.name}.jsonl.gz"

    def events(self) -> Iterator[Event]:
        return read_trace(self.path)


@cache
def recordings() -> dict[str, Recording]:
    """All recordings by name, in the index's order; the first one is shown first."""
    records = yaml.safe_load((ASSETS / "gallery.yaml").read_text(encoding="utf-8"))
    made = (Recording(**{**record, "drafts": tuple(record["drafts"])}) for record in records)
    return {recording.name: recording for recording in made}
