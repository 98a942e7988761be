"""What a benchmark measures, and how much of it. Loads no model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specviz.core.errors import InputError
from specviz.core.settings import MAX_K
from specviz.experiments.comparison import DraftComparison
from specviz.sources import normalise

_LONGEST_MINUTES = 120


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a benchmark does.

    `seconds`: the time that all parts share. `repeats`: measurements of each prompt on each side. `tokens` and
    `least_tokens`: the longest and the shortest reply. `pass_repeats`: passes at each width. `read_bytes`: the least
    that one read of weights covers. `starts`: processes started. `page_runs`: races with the page, and as many without.
    """

    seconds: float = 720.0
    repeats: int = 3
    tokens: int = 128
    least_tokens: int = 24
    pass_repeats: int = 9
    read_bytes: int = 1_000_000_000
    starts: int = 3
    page_runs: int = 5

    def tokens_in(self, share: float, seconds_per_token: float, prompts: int) -> int:
        """The length of replies with which a comparison fits into its share of the time.

        `seconds_per_token` is the cost of one token on both sides together.
        """
        affordable = share * self.seconds / (self.repeats * prompts * seconds_per_token)
        return max(self.least_tokens, min(self.tokens, int(affordable)))


FULL = Effort()
# enough to see that every part works; the numbers mean little
QUICK = Effort(60.0, 1, 12, 12, 2, 1_000_000, 2, 1)


def effort_of(minutes: float | int | str | None, quick: bool) -> Effort:
    """Raises InputError where `minutes` is not a number of minutes."""
    effort = QUICK if quick else FULL
    if minutes is None:
        return effort
    if isinstance(minutes, str) or not 0 < minutes <= _LONGEST_MINUTES:
        raise InputError(f"The minutes must be a number above 0 and at most {_LONGEST_MINUTES}, not {minutes}.")
    return replace(effort, seconds=60.0 * minutes)


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """What is measured: sources of weights, device and dtype as `load` takes them, k of every lane that drafts.

    `comparison` is what the part `drafts` measures; its drafts name their own models and their own k.
    """

    target: str
    draft: str | None
    device: str
    dtype: str
    k: int
    effort: Effort
    comparison: DraftComparison | None = None

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or not 1 <= self.k <= MAX_K:
            raise InputError(f"k must be a whole number from 1 to {MAX_K}, not {self.k}.")
        object.__setattr__(self, "target", normalise(self.target))
        object.__setattr__(self, "draft", None if self.draft is None else normalise(self.draft))
