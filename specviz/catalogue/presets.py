"""Prompts to begin with, read from assets/presets.yaml: what to type, what to draft with, what to expect of it.

The file is checked as it is read: an unknown key, a wrong type or a draft that cannot be run is an error, in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from specviz.catalogue.catalog import expect, read_yaml, record
from specviz.core.errors import InputError, SpecvizError
from specviz.core.paths import ASSETS
from specviz.core.settings import SETTING_NAMES, Settings
from specviz.drafting import strategies
from specviz.races.lanes import parse_draft
from specviz.races.prompts import check_text
from specviz.races.request import draft_argument
from specviz.sources import EMBEDDED

PATH = ASSETS / "presets.yaml"


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
    return load_presets(PATH)


def load_presets(path: Path) -> dict[str, Preset]:
    """The presets in `path`. Raises InputError that says where it is wrong."""
    values = read_yaml(path, f"The presets in {path}")
    expect(isinstance(values, list) and values, f"{path.name} must be a list of at least one preset")
    made = [record(Preset, value, f"{path.name}[{index}]") for index, value in enumerate(values)]
    for preset in made:
        try:
            _check(preset)
        except SpecvizError as error:
            raise InputError(f"{path.name}, the preset '{preset.name}': {error}") from error
    named = {preset.name: preset for preset in made}
    expect(len(named) == len(made), f"{path.name} has two presets of the same name")
    return named


def _check(preset: Preset) -> None:
    """Every way must be a draft that can be run, every setting one that the page has."""
    check_text(preset.prompt)
    expect(preset.ways, "ways must name at least one draft")
    for way in preset.ways:
        kind = strategies().get(way.draft)
        expect(kind is not None and kind.drafts, f"there is no draft '{way.draft}'")
        own = {option.name for option in kind.options()}
        expect(own >= set(way.options), f"'{way.draft}' has the options {', '.join(own)}, not {', '.join(way.options)}")
        parse_draft(draft_argument(way.draft, EMBEDDED if kind.takes_model else "", way.k, tuple(way.options.items())))
    expect(not strategies()[preset.ways[-1].draft].takes_model, "the last of its ways must need no model")
    for name in preset.settings:
        expect(
            name in SETTING_NAMES and name not in ("k", "k_policy"), f"the page has no setting '{name}' for all lanes"
        )
    Settings(**preset.settings)
