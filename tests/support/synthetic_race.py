"""Deterministic traces for the race view: no model, the same events each time, every kind of token among them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from specviz.core.settings import Settings
from specviz.traces import (
    Alternative,
    DraftToken,
    Event,
    Header,
    Kind,
    LaneFinished,
    LaneInfo,
    LaneStarted,
    ModelInfo,
    RaceFinished,
    RaceStarted,
    Reason,
    Round,
    RoundDone,
    TargetToken,
    Token,
    Verdict,
)

CODE = """Here is a Python function that merges two sorted lists:

```python
def merge_sorted_lists(list1, list2):
    merged_list = []
    i = j = 0
    while i < len(list1) and j < len(list2):
        if list1[i] < list2[j]:
            merged_list.append(list1[i])
            i += 1
        else:
            merged_list.append(list2[j])
            j += 1
    merged_list.extend(list1[i:])
    merged_list.extend(list2[j:])
    return merged_list
```

It is linear because every step of the loop moves one of the two indices forward, and neither ever moves back.
"""
HOSTILE = (
    "${window.pwn=1}",
    "`${window.pwn=1}`",
    "<img src=x onerror='window.pwn=1'>",
    "<script>window.pwn=1</script>",
    "</script>",
    "{{window.pwn=1}}",
    "\x00",
    "\u202eevil\u202c",
    "\u2028",
    "|",
    "&lt;",
    "\\",
)
WRONG = (" the", " and", "\n", " x", "()", " 1")


@dataclass
class Vocabulary:
    """Ids for pieces in order of first sight."""

    ids: dict[str, int] = field(default_factory=dict)

    def token(self, piece: str, text: str | None = None) -> Token:
        return Token(self.ids.setdefault(piece, len(self.ids)), piece if text is None else text, piece)

    def alternative(self, piece: str) -> Token:
        return Token(self.ids.setdefault(piece, len(self.ids)), None, piece)


def pieces_of(text: str) -> list[str]:
    return re.findall(r" ?\w+|\n +|:\n+|\n+| ?[^\w\s]+|\s+", text)


def target_tokens(vocabulary: Vocabulary, count: int, hostile: bool = False) -> list[Token]:
    """What every lane writes: the code over and over; hostile, also texts that would run and a smile in two tokens."""
    tokens = [vocabulary.token(piece) for piece in pieces_of(CODE)]
    if hostile:
        split = [vocabulary.token("<F0 9F>", ""), vocabulary.token("<99 82>", "🙂"), vocabulary.token("日本")]
        tokens = [vocabulary.token(text) for text in HOSTILE] + split + tokens
    return (tokens * (count // len(tokens) + 1))[:count]


def model(name: str, role: str, parameters: int) -> ModelInfo:
    return ModelInfo(role, name, "synthetic", None, "llama", parameters, 32000, 4096, 2 * parameters, "native")


def top(rng: random.Random, vocabulary: Vocabulary, first: Token, share: float) -> tuple[Alternative, ...]:
    """Five alternatives with `first` at `share`, the rest falling."""
    others = [vocabulary.alternative(piece) for piece in rng.sample([p for p in WRONG if p != first.piece], 4)]
    rest = (1 - share) * 0.8
    ladder = ((vocabulary.alternative(first.piece), share), *((t, rest / 2 ** (i + 1)) for i, t in enumerate(others)))
    return tuple(sorted(ladder, key=lambda pair: -pair[1]))


@dataclass
class Writer:
    """Writes one lane's rounds; `alpha` is how often a draft is right."""

    vocabulary: Vocabulary
    tokens: list[Token]
    settings: Settings
    seed: int
    alpha: float = 0.8
    draft_cost: float = 0.02
    pass_cost: float = 0.05

    def rounds(self, speculative: bool) -> Iterator[Round]:
        rng = random.Random(self.seed)
        position, clock, index = 0, 0.0, 0
        while position < len(self.tokens):
            drafts, right = self.drafts(rng, position) if speculative else ((), 0)
            target = self.target(rng, position + right, drafts, right)
            verify = self.pass_cost * (1 + 0.1 * rng.random())
            draft = self.draft_cost * len(drafts)
            yield Round(
                index, len(drafts), len(drafts), drafts, target, None, clock, draft, verify, 0.002, 0.004, len(drafts)
            )
            clock += draft + verify + 0.002
            position += right + (target is not None)
            index += 1

    def drafts(self, rng: random.Random, position: int) -> tuple[tuple[DraftToken, ...], int]:
        ahead = self.tokens[position : position + self.settings.k]
        right = next((i for i, _ in enumerate(ahead) if rng.random() > self.alpha), len(ahead))
        return tuple(self.draft(rng, token, i, right) for i, token in enumerate(ahead)), right

    def draft(self, rng: random.Random, token: Token, i: int, right: int) -> DraftToken:
        if i > right:
            return DraftToken(token, Verdict.UNTESTED, draft_prob=self.sampled(0.5))
        high, low = 0.5 + 0.45 * rng.random(), 0.02 + 0.2 * rng.random()
        if i < right:
            tops = top(rng, self.vocabulary, token, high), top(rng, self.vocabulary, token, min(0.99, high + 0.03))
            return DraftToken(
                token, Verdict.ACCEPTED, None, None, self.sampled(high), self.sampled(high + 0.03), 0.25, 0.9, *tops
            )
        wrong = self.vocabulary.token(rng.choice([piece for piece in WRONG if piece != token.piece]))
        tops = top(rng, self.vocabulary, wrong, high), top(rng, self.vocabulary, token, high)
        return DraftToken(wrong, Verdict.REJECTED, None, None, self.sampled(high), self.sampled(low), 0.87, 0.3, *tops)

    def target(self, rng: random.Random, at: int, drafts: tuple, right: int) -> TargetToken | None:
        if at >= len(self.tokens):
            return None
        kind = Kind.STANDARD if not drafts else Kind.BONUS if right == len(drafts) else Kind.CORRECTION
        share = 0.4 + 0.5 * rng.random()
        tops = top(rng, self.vocabulary, self.tokens[at], share)
        residual = tops if kind is Kind.CORRECTION and not self.settings.greedy else None
        return TargetToken(self.tokens[at], kind, self.sampled(share), self.sampled(share), 1.5, residual, tops)

    def sampled(self, value: float) -> float | None:
        return None if self.settings.greedy else min(1.0, value)


def race_events(
    count: int = 500,
    ks: tuple[int, ...] = (5,),
    temperature: float = 0.0,
    hostile: bool = False,
    speed: float = 1.0,
    reason: Reason = Reason.LENGTH,
) -> list[Event]:
    """A whole race: the standard lane and one lane for each of `ks`, in the order in which a race would yield them.

    `speed` divides every time.
    """
    vocabulary = Vocabulary()
    tokens = target_tokens(vocabulary, count, hostile)
    settings = [Settings(k=k, max_new_tokens=count, temperature=temperature) for k in (0, *ks)]
    small = model("Small 0.5B", "draft", 500_000_000)
    name = "<img src=x onerror='window.pwn=1'>" if hostile else "Large 1.5B"
    lanes = (
        LaneInfo("standard", "none", "standard", settings[0]),
        *(LaneInfo(f"k={s.k}", "draft-model", "speculative", s, {}, small) for s in settings[1:]),
    )
    writers = [
        Writer(vocabulary, tokens, s, i, pass_cost=0.05 / speed, draft_cost=0.008 / speed)
        for i, s in enumerate(settings)
    ]
    rounds = [list(writer.rounds(i > 0)) for i, writer in enumerate(writers)]
    header = Header(
        "Write a merge.", (1, 2), model(name, "target", 1_500_000_000), lanes, "cpu", "CPU", "bfloat16", 2,
        {"torch": "2"}, "2026-01-01T00:00:00Z", prefill_seconds=0.4,
    )  # fmt: skip
    text = "".join(token.text for token in tokens)
    return [RaceStarted(header), *interleave(lanes, rounds, text, reason), RaceFinished()]


def interleave(lanes: tuple[LaneInfo, ...], rounds: list[list[Round]], text: str, reason: Reason) -> Iterator[Event]:
    """Always the round of the lane whose clock is furthest behind."""
    yield from (LaneStarted(lane.name, 0.1) for lane in lanes)
    clocks, heads = [0.0] * len(lanes), [0] * len(lanes)
    while any(head < len(own) for head, own in zip(heads, rounds, strict=True)):
        lane = min((i for i in range(len(lanes)) if heads[i] < len(rounds[i])), key=clocks.__getitem__)
        done = rounds[lane][heads[lane]]
        heads[lane] += 1
        clocks[lane] = done.end_seconds
        yield RoundDone(lanes[lane].name, done)
        if heads[lane] == len(rounds[lane]):
            yield LaneFinished(lanes[lane].name, reason, text)


TREE_ROUND = Round(
    0, 3, 3,
    (
        DraftToken(Token(1, "a", "a"), Verdict.REJECTED, -1, "match"),
        DraftToken(Token(2, "b", "b"), Verdict.ACCEPTED, -1, "table"),
        DraftToken(Token(3, "c", "c"), Verdict.UNTESTED, 0, "table"),
    ),
    TargetToken(Token(4, "d", "d"), Kind.BONUS), start_seconds=0.0, verify_seconds=0.1,
)  # fmt: skip
