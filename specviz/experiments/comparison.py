"""A contest of drafts as it is asked for: which lanes, how long, how often. Loads no model.

A draft without a k of its own runs at every k of the contest; drafts that differ in k alone are one draft at several k.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError
from specviz.core.settings import Settings
from specviz.drafting import checked, read_draft
from specviz.races.racing import MAX_LANES

_MAX_REPEATS = 99


@dataclass(frozen=True, slots=True)
class Entry:
    """A lane of the contest: `draft` is its name without k."""

    argument: DraftSpec
    draft: str
    k: int

    @property
    def lane(self) -> str:
        return self.argument.spell()


@dataclass(frozen=True, slots=True)
class Contest:
    """`settings`: what all lanes share; `repeats` of each prompt; no race begins once `seconds` have passed.

    `log`: the file that keeps every race as soon as it is over, and that a later call goes on with.
    """

    entries: tuple[Entry, ...]
    settings: Settings
    repeats: int
    seconds: float = math.inf
    log: Path | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.repeats, int) and not isinstance(self.repeats, bool)
        if not whole or not 1 <= self.repeats <= _MAX_REPEATS:
            raise InputError(f"The repeats must be a whole number from 1 to {_MAX_REPEATS}, not {self.repeats}.")

    @property
    def facts(self) -> dict[str, Any]:
        """For a result: what was asked for."""
        asked = {"drafts": [entry.lane for entry in self.entries], "repeats": self.repeats}
        return {**asked, "tokens": self.settings.max_new_tokens, "temperature": self.settings.temperature}


def make_entries(texts: Sequence[str], ks: Sequence[int | str]) -> tuple[Entry, ...]:
    """One lane for each draft that names its k, one for each of `ks` for every other. Raises SpecvizError in words."""
    if not texts:
        raise InputError("Name at least one draft to compare, as in --draft prompt-lookup or --draft early-exit:k=2.")
    entries = [entry for text in texts for entry in _entries(text, ks)]
    lanes = [entry.lane for entry in entries]
    twice = next((lane for lane in lanes if lanes.count(lane) > 1), None)
    if twice is not None:
        raise InputError(f"The draft '{twice}' is given twice; leave one out, or give it another k or option.")
    return tuple(entries)


def heats(entries: Sequence[Entry]) -> Iterator[tuple[Entry, ...]]:
    """The entries in races of nearly equal size, as few as hold them beside the standard lane."""
    count = -(-len(entries) // (MAX_LANES - 1))
    for index in range(count):
        yield tuple(entries[index::count])


def _entries(text: str, ks: Sequence[int | str]) -> Iterator[Entry]:
    draft = read_draft(text)
    for k in ks if draft.k is None else [draft.k]:
        own = checked(draft.with_k(k))
        yield Entry(own, own.without_k.spell(), own.k)
