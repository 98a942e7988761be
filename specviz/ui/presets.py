"""Prompts to begin with, read from assets/presets.yaml: what to type, what to draft with, what to expect of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

PATH = Path(__file__).resolve().parents[2] / "assets" / "presets.yaml"


@dataclass(frozen=True, slots=True)
class Way:
    """A draft for a preset's prompt: a strategy's name, its k and what of its options is not as usual.

    `expect`: what there is to see, which is shown with it.
    """

    draft: str
    k: int
    expect: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preset:
    """A prompt with the ways to draft it, the best first and the last one for every target.

    `settings` are those of Settings that it changes.
    """

    name: str
    prompt: str
    ways: tuple[Way, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


@cache
def presets() -> dict[str, Preset]:
    """All presets by name, in the file's order."""
    records = yaml.safe_load(PATH.read_text(encoding="utf-8"))
    made = (Preset(**{**record, "ways": tuple(Way(**way) for way in record["ways"])}) for record in records)
    return {preset.name: preset for preset in made}
