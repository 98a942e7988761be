"""Guesses that cost nothing: sources that each know, from plain integers, what may follow a few tokens.

A source gives candidates with a rank, 0 the best, which says what kind of a guess it is: how long the match was, how
high in a list it stood. How often a rank is right is not the source's to know: see `hit_rates`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from specviz.drafting.ngrams import MAX_DOUBT, MAX_ORDER, NgramTable
from specviz.drafting.strategy import Seen
from specviz.traces import SourceInfo

CONTEXT = 6  # tokens that a source may look back
Guess = tuple[int, int]  # token, rank


class Source(Protocol):
    """`info` says what it is; `ranks` is the number of kinds of its guesses."""

    info: SourceInfo
    ranks: int

    def after(self, context: tuple[int, ...]) -> Iterable[Guess]:
        """Candidates to follow `context`, which ends with the last CONTEXT tokens, drafted ones among them."""

    def learn(self, context: tuple[int, ...], token: int) -> None:
        """`token` was kept after `context`."""

    def read(self, seen: Seen) -> None:
        """What the target has just said."""


class Match:
    """What followed the same tokens earlier in the text of this run, at their latest place; rank 0: CONTEXT tokens."""

    info = SourceInfo("match", "a match", "what followed the same tokens earlier in this text")
    ranks = CONTEXT

    def __init__(self) -> None:
        self._latest: dict[tuple[int, ...], int] = {}  # 1 to CONTEXT tokens -> what followed them last

    def after(self, context: tuple[int, ...]) -> Iterable[Guess]:
        for start in range(len(context)):
            token = self._latest.get(context[start:])
            if token is not None:
                yield token, CONTEXT - len(context) + start

    def learn(self, context: tuple[int, ...], token: int) -> None:
        for start in range(len(context)):
            self._latest[context[start:]] = token

    def read(self, seen: Seen) -> None:
        """Only the text counts."""


class Table:
    """What followed the last tokens in text counted before; the rank is the context's length and the doubt."""

    info = SourceInfo("table", "the table", "what most often followed the same tokens in text counted before")
    ranks = MAX_ORDER * (MAX_DOUBT + 1)

    def __init__(self, table: NgramTable) -> None:
        self._table = table

    def after(self, context: tuple[int, ...]) -> Iterable[Guess]:
        for size, tokens, doubts in self._table.known(context):
            least = (MAX_ORDER - size) * (MAX_DOUBT + 1)
            yield from zip(tokens, [least + doubt for doubt in doubts], strict=True)

    def learn(self, context: tuple[int, ...], token: int) -> None:
        """The table is shared, and stays as it was counted."""

    def read(self, seen: Seen) -> None:
        """As for `learn`."""


class Recycling:
    """What the target itself favoured after the last token when it last read it, kept or rejected (Luo et al. 2024)."""

    info = SourceInfo("recycling", "recycling", "what the target itself favoured after the same token before")

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self._favourites: dict[int, list[int]] = {}

    def after(self, context: tuple[int, ...]) -> Iterable[Guess]:
        return zip(self._favourites.get(context[-1], ()), range(self.ranks), strict=False)

    def learn(self, context: tuple[int, ...], token: int) -> None:
        """The target's own lists say more."""

    def read(self, seen: Seen) -> None:
        if seen.choices is not None:
            self._favourites.update(zip(seen.ids, seen.choices[:, : self.ranks].tolist(), strict=True))


class Alone:
    """What the target favours after the last token if it knows nothing else; stored in a table's file."""

    info = SourceInfo("alone", "the token alone", "what the target favours after this token, whatever came before")

    def __init__(self, table: NgramTable, ranks: int) -> None:
        self._table, self.ranks = table, ranks

    def after(self, context: tuple[int, ...]) -> Iterable[Guess]:
        return zip(self._table.alone_after(context[-1]), range(self.ranks), strict=False)

    def learn(self, context: tuple[int, ...], token: int) -> None:
        """It does not depend on the text."""

    def read(self, seen: Seen) -> None:
        """As for `learn`."""
