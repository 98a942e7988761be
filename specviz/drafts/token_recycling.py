"""Token recycling: for each token, what the target itself thought would follow it last time (Luo et al. 2024).

Every pass of the target leaves its best successors of every token that it read, kept or rejected; they cost nothing and
draft for the next rounds. The chain takes the best one each time; the tree tries several, most probable first, where
the chance of a successor is how often one of its rank was right in this run so far.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from specviz.drafts.strategy import NOTHING, Drafter, Proposal, Run, Seen, Strategy, option
from specviz.settings import MAX_K

# Chances by rank to begin with, worth so many positions of the run; beyond the last they are as good as none.
_PRIOR = (0.30, 0.10, 0.06, 0.04, 0.03, 0.02, 0.02, 0.01)
_PRIOR_WEIGHT = 10


@dataclass(frozen=True)
class TokenRecycling(Strategy):
    name: ClassVar[str] = "token-recycling"
    label: ClassVar[str] = "Token recycling"
    help: ClassVar[str] = "Guesses what the target itself favoured after the same token before. Costs next to nothing."
    needs: ClassVar[frozenset[str]] = frozenset({"choices"})

    nodes: int = option(0, 0, MAX_K, "tokens of a tree of guesses, at most k; 0 drafts a chain")

    def start(self, run: Run) -> Drafter:
        return _Recycler(self.nodes)


class _Recycler(Drafter):
    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._successors: dict[int, list[int]] = {}  # token -> the target's favourites after it, at its last occurrence
        self._last: int | None = None
        self._ranks = RankChances()

    def observe(self, kept_ids: Sequence[int], seen: Seen) -> None:
        if seen.choices is not None:
            self._learn(kept_ids, seen)
        self._last = kept_ids[-1]

    def propose(self, k: int) -> Proposal:
        if self._nodes:
            return self._tree(min(k, self._nodes))
        ids: list[int] = []
        token = self._best(self._last)
        while token is not None and len(ids) < k:
            ids.append(token)
            token = self._best(token)
        return Proposal(tuple(ids)) if ids else NOTHING

    def _best(self, token: int | None) -> int | None:
        return next(iter(self._successors.get(token, ())), None)

    def _learn(self, kept_ids: Sequence[int], seen: Seen) -> None:
        """Count which rank was right while the lists are still those that drafted, then take over the new ones."""
        before = self._last
        for token in kept_ids:
            if before in self._successors:
                self._ranks.add(self._successors[before], token)
            before = token
        self._successors.update(zip(seen.ids, seen.choices.tolist(), strict=True))

    def _tree(self, count: int) -> Proposal:
        """The `count` likeliest nodes, best first; a node's chance is its parent's times that of its rank."""
        ids: list[int] = []
        parents: list[int] = []
        waiting = list(self._children(self._last, -1, 1.0))
        heapq.heapify(waiting)
        while waiting and len(ids) < count:
            doubt, parent, _, token = heapq.heappop(waiting)
            for child in self._children(token, len(ids), -doubt):
                heapq.heappush(waiting, child)
            ids.append(token)
            parents.append(parent)
        return Proposal(tuple(ids), parents=tuple(parents)) if ids else NOTHING

    def _children(self, token: int | None, parent: int, chance: float) -> Iterator[tuple[float, int, int, int]]:
        """(minus its chance, its parent, its rank, itself) for each known successor of a token."""
        for rank, (successor, share) in enumerate(
            zip(self._successors.get(token, ()), self._ranks.chances, strict=False)
        ):
            yield -chance * share, parent, rank, successor


class RankChances:
    """How often the r-th of a list of guesses was right: a prior, and what the run has shown."""

    def __init__(self) -> None:
        self._hits = [share * _PRIOR_WEIGHT for share in _PRIOR]
        self._tries = float(_PRIOR_WEIGHT)

    def add(self, guesses: Sequence[int], truth: int) -> None:
        self._tries += 1
        if truth in guesses:
            self._hits[guesses.index(truth)] += 1

    @property
    def chances(self) -> list[float]:
        return [hits / self._tries for hits in self._hits]
