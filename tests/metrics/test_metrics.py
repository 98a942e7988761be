"""Every number of a Summary on traces worked by hand; the arithmetic stands beside the values."""

import math
from dataclasses import asdict, replace

import pytest
from support.golden import CURVE, GOLDEN, GOLDEN_RACE, LOSING, golden
from support.scripted import race, script, sourced, standard

from specviz.core.errors import TraceError
from specviz.core.settings import Settings
from specviz.metrics import Comparison, Factor, SourceCounts, Tally, summarize
from specviz.traces import (
    DraftToken,
    Kind,
    LaneFinished,
    Reason,
    Round,
    RoundDone,
    TargetToken,
    Token,
    Verdict,
    VerifyCurve,
)


def values(summary, *names):
    return {name: getattr(summary, name) for name in names}


def test_counts_of_a_chain():
    expected = {
        "kept_tokens": 10,  # 4 + 2 + 1 + 1 + 2
        "rounds": 5,
        "drafting_rounds": 4,
        "target_passes": 5,
        "draft_passes": 11,
        "drafted": 11,  # 3 + 3 + 0 + 2 + 3
        "accepted": 6,  # 3 + 1 + 0 + 0 + 2
        "tested": 8,  # 6 accepted + 2 corrections
        "wasted_drafts": 5,  # 11 - 6
        "positions_computed": 16,  # 4 + 4 + 1 + 3 + 4
        "wasted_positions": 6,  # 16 - 10
    }
    assert values(golden()["draft"], *expected) == expected


def test_rates_of_a_chain():
    expected = {
        "acceptance": 6 / 11,
        "alpha": 0.75,  # 6 / 8
        "alpha_overlap": 0.6,  # 4.8 / 8
        "tau": 2.0,  # 10 / 5
        "coverage": 0.8,  # 4 / 5
        "mean_drafted": 2.75,  # 11 / 4
        "mean_accepted": 1.5,  # 6 / 4
    }
    assert values(golden()["draft"], *expected) == pytest.approx(expected)


def test_acceptance_by_position_conditional_and_as_vllm_counts():
    summary = golden()["draft"]
    # position 1 was reached by 4 rounds, 2 by the three that passed it, 3 by one: an untested draft is not reached
    assert summary.reached_per_position == (4, 3, 1)
    assert summary.accepted_per_position == pytest.approx((3 / 4, 2 / 3, 1 / 1))
    assert summary.accepted_per_position_vllm == pytest.approx((3 / 4, 2 / 4, 1 / 4))
    # 0, 1, 2 and 3 accepted, once each; one round drafted two, three drafted three
    assert summary.accepted_lengths == (1, 1, 1, 1)
    assert summary.drafted_lengths == (0, 0, 1, 3)


@pytest.mark.parametrize("lane", [GOLDEN, script("AAAAAb", "RUUUUc", "AARUc", "s", "ARc")])
def test_no_position_is_reached_more_often_than_the_one_before(lane):
    summary = summarize(race({"standard": standard(3), "draft": lane}))["draft"]
    reached = summary.reached_per_position
    assert list(reached) == sorted(reached, reverse=True)
    assert sum(reached) == summary.tested
    assert reached[0] == summary.drafting_rounds


def test_clocks():
    expected = {
        "draft_seconds": 0.11,
        "verify_seconds": 0.58,
        "other_seconds": 0.10,
        "seconds": 0.79,
        "telemetry_seconds": 0.025,
        "prefill_seconds": 0.75,  # 0.5 shared + 0.25 of the draft
        "draft_prefill_seconds": 0.25,
        "first_token_seconds": 0.91,  # 0.75 + first round 0.16
        "tokens_per_second": 12.65823,  # 10 / 0.79
        "speedup": 1.51899,  # standard 1.2 / 10 over 0.79 / 10
    }
    assert values(golden()["draft"], *expected) == pytest.approx(expected, abs=1e-5)


def test_costs_and_prediction():
    expected = {
        "one_token_pass_seconds": 0.1,
        "c": 0.1,  # 0.11 / 11 / 0.1
        "overhead_seconds": 0.02,
        "overhead": 0.2,
        # tokens .8 (1 + .75 + .5 + .375) + .2 = 2.3; cost .8 (.275 + v(3.75) 1.275) + .2 + .2 = 1.64
        "predicted_speedup": 1.402439,
    }
    assert values(golden()["draft"], *expected) == pytest.approx(expected, abs=1e-6)


def test_the_standard_lane_is_its_own_measure():
    summary = golden()["standard"]
    expected = {
        "kept_tokens": 10,
        "target_passes": 10,
        "draft_passes": 0,
        "drafted": 0,
        "accepted": 0,
        "tested": 0,
        "tau": 1.0,
        "coverage": 0.0,
        "wasted_positions": 0,
        "acceptance": None,
        "alpha": None,
        "c": None,
        "because": None,
        "predicted_speedup": None,
        "speedup": 1.0,
        "first_token_seconds": 0.62,  # 0.5 + 0.1 + 0.02
        "identical_to_standard": True,
    }
    assert values(summary, *expected) == expected
    assert summary.standard and not golden()["draft"].standard


def test_prediction_is_pending_until_the_curve_is_measured():
    pending = summarize(race(GOLDEN_RACE))["draft"]
    assert (pending.predicted_speedup, pending.best_k) == (None, None)
    # the reason is given all the same, from the passes of the run itself
    assert pending.because.factor is Factor.ALPHA
    # (.8 T + .2) / (.8 (.1 k + 1 + .1 k) + .4): k = 3 2.4 / 1.68, 4 2.7 / 1.84, 5 2.925 / 2
    best = golden()["draft"]
    assert (best.best_k, best.best_speedup) == (4, pytest.approx(2.7 / 1.84))


def test_the_median_pass_is_not_moved_by_one_slow_pass():
    slow = [*standard(4), *script("s", times=(0.0, 9.9, 0.0))]
    assert summarize(race({"standard": slow, "draft": GOLDEN}))["draft"].one_token_pass_seconds == 0.1
    even = [*standard(1), *script("s", times=(0.0, 0.3, 0.0))]
    assert summarize(race({"standard": even}))["standard"].one_token_pass_seconds == pytest.approx(0.2)


def test_a_served_lane_knows_how_many_were_drafted_but_not_which():
    accepted = tuple(DraftToken(Token(n), Verdict.ACCEPTED) for n in (0, 1))
    correction, bonus = TargetToken(Token(2), Kind.CORRECTION), TargetToken(Token(7), Kind.BONUS)
    four = tuple(DraftToken(Token(n), Verdict.ACCEPTED) for n in (3, 4, 5, 6))
    served = [
        Round(0, 4, 4, accepted, correction, other_seconds=0.2, draft_passes=None),
        Round(1, 4, 4, four, bonus, other_seconds=0.2, draft_passes=None),
    ]
    summary = summarize(race({"standard": standard(8), "served": served}))["served"]
    expected = {
        "drafted": 8,
        "accepted": 6,
        "tested": 7,
        "acceptance": 0.75,
        "alpha": 6 / 7,
        "alpha_overlap": None,
        "tau": 4.0,
        "wasted_drafts": 2,
        "wasted_positions": 2,
        "reached_per_position": (2, 2, 2, 1),
        "accepted_per_position": (1.0, 1.0, 0.5, 1.0),
        "draft_passes": None,
        "draft_seconds": None,
        "seconds": 0.4,
        "c": None,
        "because": None,
        "speedup": pytest.approx(2.0),
    }
    assert values(summary, *expected) == expected


def test_an_unknown_number_of_drafts_leaves_alpha_known():
    accepted = (DraftToken(Token(0), Verdict.ACCEPTED),)
    served = [Round(0, 4, None, accepted, TargetToken(Token(1), Kind.CORRECTION))]
    summary = summarize(race({"standard": standard(2), "served": served}))["served"]
    expected = {"drafted": None, "acceptance": None, "wasted_drafts": None, "alpha": 0.5, "coverage": 1.0}
    assert values(summary, *expected) == expected
    assert (summary.seconds, summary.tokens_per_second, summary.speedup) == (None, None, None)


def tree_round():
    """Two roots, the second accepted; of its two children the first accepted; that one's child rejected."""
    shape = [(-1, "R", 0.25), (-1, "A", 0.5), (0, "U", None), (1, "A", 0.5), (1, "R", 0.25), (3, "R", 0.125)]
    verdicts = {"A": Verdict.ACCEPTED, "R": Verdict.REJECTED, "U": Verdict.UNTESTED}
    kept = iter((0, 1))
    drafts = tuple(
        DraftToken(Token(next(kept) if letter == "A" else 90), verdicts[letter], parent, overlap=overlap)
        for parent, letter, overlap in shape
    )
    target = TargetToken(Token(2), Kind.CORRECTION)
    times = {"draft_seconds": 0.0, "verify_seconds": 0.2, "other_seconds": 0.0}
    return Round(0, 6, 6, drafts, target, **times)


def test_a_tree_counts_nodes_drafted_and_depths_tested():
    summary = summarize(race({"standard": standard(3), "tree": [tree_round()]}, curve=CURVE))["tree"]
    expected = {
        "drafted": 6,
        "accepted": 2,
        "tested": 3,  # depths 1 and 2 accepted, 3 corrected
        "kept_tokens": 3,
        "wasted_drafts": 4,
        "positions_computed": 7,
        "wasted_positions": 4,
        "acceptance": 1 / 3,
        "alpha": 2 / 3,
        "accepted_per_position": (1.0, 1.0, 0.0),
        "reached_per_position": (1, 1, 1),
        "accepted_lengths": (0, 0, 1),
        "drafted_lengths": (0, 0, 0, 1),
        "mean_drafted": 6.0,
        "mean_depth": 3.0,
        "mean_accepted": 2.0,
        "best_k": None,
    }
    assert values(summary, *expected) == expected
    # siblings add: .75 at depth 1, .75 at depth 2, .125 at depth 3
    assert summary.alpha_overlap == pytest.approx(1.625 / 3)
    # tokens 1 + 1 + 1 + 0 at depth 3; cost v(7) = 1.6
    assert summary.predicted_speedup == pytest.approx(3 / 1.6)


def test_drafted_and_accepted_are_counted_by_source_the_best_first():
    rounds = sourced(script("AAb", "ARUc", "Rc"), "table", "match", "match", "table", "alone", None)
    summary = summarize(race({"standard": standard(6), "draft": rounds}))["draft"]
    assert summary.sources == (
        SourceCounts("match", 2, 2),
        SourceCounts("table", 2, 1),
        SourceCounts("alone", 1, 0),
    )
    assert [one.acceptance for one in summary.sources] == [1.0, 0.5, 0.0]


def test_a_draft_that_names_no_source_has_no_counts_by_source():
    assert all(summary.sources == () for summary in golden().values())


def test_a_sampled_lane_is_compared_by_speed_alone():
    sampled = Settings(temperature=0.7)
    events = race(GOLDEN_RACE, settings={"standard": sampled, "draft": sampled}, curve=CURVE)
    summaries = summarize(events)
    expected = {"sampled": True, "identical_to_standard": None, "first_divergence": None, "alpha": 0.75}
    assert values(summaries["draft"], *expected) == expected
    assert summaries["draft"].comparison is Comparison.SAMPLED
    assert summaries["draft"].speedup == pytest.approx(1.51899, abs=1e-5)
    assert summaries["standard"].identical_to_standard is None


@pytest.mark.parametrize("reason", [Reason.CANCELLED, None])
def test_a_lane_without_rounds_has_no_rates(reason):
    events = race({"standard": standard(3), "draft": []}, reasons={"draft": reason}, curve=CURVE)
    summary = summarize(events)["draft"]
    counts = {"kept_tokens": 0, "rounds": 0, "drafted": 0, "accepted": 0, "tested": 0, "text": "", "token_ids": ()}
    assert values(summary, *counts) == counts
    undefined = dict.fromkeys(
        ("alpha", "acceptance", "tau", "coverage", "c", "seconds", "draft_seconds", "tokens_per_second", "speedup")
        + ("first_token_seconds", "predicted_speedup", "because", "identical_to_standard", "mean_drafted"),
    )
    assert values(summary, *undefined) == undefined
    assert summary.finish_reason == (reason and "cancelled")


def numbers_in(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [number for item in value for number in numbers_in(item)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("times", [(0.0, 0.0, 0.0), (1e308, 1e308, 1e308), (5e-324, 5e-324, 5e-324)])
def test_no_number_is_ever_infinite_or_nan(times):
    lanes = {"standard": script("s", "s", times=times), "draft": script("ARc", "AAb", times=times)}
    for summary in summarize(race(lanes, curve=VerifyCurve((1, 2), (0.0, 1e308), (0.0, 0.0)))).values():
        assert all(math.isfinite(number) for number in numbers_in(asdict(summary)))


def test_a_clock_that_has_not_moved_gives_no_rate():
    lanes = {"standard": script("s", times=(0.0, 0.0, 0.0))}
    summary = summarize(race(lanes))["standard"]
    assert (summary.seconds, summary.tokens_per_second, summary.speedup) == (0.0, None, None)


def test_time_without_a_token_gives_no_rate_rather_than_zero():
    summary = summarize(race({"standard": standard(1), "draft": script("U")}))["draft"]
    assert (summary.kept_tokens, summary.seconds, summary.tokens_per_second) == (0, 0.1, None)


def test_a_round_that_drafted_nothing_needs_no_draft_time():
    rounds = script("AAb", "s", times=((0.03, 0.1, 0.0), (None, 0.1, 0.0)))
    summary = summarize(race({"standard": standard(4), "draft": rounds}))["draft"]
    assert (summary.draft_seconds, summary.seconds) == (0.03, pytest.approx(0.23))
    # but a draft of unknown time makes the total unknown
    rounds = script("AAb", "Ab", times=((0.03, 0.1, 0.0), (None, 0.1, 0.0)))
    assert summarize(race({"standard": standard(5), "draft": rounds}))["draft"].draft_seconds is None


def test_speedup_below_one_is_shown_below_one():
    # copying: 9 tokens a round of 0.16 s; prose: nothing found, each token 0.105 s against 0.1
    copying = script(*["AAAAAAAAb"] * 4, times=(0.0, 0.15, 0.01))
    prose = script(*["s"] * 36, times=(0.004, 0.1, 0.001))
    lanes = {"standard": standard(36), "copying": copying, "prose": prose}
    summaries = summarize(race(lanes, drafts=dict.fromkeys(("copying", "prose"), "prompt-lookup")))
    assert summaries["copying"].speedup == pytest.approx(5.625)
    assert summaries["copying"].tau == 9.0
    assert summaries["prose"].speedup == pytest.approx(0.1 / 0.105)
    assert summaries["prose"].because.factor is Factor.COVERAGE


@pytest.mark.parametrize("factor", LOSING)
def test_a_slower_lane_names_what_slows_it(factor):
    spellings, times, (widths, seconds) = LOSING[factor]
    lanes = {"standard": standard(20), "draft": script(*spellings, times=times)}
    summary = summarize(race(lanes, curve=VerifyCurve(widths, seconds, (0.0, 0.0))))["draft"]
    assert summary.speedup < 1
    assert summary.because.factor is factor
    assert summary.because.would_be > summary.predicted_speedup


def test_a_tally_asked_after_each_event_ends_like_summarize():
    tally = Tally()
    kept = []
    for event in race(GOLDEN_RACE, own_prefill={"draft": 0.25}, curve=CURVE):
        tally.add(event)
        kept.append(tally.summary("draft").kept_tokens)
    assert tally.summaries() == summarize(race(GOLDEN_RACE, own_prefill={"draft": 0.25}, curve=CURVE))
    assert kept[-1] == 10 and kept == sorted(kept) and {0, 4, 6, 7, 8, 10} == set(kept)


def test_a_round_of_a_lane_that_was_never_announced_is_refused():
    with pytest.raises(TraceError, match="'ghost'"):
        summarize([*race(GOLDEN_RACE), RoundDone("ghost", GOLDEN[0])])


def test_the_text_is_the_finished_one_or_what_the_tokens_say_so_far():
    unfinished = race({"standard": standard(2)}, reasons={"standard": None})
    assert summarize(unfinished)["standard"].text == " 0 1"
    finished = [*race({"standard": standard(2)}), LaneFinished("standard", Reason.STOP, " 0")]
    assert summarize(finished)["standard"].text == " 0"


def test_an_absurd_trace_is_counted_without_a_crash():
    odd = [replace(GOLDEN[0], drafted=10**400), replace(GOLDEN[1], drafted=-3), replace(GOLDEN[2], drafted=10**9)]
    summary = summarize(race({"standard": standard(3), "draft": odd}, curve=VerifyCurve((1, 2), (0.1,), ())))["draft"]
    assert summary.predicted_speedup is None
    assert len(summary.reached_per_position) <= 64
