"""What one round adds to the counts; chains, trees and served rounds alike.

`drafted` and the costs count nodes. A position is a depth: in a chain the two are the same. So in a tree `tested`
counts depths at which the target decided among siblings, not siblings, and alpha = accepted / tested is the chance
that one of them was right. Needs verdicts and kinds only, so it also holds where the rejected tokens are not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specviz.core.settings import MAX_K
from specviz.traces import DraftToken, Kind, Round, Verdict


@dataclass(frozen=True, slots=True)
class RoundCounts:
    """`positions`: the depth that was drafted. `overlaps`: sum(min(p, q)) of each tested position where known."""

    drafting: bool
    drafted: int | None
    accepted: int
    corrected: bool
    positions: int
    tree: bool
    overlaps: tuple[float, ...]

    @property
    def tested(self) -> int:
        """Positions the target decided on: the accepted ones, and the one that it corrected."""
        return self.accepted + self.corrected


def branches(round_: Round) -> bool:
    """Whether a round drafted alternatives; a tree of one branch is a chain."""
    return any(draft.parent is not None and draft.parent != index - 1 for index, draft in enumerate(round_.drafts))


def count(round_: Round) -> RoundCounts:
    accepted = len(round_.accepted)
    corrected = round_.target is not None and round_.target.kind is Kind.CORRECTION
    tree = any(draft.parent is not None for draft in round_.drafts)
    drafted = round_.drafted
    depth = _tree_depth(round_.drafts) if tree else min(drafted or 0, MAX_K)
    return RoundCounts(
        drafting=drafted > 0 if drafted is not None else _seems_drafted(round_),
        drafted=drafted,
        accepted=accepted,
        corrected=corrected,
        positions=max(depth, accepted + corrected),
        tree=tree,
        overlaps=tuple(_overlaps(round_.drafts)),
    )


def _seems_drafted(round_: Round) -> bool:
    """Whether a round of an unknown number of drafts had any: its own token says so."""
    return bool(round_.drafts) or (round_.target is not None and round_.target.kind is not Kind.STANDARD)


def _tree_depth(drafts: tuple[DraftToken, ...]) -> int:
    depths: list[int] = []
    for index, draft in enumerate(drafts):
        parent = -1 if draft.parent is None else draft.parent
        depths.append(depths[parent] + 1 if 0 <= parent < index else 1)
    return max(depths, default=0)


def _overlaps(drafts: tuple[DraftToken, ...]) -> Iterable[float]:
    """One value a tested position; siblings add up, since each is the one-hot q of another token."""
    siblings: dict[tuple[str, int], list[float | None]] = {}
    for index, draft in enumerate(drafts):
        if draft.verdict is not Verdict.UNTESTED:
            key = ("chain", index) if draft.parent is None else ("tree", draft.parent)
            siblings.setdefault(key, []).append(draft.overlap)
    for group in siblings.values():
        known = [overlap for overlap in group if overlap is not None]
        if len(known) == len(group):
            yield min(1.0, sum(known))
