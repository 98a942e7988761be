"""Prompts to begin with, read from assets/presets.yaml: what to type, what to draft with, what to expect of it.

The file is checked as it is read: an unknown key, a wrong type or a draft that cannot run is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from specviz.catalogue.yaml_records import expect, read_records
from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError, SpecvizError
from specviz.core.paths import ASSETS
from specviz.core.settings import SETTING_NAMES, Settings
from specviz.drafting import checked, strategies
from specviz.races.prompts import check_text
from specviz.sources import EMBEDDED

PATH = ASSETS / "presets.yaml"


@dataclass(frozen=True, slots=True)
class PresetDraft:
    """A draft for a preset's prompt, and what to expect of it. `spec` names no source: the target decides on it."""

    spec: DraftSpec
    expect: str


@dataclass(frozen=True, slots=True)
class Preset:
    """A prompt with drafts for it, the best first and last one that needs no model; `settings` that it changes."""

    name: str
    prompt: str
    drafts: tuple[PresetDraft, ...]
    settings: Mapping[str, Any]


@cache
def presets() -> dict[str, Preset]:
    """All presets by name, in the file's order."""
    return load_presets(PATH)


def load_presets(path: Path) -> dict[str, Preset]:
    """The presets in `path`. Raises InputError that says where it is wrong."""
    return {written.name: _preset(path, written) for written in read_records(_WrittenPreset, path, "preset")}


@dataclass(frozen=True, slots=True)
class _WrittenDraft:
    """A draft as the file has it: a strategy's name, its k, and its options that are not as usual."""

    draft: str
    k: int
    expect: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _WrittenPreset:
    name: str
    prompt: str
    ways: tuple[_WrittenDraft, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


def _preset(path: Path, written: _WrittenPreset) -> Preset:
    try:
        check_text(written.prompt)
        drafts = tuple(PresetDraft(_spec(draft), draft.expect) for draft in written.ways)
        expect(drafts, "ways must name at least one draft")
        expect(not strategies()[drafts[-1].spec.strategy].takes_model, "the last of its ways must need no model")
        _check_settings(written.settings)
    except SpecvizError as error:
        raise InputError(f"{path.name}, the preset '{written.name}': {error}") from error
    return Preset(written.name, written.prompt, drafts, written.settings)


def _spec(written: _WrittenDraft) -> DraftSpec:
    """The checked spec, without a source."""
    kind = strategies().get(written.draft)
    expect(kind is not None and kind.drafts, f"there is no draft '{written.draft}'")
    own = {option.name for option in kind.options()}
    names = ", ".join(written.options)
    expect(own >= set(written.options), f"'{written.draft}' has the options {', '.join(own)}, not {names}")
    source = EMBEDDED if kind.takes_model else None  # any source will do to check the rest
    return replace(checked(DraftSpec(written.draft, source, written.options, {"k": written.k})), source=None)


def _check_settings(settings: Mapping[str, Any]) -> None:
    shared = set(SETTING_NAMES) - {"k", "k_policy"}
    for name in settings:
        expect(name in shared, f"the page has no setting '{name}' for all lanes")
    Settings(**settings)
