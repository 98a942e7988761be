"""How much a benchmark does: how long, how often, how many tokens. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specviz.core.errors import InputError

_LONGEST_MINUTES = 120


@dataclass(frozen=True, slots=True)
class Effort:
    """`seconds`: what the whole benchmark may take, which parts share; the rest are counts of one part.

    `repeats` of a comparison (each prompt, each side); `tokens`: the longest and `least_tokens` the shortest reply
    asked for; `pass_repeats` of a pass at each width; `read_bytes`: the least that a read of weights covers;
    `starts` of a process; `page_runs`: races with the page, and as many without.
    """

    seconds: float = 720.0
    repeats: int = 3
    tokens: int = 128
    least_tokens: int = 24
    pass_repeats: int = 9
    read_bytes: int = 1_000_000_000
    starts: int = 3
    page_runs: int = 5

    def tokens_in(self, share: float, seconds_a_token: float, prompts: int) -> int:
        """How long replies may be for a comparison to fit into its share of the time.

        `seconds_a_token` is what one token costs both sides together.
        """
        affordable = share * self.seconds / (self.repeats * prompts * seconds_a_token)
        return max(self.least_tokens, min(self.tokens, int(affordable)))


FULL = Effort()
# enough to see that every part works; the numbers mean little
QUICK = Effort(60.0, 1, 12, 12, 2, 1_000_000, 2, 1)


def effort_of(minutes: float | int | str | None, quick: bool) -> Effort:
    """Raises InputError for minutes that are no number of minutes."""
    effort = QUICK if quick else FULL
    if minutes is None:
        return effort
    if isinstance(minutes, str) or not 0 < minutes <= _LONGEST_MINUTES:
        raise InputError(f"The minutes must be a number above 0 and at most {_LONGEST_MINUTES}, not {minutes}.")
    return replace(effort, seconds=60.0 * minutes)
