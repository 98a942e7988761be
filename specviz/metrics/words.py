"""A lane's verdict in a sentence, made of its Summary alone. Plain English; no promise that the numbers do not keep."""

from __future__ import annotations

from specviz.metrics.agreement import Comparison
from specviz.metrics.reasons import times
from specviz.metrics.summary import Summary

# how a policy of k picks the positions that acceptance is measured on
_BIAS = {
    "confidence": "unsure positions are left undrafted",
    "entropy": "unsure positions are left undrafted",
    "adaptive": "it drafts less where drafts were rejected",
}


def verdict(summary: Summary) -> str:
    """What came of a lane: how fast against standard decoding, why not faster, and whether it wrote the same."""
    if summary.finish_reason == "error":
        after = f" after {counted(summary.kept_tokens, 'token')}" if summary.kept_tokens else ""
        return f"ended by an error{after}: {summary.message or 'no reason was given'}"
    if summary.kept_tokens == 0:
        return "stopped before the first token" if summary.finish_reason == "cancelled" else "no tokens yet"
    if summary.standard:
        passes = summary.target_passes
        sentence = counted(summary.kept_tokens, "token")
        sentence += f" in {counted(passes, 'target pass', 'target passes')}" if passes is not None else ""
    else:
        sentence = _joined(summary)
    # a run's first rounds are often all or none
    warning = acceptance_warning(summary) if summary.finish_reason else None
    return _prefix(summary) + sentence + (f". {warning}" if warning else "")


def acceptance_warning(summary: Summary) -> str | None:
    """A caution where exactly none or exactly all of the tested drafts were accepted: often a mistake in the pair."""
    if summary.tested == 0 or 0 < summary.accepted < summary.tested:
        return None
    of = f"{summary.accepted} of {summary.tested}"
    if summary.accepted == 0:
        advice = ": check that draft and target belong together" if summary.draft_passes else ""
        return f"No tested draft token was accepted ({of}){advice}."
    return f"Every tested draft token was accepted ({of}): usual only for a draft like its target, or copied text."


def holds_back(summary: Summary) -> str | None:
    """What would speed up most a lane that is not slower, as a sentence; a loss has its reason in the verdict.

    None where that is not known, or promises no more than was measured.
    """
    because, speedup = summary.because, summary.speedup
    if because is None or speedup is None or _slower(speedup) or summary.finish_reason == "error":
        return None
    best = because.would_be
    if best is not None and (best <= speedup or times(best) == times(speedup)):
        return None
    return f"What holds it back most: {because.sentence}."


def policy_bias(summary: Summary) -> str | None:
    """What a policy of k does to the acceptance measured under it; None for a fixed k and where nothing was drafted."""
    name = summary.k_policy.partition("-")[0]
    if name == "fixed" or not summary.drafted:
        return None
    how = _BIAS.get(name, "it chooses where to draft")
    return (
        f"k is chosen as it runs ({summary.k_policy}): {how}, so its acceptance is not that of a fixed k. "
        "Compare tokens a target pass and speed."
    )


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """ "1 token", "2 tokens"."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def _prefix(summary: Summary) -> str:
    if summary.finish_reason == "cancelled":
        return f"stopped after {counted(summary.kept_tokens, 'token')}: " if not summary.standard else "stopped: "
    return "so far " if summary.finish_reason is None else ""


def _joined(summary: Summary) -> str:
    speed, text = _speed(summary), _text(summary)
    short = summary.comparison is Comparison.IDENTICAL and summary.speedup is not None and "slower" not in speed
    return f"{speed}, {text}" if short else f"{speed}; {text}"


def _speed(summary: Summary) -> str:
    if summary.speedup is None:
        return f"{counted(summary.kept_tokens, 'token')}, not timed against standard decoding"
    texts_differ = summary.comparison in (Comparison.SAMPLED, Comparison.SETTINGS)
    per_token = " per token" if texts_differ else ""
    shown = times(summary.speedup)
    if _slower(summary.speedup):
        return f"{shown}{per_token}: slower{_reason(summary)}"
    return f"{shown}{per_token}: as fast as standard decoding" if shown == "1.00x" else f"{shown} faster{per_token}"


def _slower(speedup: float) -> bool:
    """Whether a speed-up is below 1 as it is shown."""
    return speedup < 1 and times(speedup) != "1.00x"


def _reason(summary: Summary) -> str:
    if summary.because:
        return f", because {summary.because.sentence}"
    if summary.costs:
        return ", and neither acceptance, draft, width nor overhead explains it: measure again"
    return ""


def _text(summary: Summary) -> str:
    compared = summary.compared_tokens
    match summary.comparison:
        case Comparison.IDENTICAL:
            first = "first " if compared < summary.kept_tokens else ""
            return f"the same {first}{counted(compared, 'token')}"
        case Comparison.PARTIAL:
            return f"the same as standard decoding as far as both got ({counted(compared, 'token')})"
        case Comparison.DIVERGED:
            return f"first difference at token {summary.first_divergence + 1}{_apart(summary.divergence_margin)}"
        case Comparison.SAMPLED:
            return "sampled, so texts differ"
        case Comparison.SETTINGS:
            return "its settings differ, so texts may differ"
        case _:
            return "texts not compared"


def _apart(margin: float | None) -> str:
    if margin is None:
        return ""
    if margin == 0:
        return ", where the target's top two were tied"
    gap = f"{margin:.2f}" if margin >= 0.005 else "less than 0.01"
    return f", where the target's top two were {gap} apart"
