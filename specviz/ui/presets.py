"""Prompts to begin with, read from assets/presets.yaml: what to type, what to expect of it, what else to set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

PATH = Path(__file__).resolve().parents[2] / "assets" / "presets.yaml"


@dataclass(frozen=True, slots=True)
class Preset:
    """`expect` is shown when the preset is chosen; `settings` are those of Settings that it changes."""

    name: str
    prompt: str
    expect: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@cache
def presets() -> dict[str, Preset]:
    """All presets by name, in the file's order."""
    records = yaml.safe_load(PATH.read_text(encoding="utf-8"))
    return {record["name"]: Preset(**record) for record in records}
