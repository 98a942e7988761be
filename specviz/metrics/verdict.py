"""The verdict on a lane: what came of it against standard decoding, as values. `words` says it in English."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from specviz.core.settings import k_policy
from specviz.metrics.agreement import Comparison
from specviz.metrics.formats import times
from specviz.metrics.reasons import Because
from specviz.metrics.summary import Summary
from specviz.traces import Reason


class Speed(StrEnum):
    """How a lane's speed compares with standard decoding's, as it is shown: a ratio that reads "1.00×" is equal."""

    FASTER = "faster"
    EQUAL = "equal"
    SLOWER = "slower"


class Caution(StrEnum):
    """What a reader of the numbers should know."""

    NOTHING_ACCEPTED = "nothing accepted"
    EVERYTHING_ACCEPTED = "everything accepted"
    UNEXPLAINED_LOSS = "unexplained loss"
    CHOSEN_K = "chosen k"


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where the texts part: the index in the kept tokens, from 0, and the target's top-2 gap there, where known."""

    index: int
    margin: float | None

    @property
    def tie(self) -> bool:
        return self.margin == 0


@dataclass(frozen=True, slots=True)
class Price:
    """The passes that a lane's kept tokens took. Standard decoding takes one target pass per token."""

    target_passes: int
    draft_passes: int
    kept_tokens: int


@dataclass(frozen=True, slots=True)
class Spread:
    """The speed-ups of several runs of one race."""

    runs: int
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class LaneVerdict:
    """What came of a lane. `ratio` is its speed-up; None, and `speed` with it, where the two cannot be compared.

    `because` names what holds the lane back most, where that is known; `promises_more` says whether the lane, though
    not slower, would gain by it. `accepted` and `tested` are the counts that the cautions speak of.
    """

    standard: bool
    ended: Reason | None
    message: str | None
    kept_tokens: int
    rounds: int
    ratio: float | None
    speed: Speed | None
    comparison: Comparison
    compared_tokens: int
    divergence: Divergence | None
    price: Price | None
    because: Because | None
    promises_more: bool
    cautions: tuple[Caution, ...]
    accepted: int
    tested: int
    k_policy: str
    spread: Spread | None = None

    @property
    def texts_differ(self) -> bool:
        """Whether the lanes' texts differ by right, so that only speeds per token can be compared."""
        return self.comparison in (Comparison.SAMPLED, Comparison.SETTINGS)

    @property
    def comparable(self) -> bool:
        """Whether there is a result: tokens were kept, and no error ended the lane."""
        return self.kept_tokens > 0 and self.ended is not Reason.ERROR


def verdict_of(summary: Summary, spread: Spread | None = None) -> LaneVerdict:
    """The verdict on a lane, from its numbers alone; `spread` where they are the medians of several runs."""
    ratio, index = summary.speedup, summary.first_divergence
    passes = summary.target_passes
    return LaneVerdict(
        standard=summary.standard,
        ended=None if summary.finish_reason is None else Reason(summary.finish_reason),
        message=summary.message,
        kept_tokens=summary.kept_tokens,
        rounds=summary.rounds,
        ratio=ratio,
        speed=None if ratio is None else _speed(ratio),
        comparison=summary.comparison,
        compared_tokens=summary.compared_tokens,
        divergence=None if index is None else Divergence(index, summary.divergence_margin),
        price=None if passes is None else Price(passes, summary.draft_passes or 0, summary.kept_tokens),
        because=summary.because,
        promises_more=_promises_more(summary),
        cautions=tuple(_cautions(summary)),
        accepted=summary.accepted,
        tested=summary.tested,
        k_policy=summary.k_policy,
        spread=spread,
    )


def _speed(ratio: float) -> Speed:
    if times(ratio) == times(1.0):
        return Speed.EQUAL
    return Speed.FASTER if ratio > 1 else Speed.SLOWER


def _promises_more(summary: Summary) -> bool:
    """Whether a lane that is not slower would gain, as shown, from an ideal factor; a loss has its reason anyway."""
    because, ratio = summary.because, summary.speedup
    if because is None or ratio is None or _speed(ratio) is Speed.SLOWER or summary.finish_reason == Reason.ERROR:
        return False
    best = because.would_be
    return best is None or (best > ratio and times(best) != times(ratio))


def _cautions(summary: Summary) -> Iterator[Caution]:
    # the first rounds of a run are often all or none
    if summary.finish_reason is not None and summary.tested:
        if summary.accepted == 0:
            yield Caution.NOTHING_ACCEPTED
        elif summary.accepted == summary.tested:
            yield Caution.EVERYTHING_ACCEPTED
    slower = summary.speedup is not None and _speed(summary.speedup) is Speed.SLOWER
    if slower and summary.costs is not None and summary.because is None:
        yield Caution.UNEXPLAINED_LOSS
    if summary.drafted and k_policy(summary.k_policy)[0] != "fixed":
        yield Caution.CHOSEN_K
