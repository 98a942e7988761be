"""What is said of a lane: its verdict near 1, and what holds a win back."""

from dataclasses import replace

import pytest
from support.golden import LOSING, golden
from support.scripted import race, script, standard

from specviz.core.settings import K_POLICIES, Settings
from specviz.metrics import Factor, Speed, summarize, times, verdict_of, words
from specviz.traces import VerifyCurve


def said(summary):
    return words.sentence(verdict_of(summary))


def holds_back(summary):
    return words.holds_back(verdict_of(summary))


def test_a_win_says_what_holds_it_back_most():
    # 1.52x; with every draft accepted .8 (1 + 2.75) + .2 = 3.2 tokens a round of 1.64: 1.95x
    assert holds_back(golden()["draft"]) == (
        "What holds it back most: only 75% of the tested draft tokens are accepted: if all were, it would be 2.0×."
    )


@pytest.mark.parametrize("measured", [1.951, 1.97, 2.4])
def test_nothing_is_said_to_hold_back_a_lane_that_already_has_the_speed_promised(measured):
    assert holds_back(replace(golden()["draft"], speedup=measured)) is None


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(1.25, "1.3×"), (2.25, "2.3×"), (0.75, "0.8×"), (0.25, "0.3×"), (1.05, "1.1×"), (0.97, "0.97×"), (0.04, "0.04×")],
)
def test_a_tie_is_rounded_up_as_a_browser_does(ratio, shown):
    assert times(ratio) == shown


def test_a_policy_of_k_is_said_to_choose_what_acceptance_is_measured_on():
    def bias(policy, rounds=("ARc", "Ab")):
        events = race({"standard": standard(4), "draft": script(*rounds)}, {"draft": Settings(k_policy=policy)})
        return words.policy_bias(verdict_of(summarize(events)["draft"]))

    assert bias("fixed") is None and bias("adaptive", ("s",)) is None
    assert "unsure positions are left undrafted" in bias("confidence-0.4")
    assert "confidence-0.4" in bias("confidence-0.4")
    assert "drafts less where drafts were rejected" in bias("adaptive")


def test_a_loss_and_the_standard_lane_have_no_such_sentence():
    spellings, times, (widths, seconds) = LOSING[Factor.ALPHA]
    lanes = {"standard": standard(20), "draft": script(*spellings, times=times)}
    summaries = summarize(race(lanes, curve=VerifyCurve(widths, seconds, (0.0, 0.0))))
    assert "slower, because" in said(summaries["draft"])
    assert holds_back(summaries["draft"]) is None
    assert holds_back(summaries["standard"]) is None


def test_a_lane_as_fast_as_standard_that_drafted_nothing_says_so():
    lanes = {"standard": standard(10), "draft": script(*["s"] * 10)}
    summary = summarize(race(lanes, drafts={"draft": "prompt-lookup"}))["draft"]
    assert said(summary).startswith("1.00×: as fast as standard decoding")
    assert holds_back(summary) == "What holds it back most: the draft proposed nothing in any of its 10 rounds."


@pytest.mark.parametrize(
    ("speedup", "begins"),
    [
        (0.94, "0.9×: slower"),
        (0.97, "0.97×: slower"),
        (0.996, "1.00×: as fast as standard decoding"),
        (1.004, "1.00×: as fast as standard decoding"),
        (1.03, "1.03× faster"),
        (1.06, "1.1× faster"),
    ],
)
def test_near_one_a_verdict_never_says_faster_of_what_is_not(speedup, begins):
    assert said(replace(golden()["draft"], speedup=speedup)).startswith(begins)


def test_every_policy_that_chooses_k_says_how():
    assert set(words._CHOICE) == {name for name, level in K_POLICIES.items() if level is not None}


def test_the_headline_is_the_sentence_with_the_speed_set_apart():
    for speedup in (None, 0.94, 1.0, 1.6):
        verdict = verdict_of(replace(golden()["draft"], speedup=speedup))
        headline, sentence = words.headline(verdict), words.sentence(verdict)
        assert sentence.startswith(headline.big) and sentence.endswith(headline.rest)
        assert bool(headline.big) == (speedup is not None)
    assert words.headline(verdict).big == "1.6× faster"


def test_a_speed_is_a_value_that_follows_what_is_shown():
    shown = {0.994: Speed.SLOWER, 0.996: Speed.EQUAL, 1.004: Speed.EQUAL, 1.006: Speed.FASTER, None: None}
    for speedup, speed in shown.items():
        assert verdict_of(replace(golden()["draft"], speedup=speedup)).speed is speed
