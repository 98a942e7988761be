"""The gallery: runs recorded with real models, as trace files in assets/gallery, described in assets/gallery.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from specviz.catalogue.yaml_records import read_records
from specviz.core.draft_spec import DraftSpec
from specviz.core.paths import ASSETS
from specviz.traces import Event, read_trace

_INDEX = ASSETS / "gallery.yaml"


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded run and how it was made; `what` tells what to look for."""

    name: str
    title: str
    what: str
    target: str
    drafts: tuple[DraftSpec, ...]
    prompt: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return ASSETS / "gallery" / f"{self.name}.jsonl.gz"

    def events(self) -> Iterator[Event]:
        return read_trace(self.path)


@cache
def recordings() -> dict[str, Recording]:
    """All recordings by name, in the index's order; the first one is shown first."""
    return {recording.name: recording for recording in read_records(Recording, _INDEX, "recording")}
