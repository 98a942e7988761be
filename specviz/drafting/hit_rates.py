"""How often guesses of a kind were right: what was measured beforehand, and what the run has shown since."""

from __future__ import annotations

from collections.abc import Sequence


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
