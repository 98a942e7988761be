"""The catalogue: what the page offers, read from spaces.yaml and checked as it is read.

Models, pairs and hardware profiles are frozen records; an unknown key, a missing one, a wrong type or a name that
stands for nothing is an error that says where. Knows what fits by the numbers and names in the file; whether two
loaded models really share their tokens is checked when they are loaded. Loads no torch and no transformers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from specviz.catalogue.yaml_records import document, expect, read_yaml
from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError
from specviz.core.paths import PROJECT
from specviz.core.settings import MAX_K, MAX_NEW_TOKENS
from specviz.sources import normalise, split_form

_T = TypeVar("_T")

DEFAULT_PATH = PROJECT / "spaces.yaml"
_DTYPES = ("auto", "float32", "bfloat16", "float16")
# bytes a weight; auto may come out as float32, so the check is on the safe side
_WEIGHT_BYTES = {"auto": 4, "float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be a target or a draft. `parameters` is the number that its card gives."""

    name: str
    title: str
    source: str
    parameters: int
    tokenizer: str
    licence: str
    fallback: str | None = None
    gated: bool = False
    download_bytes: int | None = None

    def __post_init__(self) -> None:
        normalise(self.source)
        if self.fallback is not None:
            normalise(self.fallback)

    @property
    def hub_id(self) -> str | None:
        """`owner/name` where the source is the hub."""
        return self.source.removeprefix("hub:").partition("@")[0] if self.source.startswith("hub:") else None

    @property
    def revision(self) -> str | None:
        """The pinned commit or tag of a hub source."""
        return self.source.partition("@")[2] or None if self.hub_id else None


@dataclass(frozen=True, slots=True)
class Pair:
    """A target and a draft, by name, that are worth trying, and the k to start from."""

    target: str
    draft: str
    k: int


@dataclass(frozen=True, slots=True)
class ZeroGpu:
    """The seconds to ask of ZeroGPU: a start, and the passes of a run in which no draft is accepted."""

    base_seconds: float
    target_pass_seconds: float
    draft_pass_seconds: float
    cap_seconds: float

    def seconds(self, max_new_tokens: int, k: int, drafts: int = 1) -> float:
        """For the standard lane and `drafts` lanes that draft `k` tokens a round."""
        token = self.target_pass_seconds * (1 + drafts) + self.draft_pass_seconds * k * drafts
        return min(self.cap_seconds, self.base_seconds + max_new_tokens * token)


@dataclass(frozen=True, slots=True)
class Profile:
    """What a kind of machine may run, and where the page's controls stand at first."""

    name: str
    title: str
    targets: tuple[str, ...]
    target: str
    k: int
    dtype: str
    max_new_tokens: int
    memory_gb: float | None = None
    # the draft to begin with; None: the target's pair, or what needs no second model
    draft: DraftSpec | None = None
    preload: tuple[str, ...] = ()
    zero_gpu: ZeroGpu | None = None

    def weight_bytes(self, *models: Model) -> int:
        """Memory that the weights of these models take in this profile's dtype, at most."""
        return _WEIGHT_BYTES[self.dtype] * sum(model.parameters for model in models)


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a model does not fit a target. `other_tokenizer`: a strategy that takes any tokenizer could draft with it."""

    reason: str
    other_tokenizer: bool = False


@dataclass(frozen=True, slots=True)
class DraftChoice:
    """A model as a draft of some target; `misfit` is None where it fits."""

    model: Model
    misfit: Misfit | None = None

    @property
    def fits(self) -> bool:
        return self.misfit is None

    @property
    def reason(self) -> str | None:
        """Why it does not fit."""
        return self.misfit.reason if self.misfit else None


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything in spaces.yaml. `space` is the front matter's part, checked by `specviz.catalogue.front_matter`."""

    space: Mapping[str, Any]
    hardware: Mapping[str, Profile]
    models: Mapping[str, Model]
    pairs: tuple[Pair, ...] = ()
    path: Path = field(default=DEFAULT_PATH, compare=False)

    def model(self, name: str) -> Model:
        """The model of this name. Raises InputError for an unknown one."""
        return _named(self.models, name, "model")

    def model_of(self, source: str) -> Model | None:
        """The model that has this source, however it is run, if one has."""
        wanted = split_form(normalise(source))[0]
        return next((model for model in self.models.values() if normalise(model.source) == wanted), None)

    def fallback_of(self, source: str) -> str | None:
        """Another source of the same weights, for a hub that does not answer; None for a source that has none."""
        model = self.model_of(source)
        return model.fallback if model else None

    def profile(self, name: str | None = None) -> Profile:
        """The profile of this name, or the one of the machine that the environment describes."""
        return _named(self.hardware, name or detect_profile(os.environ), "hardware profile")

    def targets_for(self, profile: Profile) -> tuple[Model, ...]:
        """The targets that the profile offers, its default first, without those whose weights exceed its memory."""
        names = sorted(profile.targets, key=lambda name: name != profile.target)
        return tuple(model for model in map(self.model, names) if _fits_memory(profile, model))

    def drafts_for(
        self, target: Model, profile: Profile | None = None, *, any_tokenizer: bool = False
    ) -> tuple[DraftChoice, ...]:
        """Every other model as a draft of `target`: those that fit first, then the others with a reason.

        `any_tokenizer`: for a strategy that tells a draft's text again in the target's tokens.
        """
        others = (model for model in self.models.values() if model.name != target.name)
        choices = [DraftChoice(model, self._misfit(model, target, profile, any_tokenizer)) for model in others]
        return tuple(sorted(choices, key=lambda choice: (not choice.fits, choice.model.parameters)))

    def pairs_for(self, target: Model) -> tuple[Pair, ...]:
        return tuple(pair for pair in self.pairs if pair.target == target.name)

    def _misfit(
        self, draft: Model, target: Model, profile: Profile | None = None, any_tokenizer: bool = False
    ) -> Misfit | None:
        if draft.tokenizer != target.tokenizer and not any_tokenizer:
            return Misfit(f"other tokenizer than the target's {target.tokenizer}", other_tokenizer=True)
        if draft.parameters >= target.parameters:
            return Misfit("not smaller than the target")
        if profile and not _fits_memory(profile, target, draft):
            return Misfit(f"both together exceed the {profile.memory_gb:g} GB of {profile.title}")
        return None


def load_catalog(path: str | Path | None = None) -> Catalog:
    """The catalogue in `path`, by default the repository's. Raises InputError that says where it is wrong."""
    path = Path(path) if path else DEFAULT_PATH
    catalog = document(Catalog, read_yaml(path, f"The catalogue {path}"), path.name, path=path)
    _check(catalog)
    return catalog


def memory_bytes(gigabytes: float, what: str) -> int:
    """Raises InputError, which calls the number `what`, for an amount of memory that no machine has."""
    held = gigabytes * 1e9
    expect(1 <= held < math.inf, f"{what} must be a number of GB above 0 that a machine can have, not {gigabytes:g}")
    return int(held)


def on_space(environ: Mapping[str, str]) -> bool:
    """Whether these environment variables are those of a Hugging Face Space, whose visitors are strangers."""
    return bool(environ.get("SPACE_ID"))


def detect_profile(environ: Mapping[str, str]) -> str:
    """The profile's name for these environment variables: `local` away from a Space."""
    if not on_space(environ):
        return "local"
    if environ.get("SPACES_ZERO_GPU"):
        return "zero-a"
    accelerator = environ.get("ACCELERATOR", "none").lower()
    return next(
        (name for mark, name in (("t4", "t4-small"), ("l4", "l4x1")) if accelerator.startswith(mark)), "cpu-basic"
    )


def _fits_memory(profile: Profile, *models: Model) -> bool:
    return profile.memory_gb is None or profile.weight_bytes(*models) <= profile.memory_gb * 1e9


def _named(items: Mapping[str, _T], name: str, what: str) -> _T:
    if name not in items:
        raise InputError(f"The catalogue has no {what} '{name}'; it has {', '.join(items)}.")
    return items[name]


def _check(catalog: Catalog) -> None:
    """Every name must stand for something, every number lie in its range."""
    where = catalog.path.name
    for profile in catalog.hardware.values():
        here = f"{where}: hardware.{profile.name}"
        for name in (*profile.targets, profile.target, *profile.preload):
            expect(name in catalog.models, f"{here} names the model '{name}', which is not under models")
        expect(profile.target in profile.targets, f"{here}.target must be one of its targets")
        expect(0 <= profile.k <= MAX_K, f"{here}.k must lie between 0 and {MAX_K}")
        expect(0 < profile.max_new_tokens <= MAX_NEW_TOKENS, f"{here}.max_new_tokens must be 1 to {MAX_NEW_TOKENS}")
        if profile.memory_gb is not None:
            memory_bytes(profile.memory_gb, f"{here}.memory_gb")
        expect(profile.dtype in _DTYPES, f"{here}.dtype must be one of {', '.join(_DTYPES)}")
        for name in profile.preload:
            expect(catalog.models[name].hub_id is not None, f"{here}.preload names '{name}', which is not of the hub")
    for pair in catalog.pairs:
        for name in (pair.target, pair.draft):
            expect(name in catalog.models, f"{where}: pairs names the model '{name}', which is not under models")
        expect(0 < pair.k <= MAX_K, f"{where}: the pair {pair.target}, {pair.draft} must have a k of 1 to {MAX_K}")
        misfit = catalog._misfit(catalog.models[pair.draft], catalog.models[pair.target])
        said = f"{where}: the pair {pair.target}, {pair.draft} does not fit"
        expect(misfit is None, f"{said}: {misfit.reason}" if misfit else said)
