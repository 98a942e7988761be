"""The harness of a benchmark: its prompts, and its models, loaded once and released when no part needs them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cached_property
from typing import Any

import torch
from torch import nn

from specviz.catalogue.model_loader import CatalogueLoader, catalogue_loader
from specviz.core.errors import ContextError, LoadError, SpecvizError
from specviz.core.settings import Settings
from specviz.decoding.engine import decode
from specviz.drafting import make_draft
from specviz.experiments.bench_plan import BenchPlan
from specviz.experiments.machine_facts import name_of
from specviz.experiments.paired import PairedComparison, Task, compare_in_turn
from specviz.experiments.prompt_set import BENCH, prompt_set
from specviz.experiments.writers import Writer, lane_writer, without_generation_config
from specviz.models import LanguageModel
from specviz.races.prompts import make_prompt
from specviz.sources import Checkpoint, Progress, load_checkpoint

_PILOT_TOKENS = 12
_ROLES = ("target", "draft")


class Needs(Enum):
    """What a part of the benchmark needs in memory: transformers' modules and the target, the target, or nothing."""

    MODULES = "modules"
    TARGET = "target"
    NOTHING = "nothing"


class Skipped(SpecvizError):
    """A part cannot run here; the message says why, and what would let it run."""


class Harness:
    """Models and prompts of one benchmark. `tell` takes a line about what is under way."""

    def __init__(self, plan: BenchPlan, tell: Callable[[str], None], progress: Progress | None = None) -> None:
        self.plan, self.tell = plan, tell
        self._progress = progress
        self._modules: dict[tuple[str, torch.dtype], nn.Module] = {}
        self._lengths: dict[str, tuple[int, int]] = {}  # prompt: tokens written, of how many asked for

    @cached_property
    def target(self) -> LanguageModel:
        return self._load(self.plan.target, self.plan.device)

    @cached_property
    def draft(self) -> LanguageModel:
        """The draft, on the target's device. Raises Skipped where the plan names none."""
        if self.plan.draft is None:
            raise Skipped("Name a draft model with --draft SOURCE to measure one.")
        return self.draft_of(self.plan.draft)

    @cached_property
    def prompts(self) -> dict[str, tuple[int, ...]]:
        """The prompts' ids by name, without those that leave no room for a reply."""
        prompts = {prompt.name: self._ids(prompt.text) for prompt in prompt_set(BENCH).prompts}
        fitting = {name: ids for name, ids in prompts.items() if ids is not None}
        if not fitting:
            raise Skipped(
                f"{self.target.name} reads {self.target.context_length} tokens: no prompt leaves room for a reply."
            )
        return fitting

    @property
    def loaded(self) -> dict[str, LanguageModel]:
        """The models that are loaded now, by role."""
        return {role: self.__dict__[role] for role in _ROLES if role in self.__dict__}

    def draft_of(self, source: str) -> LanguageModel:
        """The model of a lane's draft, on the target's device."""
        return self._load(source, str(self.target.device))

    def standard_writer(self) -> Writer:
        return lane_writer(self.target, make_draft("none", self.target), 0)

    def checkpoint(self, source: str) -> Checkpoint:
        return self._loader(self.plan.device).resolve(source, self._progress)

    def module(self, source: str, dtype: torch.dtype) -> nn.Module:
        """transformers' own module of these weights, on the target's device; kept until `release_modules`."""
        key = (source, dtype)
        if key not in self._modules:
            self.tell(f"loading {source} in {name_of(dtype)} for transformers")
            module, _ = load_checkpoint(self.checkpoint(source), dtype)
            self._modules[key] = without_generation_config(_placed(module, self.target.device))
        return self._modules[key]

    def keep(self, needs: Needs) -> None:
        """Release what a part with these needs does not use; whatever is used again is loaded again."""
        if needs is Needs.NOTHING:
            for role in self.loaded:
                del self.__dict__[role]
        if needs is not Needs.MODULES:
            self.release_modules()

    def release_modules(self) -> None:
        """Let go of transformers' modules."""
        self._modules.clear()
        gc.collect()

    def compare(self, share: float, ours: Writer, theirs: Writer) -> PairedComparison:
        """Both sides in turn on every prompt, in about `share` of the time."""
        tasks, effort = self.tasks(share, (ours, theirs)), self.plan.effort
        pairs = compare_in_turn(ours, theirs, tasks, effort.repeats, share * effort.seconds, self.tell)
        return PairedComparison.of(pairs)

    def tasks(self, share: float, sides: Sequence[Writer]) -> tuple[Task, ...]:
        """The prompts, with replies as long as `share` of the time allows these sides, but never past their own end.

        Past its end a reply repeats itself, which would favour lookups.
        """
        first = next(iter(self.prompts.values()))
        cost = sum(_seconds_per_token(side, first) for side in sides)
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

    def _load(self, source: str, device: str) -> LanguageModel:
        self.tell(f"loading {source}")
        return self._loader(device).load(source, self._progress)

    def _loader(self, device: str) -> CatalogueLoader:
        return catalogue_loader(device, self.plan.dtype)


def _seconds_per_token(side: Writer, ids: tuple[int, ...]) -> float:
    """Of a second reply: the first one warms this side up."""
    side(ids, _PILOT_TOKENS)
    reply = side(ids, _PILOT_TOKENS)
    return reply.seconds / len(reply.ids)


def _placed(module: nn.Module, device: torch.device) -> Any:
    try:
        return module.to(device)
    except torch.OutOfMemoryError as error:
        raise LoadError(f"transformers' copy of the weights does not fit into the memory of {device}.") from error
