"""The twelve prompts on which drafts are compared, in three groups. Fixed, and for measuring only. No torch."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import yaml

GROUPS = ("predictable", "chat", "surprising")
_PATH = Path(__file__).with_name("comparison_prompts.yaml")


@dataclass(frozen=True, slots=True)
class TestPrompt:
    """`group` is one of GROUPS."""

    __test__ = False  # its name begins as pytest's classes do

    name: str
    group: str
    prompt: str


def twelve() -> tuple[TestPrompt, ...]:
    return tuple(TestPrompt(**entry) for entry in yaml.safe_load(_PATH.read_text("utf-8")))


def fingerprint() -> str:
    """Of the prompts' texts: results of other prompts are not mixed with these."""
    texts = "\n".join(each.prompt for each in twelve())
    return hashlib.sha256(texts.encode()).hexdigest()[:16]
