"""Fixed sets of prompts, for measuring only: `BENCH` times replies, `COMPARISON` compares drafts. No torch.

No draft, table or preset is ever made from these prompts or chosen by them: that would bias every measurement.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

BENCH, COMPARISON = "bench", "comparison"


@dataclass(frozen=True, slots=True)
class FixedPrompt:
    """`text` is the prompt itself; `group` says how well it suits speculation, where the set is grouped."""

    name: str
    text: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class PromptSet:
    name: str
    prompts: tuple[FixedPrompt, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of the prompts, in their order."""
        return tuple(dict.fromkeys(prompt.group for prompt in self.prompts))

    def names_in(self, group: str) -> tuple[str, ...]:
        return tuple(prompt.name for prompt in self.prompts if prompt.group == group)

    @property
    def fingerprint(self) -> str:
        """Identifies the texts: measurements on different texts must not be mixed."""
        texts = "\n".join(prompt.text for prompt in self.prompts)
        return hashlib.sha256(texts.encode()).hexdigest()[:16]


@cache
def prompt_set(name: str) -> PromptSet:
    """The set named BENCH or COMPARISON."""
    entries = yaml.safe_load(Path(__file__).with_name(f"{name}_prompts.yaml").read_text("utf-8"))
    prompts = (FixedPrompt(each["name"], each["prompt"], each.get("group", "")) for each in entries)
    return PromptSet(name, tuple(prompts))
