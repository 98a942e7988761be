"""What is said of a lane: its verdict near 1, and what holds a win back."""

from dataclasses import replace

import pytest
from support.scripted import race, script, standard
from test_metrics import LOSING, golden

from specviz.core.settings import Settings
from specviz.metrics import Factor, policy_bias, summarize, times, verdict
from specviz.metrics.words import holds_back
from specviz.traces import VerifyCurve


def test_a_win_says_what_holds_it_back_most():
    # 1.52x; with every draft accepted .8 (1 + 2.75) + .2 = 3.2 tokens a round of 1.64: 1.95x
    assert holds_back(golden()["draft"]) == (
        "What holds it back most: only 75 % of the tested draft tokens are accepted: if all were, it would be 2.0x."
    )


@pytest.mark.parametrize("measured", [1.951, 1.97, 2.4])
def test_nothing_is_said_to_hold_back_a_lane_that_already_has_the_speed_promised(measured):
    assert holds_back(replace(golden()["draft"], speedup=measured)) is None


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(1.25, "1.3x"), (2.25, "2.3x"), (0.75, "0.8x"), (0.25, "0.3x"), (1.05, "1.1x"), (0.97, "0.97x"), (0.04, "0.04x")],
)
def test_a_tie_is_rounded_up_as_a_browser_does(ratio, shown):
    assert times(ratio) == shown


def test_a_policy_of_k_is_said_to_choose_what_acceptance_is_measured_on():
    def bias(policy, rounds=("ARc", "Ab")):
        events = race({"standard": standard(4), "draft": script(*rounds)}, {"draft": Settings(k_policy=policy)})
        return policy_bias(summarize(events)["draft"])

    assert bias("fixed") is None and bias("adaptive", ("s",)) is None
    assert "unsure positions are left undrafted" in bias("confidence-0.4") and "confidence-0.4" in bias(
        "confidence-0.4"
    )
    assert "drafts less where drafts were rejected" in bias("adaptive")


def test_a_loss_and_the_standard_lane_have_no_such_sentence():
    spellings, times, (widths, seconds) = LOSING[Factor.ALPHA]
    lanes = {"standard": standard(20), "draft": script(*spellings, times=times)}
    summaries = summarize(race(lanes, curve=VerifyCurve(widths, seconds, (0.0, 0.0))))
    assert "slower, because" in verdict(summaries["draft"])
    assert holds_back(summaries["draft"]) is None
    assert holds_back(summaries["standard"]) is None


def test_a_lane_as_fast_as_standard_that_drafted_nothing_says_so():
    lanes = {"standard": standard(10), "draft": script(*["s"] * 10)}
    summary = summarize(race(lanes, drafts={"draft": "prompt-lookup"}))["draft"]
    assert verdict(summary).startswith("1.00x: as fast as standard decoding")
    assert holds_back(summary) == "What holds it back most: the draft proposed nothing in any of its 10 rounds."


@pytest.mark.parametrize(
    ("speedup", "begins"),
    [
        (0.94, "0.9x: slower"),
        (0.97, "0.97x: slower"),
        (0.996, "1.00x: as fast as standard decoding"),
        (1.004, "1.00x: as fast as standard decoding"),
        (1.03, "1.03x faster"),
        (1.06, "1.1x faster"),
    ],
)
def test_near_one_a_verdict_never_says_faster_of_what_is_not(speedup, begins):
    assert verdict(replace(golden()["draft"], speedup=speedup)).startswith(begins)
