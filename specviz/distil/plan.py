"""What a distillation is asked for, and the facts of it that go on the card."""

from __future__ import annotations

import os
import platform
import shlex
from dataclasses import dataclass, field, fields
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from specviz import __version__
from specviz.core.errors import InputError
from specviz.distil.corpus import Corpus
from specviz.distil.evaluation import NEW_TOKENS
from specviz.distil.files import teacher_facts
from specviz.distil.synthesise import Recipe
from specviz.distil.teacher import Teacher
from specviz.models import LanguageModel
from specviz.models.device import device_name

_RANGES = {
    "minutes": (0, 100_000),
    "seed": (0, 2**31 - 1),
    "tokens": (1, 10**9),
    "vocabulary": (2, 10**7),
    "megabytes": (0.001, 10_000),
    "steps": (1, 10**9),
    "held_out": (1, 1000),
}
_WHOLE = ("seed", "tokens", "vocabulary", "steps", "held_out")
_FLAGS = {"megabytes": "mb", "held_out": "held-out"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What the command was asked for; `text` None keeps the text in `out`/text.

    `tokens` and `steps` None: as much text, and as many steps of a neural draft's training, as fit the time. `minutes`
    is for all of it but the evaluation; what a killed run spent on text counts. `command` goes on the card.
    """

    source: str
    kind: str
    out: Path
    minutes: float = 60.0
    seed: int = 0
    tokens: int | None = None
    text: Path | None = None
    vocabulary: int | None = None
    megabytes: float = 8.0
    steps: int | None = None
    held_out: int = 12
    device: str = "auto"
    dtype: str = "auto"
    recipe: Recipe = field(default_factory=Recipe)

    def __post_init__(self) -> None:
        for name in ("out", "text"):
            folder = getattr(self, name)
            if folder is not None:
                object.__setattr__(self, name, Path(os.path.expanduser(folder)))
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            flag = _FLAGS.get(name, name)
            if value is not None and (isinstance(value, str) or not low <= value <= high):
                raise InputError(f"--{flag} must be a number from {low:g} to {high:,g}, not {value}.")
            if name in _WHOLE and isinstance(value, float):
                raise InputError(f"--{flag} must be a whole number, not {value}.")


def training_minutes(plan: Plan, text_share: float) -> float:
    """What is left for the draft: all of it where the text is measured in tokens."""
    return plan.minutes if plan.tokens is not None else (1 - text_share) * plan.minutes


def card_facts(
    plan: Plan, teacher: Teacher, corpus: Corpus, minutes: float, steps: int | None = None
) -> dict[str, Any]:
    """Everything of the card that is known before the races; `steps` that a neural draft was trained for."""
    checkpoint, facts = teacher.checkpoint, corpus.facts
    return {
        "kind": plan.kind,
        "licence": checkpoint.licence,
        "command": _command(plan, corpus, minutes, steps),
        "target": {**teacher_facts(teacher), "source": plan.source, "revision": checkpoint.revision},
        "text": {
            "conversations": len(corpus),
            "reply_tokens": corpus.tokens,
            "held_out_conversations": len(corpus.held_out()),
            "batches": corpus.batches,
            "seconds": round(corpus.seconds),
            **{name: facts[name] for name in ("seed", "dtype", "settings")},
        },
        "versions": {
            "specviz": __version__,
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("torch", "transformers", "numpy")},
        },
    }


def _command(plan: Plan, corpus: Corpus, minutes: float, steps: int | None) -> str:
    """What makes this draft again, text included: so many tokens and steps, for a time would hang on the machine."""
    words = ["python", "-m", "specviz", "distil", "--target", plan.source, "--kind", plan.kind, "--out", str(plan.out)]
    words += ["--tokens", str(corpus.tokens), "--seed", str(plan.seed), "--minutes", f"{minutes:g}"]
    if steps is not None:
        words += ["--steps", str(steps)]
    if plan.vocabulary is not None:
        words += ["--vocabulary", str(plan.vocabulary)]
    usual = {each.name: each.default for each in fields(Plan)}
    for name in ("device", "dtype", "held_out"):
        if getattr(plan, name) != usual[name]:
            words += [f"--{_FLAGS.get(name, name)}", str(getattr(plan, name))]
    return shlex.join([*words, "--mb", f"{plan.megabytes:g}"])


def race_facts(target: LanguageModel, prompts: int) -> dict[str, Any]:
    return {
        "prompts": prompts,
        "new_tokens": NEW_TOKENS,
        "device": device_name(target.device),
        "dtype": str(target.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
    }
