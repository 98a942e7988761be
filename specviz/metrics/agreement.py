"""Decides whether a lane wrote what standard decoding wrote, as far as that can be said.

Two lanes are comparable when both are greedy and agree in every setting that decides the text: penalties, stop
strings, ignore_eos. k, seed, top-k and top-p do not change an argmax, and max_new_tokens only cuts the text. A token
that differs is a divergence, however the lanes ended. Where all common tokens agree, the outputs are identical only if
a lane that ended by itself was compared to its last token. A lane that was stopped, failed or still runs proves nothing
about the text it would have written; the comparison is then partial, and `compared_tokens` says how far they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from specviz.core.settings import Settings
from specviz.traces import Reason


class Comparison(StrEnum):
    """How a lane's tokens compare with the standard lane's."""

    STANDARD = "standard"
    IDENTICAL = "identical"
    DIVERGED = "diverged"
    PARTIAL = "partial"
    SAMPLED = "sampled"
    SETTINGS = "settings"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Output:
    """A lane's kept token ids, the settings behind them, and why they end (None: the lane still runs)."""

    ids: Sequence[int | None]
    settings: Settings
    reason: Reason | None

    @property
    def broken_off(self) -> bool:
        return self.reason in (None, Reason.CANCELLED, Reason.ERROR)


@dataclass(frozen=True, slots=True)
class Agreement:
    """`first_divergence` is an index into the kept tokens, from 0."""

    comparison: Comparison
    first_divergence: int | None = None
    compared_tokens: int = 0

    @property
    def identical(self) -> bool | None:
        return {Comparison.IDENTICAL: True, Comparison.DIVERGED: False}.get(self.comparison)


def agree(standard: Output, lane: Output, known: int = 0) -> Agreement:
    """Compare two lanes' outputs; the first `known` tokens are known to agree from an earlier call."""
    if not (standard.settings.greedy and lane.settings.greedy):
        return Agreement(Comparison.SAMPLED)
    if _deciding(standard.settings) != _deciding(lane.settings):
        return Agreement(Comparison.SETTINGS)
    common = min(len(standard.ids), len(lane.ids))
    same = known
    while same < common and standard.ids[same] == lane.ids[same] and lane.ids[same] is not None:
        same += 1
    if same < common:
        unknown = standard.ids[same] is None or lane.ids[same] is None
        return Agreement(Comparison.UNKNOWN) if unknown else Agreement(Comparison.DIVERGED, same, same)
    return _at_the_end(standard, lane, same)


def _deciding(settings: Settings) -> tuple[object, ...]:
    penalties = (settings.repetition_penalty, settings.presence_penalty, settings.frequency_penalty)
    return (*penalties, settings.stop, settings.ignore_eos)


def _at_the_end(standard: Output, lane: Output, same: int) -> Agreement:
    """The outcome where all common tokens agree."""
    if same == 0:
        return Agreement(Comparison.UNKNOWN)
    shorter, longer = sorted((standard, lane), key=lambda output: len(output.ids))
    if len(shorter.ids) == len(longer.ids):
        open_ended = shorter.broken_off and longer.broken_off
        return Agreement(Comparison.PARTIAL if open_ended else Comparison.IDENTICAL, compared_tokens=same)
    if shorter.broken_off:
        return Agreement(Comparison.PARTIAL, compared_tokens=same)
    if shorter.reason in (Reason.LENGTH, Reason.CONTEXT):
        return Agreement(Comparison.IDENTICAL, compared_tokens=same)
    # one ended its text where the other, with the same settings, wrote on
    return Agreement(Comparison.DIVERGED, same, same)
