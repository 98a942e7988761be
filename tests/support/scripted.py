"""Traces written by hand: rounds as short strings, so that a test shows what was accepted at a glance.

A round is spelt by its drafts, A accepted, R rejected, U untested, and the target's token: c correction, b bonus,
s standard, nothing where a draft ended the run. "ARUc" drafted three, kept one of them and a correction.
"""

from dataclasses import replace

from specviz.core.settings import Settings
from specviz.traces import (
    Calibrated,
    DraftToken,
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

VERDICTS = {"A": Verdict.ACCEPTED, "R": Verdict.REJECTED, "U": Verdict.UNTESTED}
KINDS = {"c": Kind.CORRECTION, "b": Kind.BONUS, "s": Kind.STANDARD}


def script(*spellings, times=(0.0, 0.1, 0.0), ids=None, overlaps=(), margin=None, **shared):
    """Rounds from their spellings; `times` are draft, verify and other seconds, one triple or one for each round.

    Kept tokens get `ids` (0, 1, 2, ... by default), thrown ones 900 and up; tested drafts get `overlaps` in turn.
    """
    kept = iter(range(10_000) if ids is None else ids)
    overlaps, rounds, start = iter(overlaps), [], 0.0
    for index, spelling in enumerate(spellings):
        drafts = tuple(_draft(letter, kept, overlaps) for letter in spelling if letter in VERDICTS)
        kinds = [KINDS[letter] for letter in spelling if letter in KINDS]
        target = TargetToken(_token(next(kept)), kinds[0], margin=margin) if kinds else None
        draft, verify, other = times[index] if isinstance(times[0], tuple) else times
        values = {"k": len(drafts), "drafted": len(drafts), "draft_passes": len(drafts), "telemetry_seconds": 0.005}
        values |= {"draft_seconds": draft, "verify_seconds": verify, "other_seconds": other, "start_seconds": start}
        rounds.append(Round(index=index, drafts=drafts, target=target, **{**values, **shared}))
        start = rounds[-1].end_seconds
    return rounds


def race(lanes, settings=None, reasons=None, curve=None, prefill=0.5, own_prefill=None, drafts=None, finished=True):
    """The events of a race from {lane name: rounds}; a lane whose reason is None has not ended."""
    settings, reasons, own_prefill, drafts = settings or {}, reasons or {}, own_prefill or {}, drafts or {}
    infos = tuple(
        LaneInfo(
            name,
            drafts.get(name, "none" if name == "standard" else "draft-model"),
            name,
            settings.get(name, Settings()),
        )
        for name in lanes
    )
    target = ModelInfo("target", "tiny", "path:tiny", None, "llama", 123, 300, 64, 492, "plain")
    versions, created = {"torch": "2"}, "2026-01-01T00:00:00Z"
    header = Header("hi", (1, 2), target, infos, "cpu", "CPU", "float32", 2, versions, created, prefill_seconds=prefill)
    yield RaceStarted(header)
    for name, rounds in lanes.items():
        yield LaneStarted(name, own_prefill.get(name))
        yield from (RoundDone(name, each) for each in rounds)
        reason = reasons.get(name, Reason.LENGTH)
        if reason:
            yield LaneFinished(name, reason, None, message="out of memory" if reason is Reason.ERROR else None)
    if curve:
        yield Calibrated(curve)
    if finished:
        yield RaceFinished()


def standard(tokens, verify=0.1, other=0.0, ids=None, margin=None):
    """A standard lane: one token a round."""
    return script(*["s"] * tokens, times=(0.0, verify, other), ids=ids, margin=margin)


def sourced(rounds, *sources):
    """The rounds with a source for each drafted token, in turn."""
    turn = iter(sources)
    return [replace(done, drafts=tuple(replace(draft, source=next(turn)) for draft in done.drafts)) for done in rounds]


def _draft(letter, kept, overlaps):
    number = next(kept) if letter == "A" else 900
    overlap = None if letter == "U" else next(overlaps, None)
    return DraftToken(_token(number), VERDICTS[letter], overlap=overlap)


def _token(number):
    return Token(number, f" {number}")
