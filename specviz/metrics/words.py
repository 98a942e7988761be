"""A lane's verdict in English: as a headline, a sentence, a badge, and the reasons behind it.

The only place that turns a verdict into words, and no place turns the words back: whoever needs to know reads the
LaneVerdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specviz.core.settings import k_policy
from specviz.metrics.agreement import Comparison
from specviz.metrics.formats import UNDEFINED, counted, fixed, percent, times
from specviz.metrics.reasons import Because, Factor
from specviz.metrics.verdict import Caution, Divergence, LaneVerdict, Price, Speed
from specviz.traces import Reason

# how a policy of k chooses the positions on which acceptance is measured
_CHOICE = {
    "confidence": "unsure positions are left undrafted",
    "entropy": "unsure positions are left undrafted",
    "adaptive": "it drafts less where drafts were rejected",
}
_TARGET_PASS = ("target pass", "target passes")


@dataclass(frozen=True, slots=True)
class Headline:
    """The verdict in large and small type: `big` is the speed, empty where it is not known; `rest` reads on from it."""

    big: str
    rest: str


@dataclass(frozen=True, slots=True)
class Badge:
    """Whether a lane wrote what standard decoding wrote; `kind` is "good", "bad" or empty."""

    text: str
    kind: str = ""


def sentence(verdict: LaneVerdict) -> str:
    """The verdict in one sentence, cautions and the spread of several runs after it. Ends without a full stop."""
    if not verdict.comparable or verdict.standard:
        return _alone(verdict)
    big, says = _speed(verdict)
    speed = ": ".join(filter(None, (big, says)))
    return _closed(f"{_before(verdict)}{speed}{_joint(verdict)}{_text(verdict)}{_paid(verdict)}", verdict)


def headline(verdict: LaneVerdict) -> Headline:
    """The same, split where the type changes."""
    if not verdict.comparable or verdict.standard:
        return Headline("", _alone(verdict))
    big, says = _speed(verdict)
    says += _joint(verdict) if says else ""
    return Headline(big, _closed(f"{_before(verdict)}{says}{_text(verdict)}{_paid(verdict)}", verdict))


def badge(verdict: LaneVerdict) -> Badge:
    """Whether the output is standard decoding's, as far as that can be said."""
    match verdict.comparison:
        case Comparison.STANDARD:
            return Badge(UNDEFINED)
        case Comparison.IDENTICAL:
            return Badge("✓ identical output", "good")
        case Comparison.DIVERGED:
            return Badge(_difference(verdict.divergence), "bad")
        case Comparison.PARTIAL:
            return Badge(f"the same as far as both got ({counted(verdict.compared_tokens, 'token')})")
        case Comparison.SAMPLED:
            return Badge("same law, different sample")
        case Comparison.SETTINGS:
            return Badge("other settings, so texts may differ")
        case Comparison.UNKNOWN:
            return Badge("not compared")


def paragraph(verdict: LaneVerdict) -> str:
    """The sentence and what explains it, as whole sentences."""
    said = sentence(verdict)
    more = filter(None, (holds_back(verdict), policy_bias(verdict)))
    stop = "" if verdict.ended is Reason.ERROR and verdict.message else "."  # an error's message has its own
    return " ".join((f"{said}{stop}", *more))


def holds_back(verdict: LaneVerdict) -> str | None:
    """The factor that would gain a lane most, where it is not slower; a slower lane has its reason in the sentence."""
    return f"What holds it back most: {reason(verdict.because, verdict.rounds)}." if verdict.promises_more else None


def policy_bias(verdict: LaneVerdict) -> str | None:
    """How a policy of k biases the acceptance measured under it; None for a fixed k and where nothing was drafted."""
    if Caution.CHOSEN_K not in verdict.cautions:
        return None
    return (
        f"k is chosen during the run ({verdict.k_policy}): {_CHOICE[k_policy(verdict.k_policy)[0]]}, so this "
        "acceptance does not compare with that of a fixed k. Compare tokens per target pass and speed."
    )


def reason(because: Because, rounds: int) -> str:
    """The factor that holds back a lane of so many rounds, to be read on from "because"."""
    if because.would_be is None:
        return f"the draft proposed nothing in {'its only round' if rounds == 1 else f'any of its {rounds} rounds'}"
    return f"{_cause(because)} it would be {'only ' if because.would_be < 1 else ''}{times(because.would_be)}"


def price(paid: Price) -> str:
    """ "33 target passes instead of 150, plus 160 draft passes"."""
    drafts = f", plus {counted(paid.draft_passes, 'draft pass', 'draft passes')}" if paid.draft_passes else ""
    return f"{counted(paid.target_passes, *_TARGET_PASS)} instead of {paid.kept_tokens}{drafts}"


def _alone(verdict: LaneVerdict) -> str:
    """What is said of a lane that has no result, or is the baseline."""
    kept = counted(verdict.kept_tokens, "token")
    if verdict.ended is Reason.ERROR:
        after = f" after {kept}" if verdict.kept_tokens else ""
        return f"ended by an error{after}: {verdict.message or 'no reason was given'}"
    if verdict.kept_tokens == 0:
        return "stopped before the first token" if verdict.ended is Reason.CANCELLED else "no tokens yet"
    passes = "" if verdict.price is None else f" in {counted(verdict.price.target_passes, *_TARGET_PASS)}"
    return f"{_before(verdict)}{kept}{passes}"


def _before(verdict: LaneVerdict) -> str:
    if verdict.ended is Reason.CANCELLED:
        return "stopped: " if verdict.standard else f"stopped after {counted(verdict.kept_tokens, 'token')}: "
    return "so far " if verdict.ended is None else ""


def _joint(verdict: LaneVerdict) -> str:
    """Two good results are one clause; anything else is set apart."""
    good = verdict.comparison is Comparison.IDENTICAL and verdict.speed in (Speed.FASTER, Speed.EQUAL)
    return ", " if good else "; "


def _speed(verdict: LaneVerdict) -> tuple[str, str]:
    """The speed, and what is to be said of it."""
    if verdict.ratio is None:
        return "", f"{counted(verdict.kept_tokens, 'token')}, not timed against standard decoding"
    per_token = " per token" if verdict.texts_differ else ""
    shown = times(verdict.ratio)
    match verdict.speed:
        case Speed.FASTER:
            return f"{shown} faster{per_token}", ""
        case Speed.EQUAL:
            return f"{shown}{per_token}", "as fast as standard decoding"
        case Speed.SLOWER:
            return f"{shown}{per_token}", f"slower{_why(verdict)}"


def _why(verdict: LaneVerdict) -> str:
    if verdict.because is not None:
        return f", because {reason(verdict.because, verdict.rounds)}"
    if Caution.UNEXPLAINED_LOSS in verdict.cautions:
        return ", and no factor of the cost model explains it: measure again"
    return ""


def _cause(because: Because) -> str:
    number, share = fixed(because.number, 2), percent(because.number)
    match because.factor:
        case Factor.ALPHA:
            return f"only {share} of the tested draft tokens are accepted: if all were,"
        case Factor.DRAFT_COST:
            return f"the draft costs {number} target passes per token: with a free draft,"
        case Factor.VERIFY_COST:
            return f"checking {because.width:.3g} tokens at once costs {number} one-token passes: if width were free,"
        case Factor.OVERHEAD:
            return f"the work around the passes costs {number} target passes per round: without it,"
        case Factor.COVERAGE:
            return f"only {share} of the rounds had a draft: with one in each,"


def _text(verdict: LaneVerdict) -> str:
    compared = counted(verdict.compared_tokens, "token")
    match verdict.comparison:
        case Comparison.IDENTICAL:
            return f"the same {'first ' if verdict.compared_tokens < verdict.kept_tokens else ''}{compared}"
        case Comparison.PARTIAL:
            return f"the same as standard decoding as far as both got ({compared})"
        case Comparison.DIVERGED:
            return _difference(verdict.divergence)
        case Comparison.SAMPLED:
            return "sampled, so texts differ"
        case Comparison.SETTINGS:
            return "its settings differ, so texts may differ"
        case _:
            return "texts not compared"


def _difference(divergence: Divergence) -> str:
    return f"first difference at token {divergence.index + 1}{_apart(divergence)}"


def _apart(divergence: Divergence) -> str:
    if divergence.margin is None:
        return ""
    if divergence.tie:
        return ", where the target's top two were tied"
    gap = fixed(divergence.margin, 2) if divergence.margin >= 0.005 else "less than 0.01"
    return f", where the target's top two were {gap} apart"


def _paid(verdict: LaneVerdict) -> str:
    """The price of a speed-up; a loss has its reason instead, and a run that was stopped has not paid in full."""
    paid = verdict.price
    if paid is None or paid.target_passes == paid.kept_tokens:
        return ""
    return "" if verdict.speed is Speed.SLOWER or verdict.ended is Reason.CANCELLED else f": {price(paid)}"


def _closed(said: str, verdict: LaneVerdict) -> str:
    """The sentence with what is to be added to it."""
    return ". ".join((said, *_additions(verdict)))


def _additions(verdict: LaneVerdict) -> Iterator[str]:
    of = f"{verdict.accepted} of {verdict.tested}"
    if Caution.NOTHING_ACCEPTED in verdict.cautions:
        modelled = verdict.price is not None and verdict.price.draft_passes
        advice = ": check that draft and target belong together" if modelled else ""
        yield f"No tested draft token was accepted ({of}){advice}"
    if Caution.EVERYTHING_ACCEPTED in verdict.cautions:
        yield f"Every tested draft token was accepted ({of}): usual only for a draft like its target, or copied text"
    if verdict.spread is not None:
        spread = verdict.spread
        yield f"Median of {counted(spread.runs, 'run')}, {times(spread.lowest)} to {times(spread.highest)}"
