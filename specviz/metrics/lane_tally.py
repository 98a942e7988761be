"""The running counts of one lane, from which its numbers are made. It knows no other lane and divides nothing.

`drafted` and the costs count nodes; a position is a depth. In a chain the two are the same. In a tree `tested` counts
the depths at which the target chose among siblings, so alpha = accepted / tested is the chance that one of them was
right. Only verdicts and kinds are needed, so it also holds where the rejected tokens are unknown (served lanes).
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from specviz.core.settings import MAX_K
from specviz.metrics.agreement import Output
from specviz.traces import DraftToken, Kind, LaneFinished, LaneInfo, Round, Verdict


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """How many tokens one of a strategy's sources drafted, and how many of them were accepted."""

    source: str
    drafted: int
    accepted: int

    @property
    def acceptance(self) -> float:
        """accepted / drafted."""
        return self.accepted / self.drafted


@dataclass(frozen=True, slots=True)
class RoundCounts:
    """What one round adds. `positions` is the drafted depth, `overlaps` holds sum(min(p, q)) of tested positions."""

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
    """One value per tested position; siblings add up, since each is the one-hot q of another token."""
    siblings: dict[tuple[str, int], list[float | None]] = {}
    for index, draft in enumerate(drafts):
        if draft.verdict is not Verdict.UNTESTED:
            key = ("chain", index) if draft.parent is None else ("tree", draft.parent)
            siblings.setdefault(key, []).append(draft.overlap)
    for group in siblings.values():
        known = [overlap for overlap in group if overlap is not None]
        if len(known) == len(group):
            yield min(1.0, sum(known))


# Totals over the rounds; `seconds` is the round's own sum, where an unknown part counts as 0.
SUMMED = (
    "drafted",
    "draft_passes",
    "target_passes",
    "seconds",
    "draft_seconds",
    "verify_seconds",
    "other_seconds",
    "telemetry_seconds",
)


class LaneTally:
    """The running counts of one lane. A total is None once a round did not know its part."""

    def __init__(self, info: LaneInfo) -> None:
        self.info = info
        self.finished: LaneFinished | None = None
        self.draft_prefill_seconds: float | None = None
        self.first_round_seconds: float | None = None
        self.ids: list[int | None] = []
        self.texts: list[str] = []
        self.margins: list[float | None] = []
        self.agreed = 0
        self.rounds = self.drafting_rounds = self.accepted = self.tested = 0
        self.tree = False
        self.positions = 0
        self.totals: dict[str, Any] = dict.fromkeys(SUMMED, 0)
        self.timed = False
        self.verify_sorted: list[float] = []
        self.other_sorted: list[float] = []
        self.verify_by_width: dict[int, list[float]] = {}
        self.reached: list[int] = []
        self.accepted_at: list[int] = []
        self.accepted_lengths: list[int] = []
        self.drafted_lengths: list[int] = []
        self.overlap_sum, self.overlaps = 0.0, 0
        self._by_source: dict[str, list[int]] = {}  # [drafted, accepted]

    def add(self, round_: Round) -> None:
        counts = count(round_)
        if self.rounds == 0:
            self.first_round_seconds = round_.seconds if _timed(round_) else None
        self.rounds += 1
        self._keep(round_)
        self._sum(round_, counts)
        self._time(round_)
        if counts.drafting:
            self._count_drafts(counts)
            self._count_sources(round_.drafts)

    def _keep(self, round_: Round) -> None:
        self.ids += [token.id for token in round_.kept]
        self.texts += [token.text or "" for token in round_.kept]
        own = [] if round_.target is None else [round_.target.margin]
        self.margins += [*(None for _ in round_.accepted), *own]

    def _sum(self, round_: Round, counts: RoundCounts) -> None:
        for name in SUMMED:
            value = getattr(round_, name)
            if value is None and name == "draft_seconds" and not counts.drafting:
                value = 0.0
            known = self.totals[name] is not None and value is not None
            self.totals[name] = self.totals[name] + value if known else None

    def _time(self, round_: Round) -> None:
        self.timed = self.timed or _timed(round_)
        if round_.verify_seconds is not None:
            insort(self.verify_sorted, round_.verify_seconds)
            if round_.drafted is not None:
                insort(self.verify_by_width.setdefault(round_.drafted + 1, []), round_.verify_seconds)
        if round_.other_seconds is not None:
            insort(self.other_sorted, round_.other_seconds)

    def _count_drafts(self, counts: RoundCounts) -> None:
        self.drafting_rounds += 1
        self.accepted += counts.accepted
        self.tested += counts.tested
        self.tree = self.tree or counts.tree
        self.positions += counts.positions
        self.overlap_sum += sum(counts.overlaps)
        self.overlaps += len(counts.overlaps)
        _increase(self.accepted_lengths, counts.accepted)
        _increase(self.drafted_lengths, counts.positions)
        for position in range(counts.positions):
            _increase(self.reached, position, position < counts.tested)
            _increase(self.accepted_at, position, position < counts.accepted)

    def _count_sources(self, drafts: tuple[DraftToken, ...]) -> None:
        for draft in drafts:
            if draft.source is not None:
                counts = self._by_source.setdefault(draft.source, [0, 0])
                counts[0] += 1
                counts[1] += draft.verdict is Verdict.ACCEPTED

    @property
    def sources(self) -> tuple[SourceCounts, ...]:
        """The sources that drafted, the one with most accepted tokens first."""
        found = (SourceCounts(source, *counts) for source, counts in self._by_source.items())
        return tuple(sorted(found, key=lambda one: (-one.accepted, -one.drafted, one.source)))

    def total(self, name: str) -> Any:
        """A total of SUMMED; a time is None before the first round."""
        if name.endswith("seconds") and not (self.timed if name == "seconds" else self.rounds):
            return None
        total = self.totals[name]
        return total if total is None or abs(total) < math.inf else None

    @property
    def output(self) -> Output:
        return Output(self.ids, self.info.settings, self.finished.reason if self.finished else None)


def _timed(round_: Round) -> bool:
    return not (round_.draft_seconds is None and round_.verify_seconds is None and round_.other_seconds is None)


def _increase(counts: list[int], index: int, by: int = 1) -> None:
    counts.extend([0] * (index + 1 - len(counts)))
    counts[index] += by
