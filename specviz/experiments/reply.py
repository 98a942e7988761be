"""A reply as it was timed: what was written, when its first tokens came, and when it was done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reply:
    """`ids` (n,) as written. `seconds`: from the call to its end; `first_seconds`: from the call to the first tokens,
    of which there were `first_tokens`, both None from a side that does not show them; `passes` of the target,
    None likewise.
    """

    ids: tuple[int, ...]
    seconds: float
    first_seconds: float | None = None
    first_tokens: int | None = None
    passes: int | None = None

    @property
    def tokens_per_second(self) -> float | None:
        """Of decoding alone: what came after the first tokens. The prompt is read before them on every side."""
        if self.first_seconds is None or self.first_tokens is None or len(self.ids) <= self.first_tokens:
            return None
        return (len(self.ids) - self.first_tokens) / (self.seconds - self.first_seconds)

    @property
    def whole_tokens_per_second(self) -> float:
        """Of the whole call, the reading of the prompt included."""
        return len(self.ids) / self.seconds

    @property
    def tau(self) -> float | None:
        """Tokens per target pass."""
        return None if self.passes is None else len(self.ids) / self.passes


# prompt ids and a number of tokens -> a reply of that many tokens, EOS or not
Writer = Callable[[Sequence[int], int], Reply]
