"""Guesser: drafts free guesses, as a chain of the likeliest or as a tree grown best first.

After a few tokens each source in turn gives its candidates; the first to give a token owns it. A candidate's chance is
how often guesses of its kind (source, rank, whether another source gives the same token) were right; a node's chance is
its parent's times its own. So the k nodes drafted are those that the text will most probably meet.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specviz.drafting.guess_sources import CONTEXT, Source
from specviz.drafting.strategy import NOTHING, Drafter, Proposal, Seen, option


class HitRates:
    """Chances by kind. `prior` (kinds,): the chances to begin with, together worth `weight` tries of each kind."""

    def __init__(self, prior: Sequence[float], weight: float) -> None:
        self._hits = [share * weight for share in prior]
        self._tries = [weight] * len(prior)
        self.chances = list(prior)

    def add(self, kind: int, hit: bool) -> None:
        self._hits[kind] += hit
        self._tries[kind] += 1
        self.chances[kind] = self._hits[kind] / self._tries[kind]


CHAIN, TREE = "chain", "tree"
SHAPES = (CHAIN, TREE)


def shape_option(usual: str) -> Any:
    """The option that chooses between a chain and a tree."""
    return option(usual, help="k tokens in a row, or a tree of k tokens", choices=SHAPES, tree=TREE)


PRIOR_WEIGHT = 30.0  # guesses of a kind that its prior is worth


@dataclass(frozen=True, slots=True)
class Sourced:
    """A source with the chances of its guesses by rank, `alone` where no other source gives the same token."""

    source: Source
    alone: tuple[float, ...]
    seconded: tuple[float, ...]


class Guesser(Drafter):
    """State of one run: what the sources have read, and how often each kind of guess was right."""

    def __init__(self, sourced: Sequence[Sourced], shape: str) -> None:
        self._sources = [each.source for each in sourced]
        self._tree = shape == TREE
        prior = [chance for each in sourced for pair in zip(each.alone, each.seconded, strict=True) for chance in pair]
        self._rates = HitRates(prior, PRIOR_WEIGHT)
        self._first = [0]  # a source's first kind; a rank has two, even where no other source gives the token
        for each in sourced:
            self._first.append(self._first[-1] + 2 * len(each.alone))
        self._undecided = len(prior) > 2  # else there is but one guess, and nothing to weigh
        self._context: tuple[int, ...] = ()
        self._names = [each.source.info.name for each in sourced]

    def propose(self, k: int) -> Proposal:
        if not self._context or not k:
            return NOTHING
        return self._best_first(k) if self._tree else self._likeliest(k)

    def observe(self, kept_ids: Sequence[int], seen: Seen) -> None:
        """Count what was right while the sources are still those that drafted, then let them read on."""
        if self._context and self._undecided:
            self._judge(kept_ids)
        for token in kept_ids:
            if self._context:
                for source in self._sources:
                    source.learn(self._context, token)
            self._context = _onward(self._context, token)
        for source in self._sources:
            source.read(seen)

    def _judge(self, kept_ids: Sequence[int]) -> None:
        context = self._context
        for token in kept_ids:
            for guess, (_, kind) in self._guesses(context).items():
                self._rates.add(kind, guess == token)
            context = _onward(context, token)

    def _guesses(self, context: tuple[int, ...]) -> dict[int, list[int]]:
        """{token: [number of the source that owns it, its kind]}, in the order of the sources."""
        found: dict[int, list[int]] = {}
        for number, source in enumerate(self._sources):
            first = self._first[number]
            for token, rank in source.after(context):
                owner = found.get(token)
                if owner is None:
                    found[token] = [number, first + 2 * rank]
                elif owner[0] != number:
                    owner[1] |= 1
        return found

    def _likeliest(self, k: int) -> Proposal:
        chances, context = self._rates.chances, self._context
        ids, sources = [], []
        while len(ids) < k:
            guesses = self._guesses(context)
            if not guesses:
                break
            token = max(guesses, key=lambda guess: chances[guesses[guess][1]])
            ids.append(token)
            sources.append(self._names[guesses[token][0]])
            context = _onward(context, token)
        return Proposal(tuple(ids), sources=tuple(sources)) if ids else NOTHING

    def _best_first(self, k: int) -> Proposal:
        ids: list[int] = []
        parents: list[int] = []
        sources: list[str] = []
        waiting: list[tuple[float, int, int, int, int, tuple[int, ...]]] = []
        self._offer(waiting, self._context, -1, 1.0)
        while waiting and len(ids) < k:
            doubt, parent, _, token, number, context = heapq.heappop(waiting)
            self._offer(waiting, _onward(context, token), len(ids), -doubt)
            ids.append(token)
            parents.append(parent)
            sources.append(self._names[number])
        return Proposal(tuple(ids), parents=tuple(parents), sources=tuple(sources)) if ids else NOTHING

    def _offer(self, waiting: list, context: tuple[int, ...], parent: int, chance: float) -> None:
        """Add the children of a node: minus its chance, its parent, its place, itself, its source, what it follows."""
        chances = self._rates.chances
        for place, (token, (number, kind)) in enumerate(self._guesses(context).items()):
            heapq.heappush(waiting, (-chance * chances[kind], parent, place, token, number, context))


def _onward(context: tuple[int, ...], token: int) -> tuple[int, ...]:
    """The context after one more token."""
    return (*context[1 - CONTEXT :], token) if len(context) >= CONTEXT else (*context, token)
