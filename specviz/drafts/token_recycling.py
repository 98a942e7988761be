"""Token recycling: for each token, what the target itself thought would follow it last time (Luo et al. 2024).

Every pass of the target leaves its best successors of every token that it read, kept or rejected; they cost nothing and
draft for the next rounds. The chain takes the best one each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from specviz.drafts.strategy import NOTHING, Drafter, Proposal, Run, Seen, Strategy


@dataclass(frozen=True)
class TokenRecycling(Strategy):
    name: ClassVar[str] = "token-recycling"
    label: ClassVar[str] = "Token recycling"
    help: ClassVar[str] = "Guesses what the target itself favoured after the same token before. Costs next to nothing."
    needs: ClassVar[frozenset[str]] = frozenset({"choices"})

    def start(self, run: Run) -> Drafter:
        return _Recycler()


class _Recycler(Drafter):
    def __init__(self) -> None:
        self._best: dict[int, int] = {}  # token -> the target's favourite successor at its last occurrence
        self._last: int | None = None

    def observe(self, kept_ids: Sequence[int], seen: Seen) -> None:
        if seen.choices is not None:
            self._best.update(zip(seen.ids, seen.choices[:, 0].tolist(), strict=True))
        self._last = kept_ids[-1]

    def propose(self, k: int) -> Proposal:
        ids: list[int] = []
        token = self._best.get(self._last)
        while token is not None and len(ids) < k:
            ids.append(token)
            token = self._best.get(token)
        return Proposal(tuple(ids)) if ids else NOTHING
