"""What the parts of a benchmark share: the prompts, and models, loaded once and let go of when no part needs them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import nn

from specviz.catalogue.catalog import load_catalog
from specviz.core.errors import ContextError, InputError, LoadError, SpecvizError
from specviz.core.settings import MAX_K, Settings
from specviz.decoding.engine import decode
from specviz.drafting import make_draft
from specviz.experiments.comparison import Contest
from specviz.experiments.effort import Effort
from specviz.experiments.lane_writer import lane_writer
from specviz.experiments.paired import Task, duel, judged
from specviz.experiments.reply import Writer
from specviz.experiments.transformers_generate import make_bare
from specviz.models import LanguageModel
from specviz.races.prompts import make_prompt
from specviz.sources import Checkpoint, Progress, load_checkpoint, normalise, resolve
from specviz.sources.loader import load

_PROMPTS = Path(__file__).with_name("bench_prompts.yaml")
_PILOT_TOKENS = 12
_ROLES = ("target", "draft")


class Skipped(SpecvizError):
    """A part that cannot run here; the message says why, and what would let it run."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: sources, device and dtype as `load` takes them, k of every lane that drafts, and how much.

    `contest`: the drafts that the part `drafts` compares; they name their own models and their own k.
    """

    target: str
    draft: str | None
    device: str
    dtype: str
    k: int
    effort: Effort
    contest: Contest | None = None

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or not 1 <= self.k <= MAX_K:
            raise InputError(f"k must be a whole number from 1 to {MAX_K}, not {self.k}.")
        object.__setattr__(self, "target", normalise(self.target))
        object.__setattr__(self, "draft", None if self.draft is None else normalise(self.draft))


class Bed:
    """Models and prompts of one benchmark. `tell` takes a line about what is under way."""

    def __init__(self, plan: Plan, tell: Callable[[str], None], progress: Progress | None = None) -> None:
        self.plan, self.tell = plan, tell
        self._progress = progress
        self._modules: dict[tuple[str, torch.dtype], nn.Module] = {}
        self._lengths: dict[str, tuple[int, int]] = {}  # prompt: tokens written, of how many asked for

    @cached_property
    def target(self) -> LanguageModel:
        return self._load(self.plan.target, self.plan.device, self.plan.dtype)

    @cached_property
    def draft(self) -> LanguageModel:
        """The draft, on the target's device. Raises Skipped where none was named."""
        if self.plan.draft is None:
            raise Skipped("Name a draft model with --draft SOURCE to measure one.")
        return self.draft_of(self.plan.draft)

    @cached_property
    def prompts(self) -> dict[str, tuple[int, ...]]:
        """The prompts' ids by name; one that leaves no room for a reply is left out."""
        texts = {entry["name"]: entry["prompt"] for entry in yaml.safe_load(_PROMPTS.read_text("utf-8"))}
        prompts = {name: self._ids(text) for name, text in texts.items()}
        fitting = {name: ids for name, ids in prompts.items() if ids is not None}
        if not fitting:
            raise Skipped(
                f"{self.target.name} reads {self.target.context_length} tokens: no prompt leaves a reply room."
            )
        return fitting

    @property
    def loaded(self) -> dict[str, LanguageModel]:
        """The models that are loaded now, by role."""
        return {role: self.__dict__[role] for role in _ROLES if role in self.__dict__}

    def draft_of(self, source: str) -> LanguageModel:
        """The model of a lane's draft, on the target's device."""
        return self._load(source, str(self.target.device), self.plan.dtype)

    def standard_writer(self) -> Writer:
        return lane_writer(self.target, make_draft("none", self.target), 0)

    def checkpoint(self, source: str) -> Checkpoint:
        return resolve(source, self._progress, fallback=_fallback(source))

    def module(self, source: str, dtype: torch.dtype) -> nn.Module:
        """transformers' own module of these weights, on the target's device; kept until `release_modules`."""
        key = (source, dtype)
        if key not in self._modules:
            self.tell(f"loading {source} in {name_of(dtype)} for transformers")
            module, _ = load_checkpoint(self.checkpoint(source), dtype)
            self._modules[key] = make_bare(_placed(module, self.target.device))
        return self._modules[key]

    def release_modules(self) -> None:
        """Let go of transformers' modules."""
        self._modules.clear()
        gc.collect()

    def release_models(self) -> None:
        """Let go of everything loaded; what is used again is loaded again."""
        for role in self.loaded:
            del self.__dict__[role]
        self.release_modules()

    def compare(self, share: float, ours: Writer, theirs: Writer) -> dict[str, Any]:
        """Both sides in turn on every prompt, in about `share` of the time."""
        tasks, effort = self.tasks(share, (ours, theirs)), self.plan.effort
        return judged(duel(ours, theirs, tasks, effort.repeats, share * effort.seconds, self.tell))

    def tasks(self, share: float, sides: Sequence[Writer]) -> tuple[Task, ...]:
        """The prompts, with replies as long as `share` of the time allows these sides, and never past their own end.

        Past its end a reply repeats itself, which would flatter whoever copies.
        """
        first = next(iter(self.prompts.values()))
        cost = sum(_seconds_a_token(side, first) for side in sides)
        limit = self.plan.effort.tokens_in(share, cost, len(self.prompts))
        return tuple(Task(name, ids, self._length(name, limit)) for name, ids in self.prompts.items())

    def _length(self, name: str, limit: int) -> int:
        """How many tokens standard decoding writes, up to `limit`; enough that both sides decode after their first."""
        written, asked = self._lengths.get(name, (0, 0))
        if written == asked < limit:  # not yet known whether it ends before the limit
            settings = Settings(k=0, max_new_tokens=limit, telemetry=False)
            rounds = decode(self.target, make_draft("none", self.target), self.prompts[name], settings)
            written = sum(len(round_.kept) for round_ in rounds)
            self._lengths[name] = (written, limit)
        return max(self.plan.k + 2, min(written, limit))

    def _ids(self, text: str) -> tuple[int, ...] | None:
        try:
            ids = make_prompt(self.target, text).ids
        except ContextError:
            return None
        longest = max(self.plan.effort.tokens, self.plan.k + 2) + self.plan.k
        return ids if len(ids) + longest <= self.target.context_length else None

    def _load(self, source: str, device: str, dtype: str) -> LanguageModel:
        self.tell(f"loading {source}")
        return load(source, device, dtype, progress=self._progress, fallback=_fallback(source))


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _seconds_a_token(side: Writer, ids: tuple[int, ...]) -> float:
    """From a second reply: the first one warms this side up."""
    side(ids, _PILOT_TOKENS)
    reply = side(ids, _PILOT_TOKENS)
    return reply.seconds / len(reply.ids)


def _placed(module: nn.Module, device: torch.device) -> Any:
    try:
        return module.to(device)
    except torch.OutOfMemoryError as error:
        raise LoadError(f"transformers' copy of the weights does not fit into the memory of {device}.") from error


def _fallback(source: str) -> str | None:
    known = load_catalog().model_of(source)
    return known.fallback if known else None
