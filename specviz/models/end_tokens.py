"""End tokens as a generation config lists them: one id, a list of ids, or something that is no id at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class EndTokens:
    """The ids that end a run, and the listed values that name no token of this vocabulary."""

    ids: tuple[int, ...] = ()
    ignored: tuple[Any, ...] = ()

    @property
    def note(self) -> str | None:
        """A sentence about the ignored values, or None."""
        if not self.ignored:
            return None
        values = ", ".join(repr(value)[:40] for value in self.ignored[:3])
        return f"The generation config lists an end token that is no token of the model ({values}); it is ignored."


def read_end_tokens(value: Any, vocabulary: int | None = None) -> EndTokens:
    """Read an `eos_token_id` as JSON or a generation config holds it; `vocabulary` is the model's number of tokens.

    True and 1.0 are no ids, although Python counts them as numbers.
    """
    if value is None:
        return EndTokens()
    listed = list(value) if isinstance(value, list | tuple) else [value]
    ids = [each for each in listed if _is_token(each, vocabulary)]
    return EndTokens(tuple(dict.fromkeys(ids)), tuple(each for each in listed if not _is_token(each, vocabulary)))


def _is_token(value: Any, vocabulary: int | None) -> bool:
    return type(value) is int and value >= 0 and (vocabulary is None or value < vocabulary)
