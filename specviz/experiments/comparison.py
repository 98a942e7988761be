"""A comparison of drafts as it is asked for: which drafts at which k, how long and how often. Loads no model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError
from specviz.core.settings import Settings
from specviz.drafting import checked, read_draft
from specviz.races.lanes import check_drafts
from specviz.races.racing import MAX_LANES

_MAX_REPEATS = 99


@dataclass(frozen=True, slots=True)
class DraftComparison:
    """`drafts`: one lane each, all with a k of their own; drafts that differ in k alone are one draft at several k.

    `settings`: shared by all lanes. `repeats`: races of each prompt; none begins once `seconds` have passed.
    `log`: the file that keeps each race as soon as it is over, and that a later comparison continues.
    """

    drafts: tuple[DraftSpec, ...]
    settings: Settings
    repeats: int
    seconds: float = math.inf
    log: Path | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.repeats, int) and not isinstance(self.repeats, bool)
        if not whole or not 1 <= self.repeats <= _MAX_REPEATS:
            raise InputError(f"The repeats must be a whole number from 1 to {_MAX_REPEATS}, not {self.repeats}.")


def compared_drafts(texts: Sequence[str], ks: Sequence[int | str]) -> tuple[DraftSpec, ...]:
    """One draft for each text that names its k, one for each of `ks` for every other. Raises SpecvizError."""
    if not texts:
        raise InputError("Name at least one draft to compare, as in --draft prompt-lookup or --draft early-exit:k=2.")
    drafts = [draft for text in texts for draft in _at_each_k(read_draft(text), ks)]
    check_drafts(drafts, most=len(drafts))
    return tuple(drafts)


def split_into_races(drafts: Sequence[DraftSpec]) -> Iterator[tuple[DraftSpec, ...]]:
    """As few races as hold the drafts beside the standard lane, of nearly equal size."""
    count = -(-len(drafts) // (MAX_LANES - 1))
    for index in range(count):
        yield tuple(drafts[index::count])


def _at_each_k(draft: DraftSpec, ks: Sequence[int | str]) -> Iterator[DraftSpec]:
    if draft.k is not None:
        yield draft
    else:
        yield from (checked(draft.with_k(k)) for k in ks)
