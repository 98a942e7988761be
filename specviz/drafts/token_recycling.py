"""Token recycling: for each token, what the target itself thought would follow it last time (Luo et al. 2024).

Every pass of the target leaves its best successors of every token that it read, kept or rejected; they cost nothing and
draft for the next rounds. The chain takes the best one each time; the tree tries several, most probable first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specviz.drafting.guess_sources import Recycling
from specviz.drafting.guesser import CHAIN, Guesser, Sourced, shape_option
from specviz.drafting.strategy import Drafter, Run, Strategy
from specviz.traces import SourceInfo

# Chances by rank to begin with; beyond the last they are as good as none.
_PRIOR = (0.30, 0.10, 0.06, 0.04, 0.03, 0.02, 0.02, 0.01)


@dataclass(frozen=True)
class TokenRecycling(Strategy):
    name: ClassVar[str] = "token-recycling"
    label: ClassVar[str] = "Token recycling"
    help: ClassVar[str] = "Guesses what the target itself favoured after the same token before. Costs next to nothing."
    needs: ClassVar[frozenset[str]] = frozenset({"choices"})

    sources: ClassVar[tuple[SourceInfo, ...]] = (Recycling.info,)

    shape: str = shape_option(CHAIN)

    def start(self, run: Run) -> Drafter:
        prior = _PRIOR[:1] if self.shape == CHAIN else _PRIOR
        return Guesser([Sourced(Recycling(len(prior)), prior, prior)], self.shape)
