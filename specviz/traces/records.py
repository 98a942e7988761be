"""The records of a trace: tokens, rounds and events, all frozen.

They know nothing of models, tensors, figures or pages. Every number may be None: a greedy round draws nothing,
an untested draft has no draw, and a served lane knows how many tokens were drafted but not which.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from specviz.core.settings import Settings

SCHEMA_VERSION = 1
STANDARD = "standard"  # the name of the lane that every race begins with


class Verdict(StrEnum):
    """What became of a drafted token."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNTESTED = "untested"


class Kind(StrEnum):
    """Why the target itself wrote a token: after a rejection, after full acceptance, or with no draft at all."""

    CORRECTION = "correction"
    BONUS = "bonus"
    STANDARD = "standard"


class Reason(StrEnum):
    """Why a lane ended."""

    EOS = "eos"
    STOP = "stop"
    LENGTH = "length"
    CONTEXT = "context"
    CANCELLED = "cancelled"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its two texts.

    `text`: what an incremental decoder adds for it, after the kept prefix and the round's earlier drafts; unfinished
    characters are held back, and a rejected token is decoded as if it had been accepted. `piece`: the token alone, for
    display.
    """

    id: int | None
    text: str | None = None
    piece: str | None = None


# A token and its unfiltered probability at temperature 1, so that it informs at temperature 0 too.
Alternative = tuple[Token, float]


@dataclass(frozen=True, slots=True)
class DraftToken:
    """A drafted token and its test.

    `parent`: index in the round's drafts of the token that it follows (-1: the context), None in a chain.
    `source`: which of the strategy's sources proposed it, None where there is one. `draft_prob` q, `target_prob` p
    and `overlap` sum(min(p, q)) come from the distributions used; `draw` is u, accepted iff u < p / q. In a tree p is
    what the rejection of earlier siblings left of it, and `overlap` this child's share of it, so that siblings add up.
    All siblings of an accepted token are rejected; those that follow it have no draw.
    """

    token: Token
    verdict: Verdict
    parent: int | None = None
    source: str | None = None
    draft_prob: float | None = None
    target_prob: float | None = None
    draw: float | None = None
    overlap: float | None = None
    draft_top: tuple[Alternative, ...] | None = None
    target_top: tuple[Alternative, ...] | None = None


@dataclass(frozen=True, slots=True)
class TargetToken:
    """The target's own token, which ends a round.

    `draw_prob` is its probability in the distribution it was drawn from (the residual after a rejection);
    `margin` the target's top-2 logit gap there; `residual_top` the residual's largest probabilities.
    """

    token: Token
    kind: Kind
    target_prob: float | None = None
    draw_prob: float | None = None
    margin: float | None = None
    residual_top: tuple[Alternative, ...] | None = None
    target_top: tuple[Alternative, ...] | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One draft-then-verify step of one lane; times in seconds on the lane's own clock.

    `k` was asked for, `drafted` is what came; a served lane knows that number but not the rejected tokens, so
    `drafts` may be shorter. `target` is None when a draft ended the run.
    `verify_seconds` is the target's pass, `other_seconds` the rest of what decides the output,
    `telemetry_seconds` what only explains it (off the clock). `previous_draft_choice` is the draft's argmax at the
    bonus position of the round before, where this round's catch-up pass gives it free.
    """

    index: int
    k: int
    drafted: int | None
    drafts: tuple[DraftToken, ...]
    target: TargetToken | None
    note: str | None = None
    start_seconds: float | None = None
    draft_seconds: float | None = None
    verify_seconds: float | None = None
    other_seconds: float | None = None
    telemetry_seconds: float | None = None
    draft_passes: int | None = 0
    target_passes: int | None = 1
    previous_draft_choice: int | None = None

    @property
    def seconds(self) -> float:
        """What the round cost on its lane's clock."""
        return (self.draft_seconds or 0.0) + (self.verify_seconds or 0.0) + (self.other_seconds or 0.0)

    @property
    def end_seconds(self) -> float:
        return (self.start_seconds or 0.0) + self.seconds

    @property
    def accepted(self) -> tuple[DraftToken, ...]:
        return tuple(draft for draft in self.drafts if draft.verdict is Verdict.ACCEPTED)

    @property
    def kept(self) -> tuple[Token, ...]:
        """The round's tokens that are part of the output, in order."""
        kept = tuple(draft.token for draft in self.accepted)
        return kept if self.target is None else (*kept, self.target.token)


@dataclass(frozen=True, slots=True)
class VerifyCurve:
    """Measured cost of a target pass over `widths` tokens: median seconds, and the spread between the quartiles."""

    widths: tuple[int, ...]
    seconds: tuple[float, ...]
    spread: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model as loaded: `role` target or draft, `execution` how its passes run (native, plain, ...)."""

    role: str
    name: str
    source: str
    revision: str | None
    architecture: str
    parameters: int
    vocabulary: int
    context_length: int
    bytes: int
    execution: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """A source of guesses: `name` as drafted tokens carry it, `label` for people, `meaning`: what it guesses."""

    name: str
    label: str
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class LaneInfo:
    """What a lane was asked to do. `options` are the strategy's own, `draft` its registry name.

    `tree`: whether it drafts trees, so that k counts nodes; `sources`: those that its drafted tokens may name.
    """

    name: str
    draft: str
    label: str
    settings: Settings
    options: dict[str, str | int | float | bool | list[str]] = field(default_factory=dict)
    draft_model: ModelInfo | None = None
    note: str | None = None
    tree: bool = False
    sources: tuple[SourceInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class Header:
    """Everything about a race that is known when its clocks start.

    `prefill_seconds` is the target's prefill, run once and shared by all lanes; `load_seconds` and
    `warmup_seconds` are told apart from it. `curve` is None until a Calibrated event brings it.
    """

    prompt: str | None
    prompt_ids: tuple[int, ...]
    target: ModelInfo
    lanes: tuple[LaneInfo, ...]
    device: str
    device_name: str
    dtype: str
    threads: int
    versions: dict[str, str]
    created: str
    chat: bool = False
    mode: str = "interleaved"
    load_seconds: float | None = None
    warmup_seconds: float | None = None
    prefill_seconds: float | None = None
    curve: VerifyCurve | None = None
    schema: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class RaceStarted:
    header: Header


@dataclass(frozen=True, slots=True)
class LaneStarted:
    """`prefill_seconds` is what only this lane's draft needed of the prompt."""

    lane: str
    prefill_seconds: float | None = None
    warmup_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RoundDone:
    lane: str
    round: Round


@dataclass(frozen=True, slots=True)
class LaneFinished:
    """`text` is the lane's output (it ends before a stop string); kept texts + `tail` is all that was decoded.

    `message` explains an error; `wall_seconds` is the wall time of the lane's turns, measured apart from its clock.
    """

    lane: str
    reason: Reason
    text: str | None
    tail: str | None = None
    message: str | None = None
    wall_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Calibrated:
    curve: VerifyCurve


@dataclass(frozen=True, slots=True)
class RaceFinished:
    cancelled: bool = False


Event = RaceStarted | LaneStarted | RoundDone | LaneFinished | Calibrated | RaceFinished
