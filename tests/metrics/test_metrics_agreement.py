"""When two lanes wrote the same, when not, and when nobody can say; and the verdict in words."""

import pytest
from support.scripted import race, script, standard

from specviz.core.settings import Settings
from specviz.metrics import Caution, Comparison, summarize, verdict_of, words
from specviz.traces import Reason, VerifyCurve

FAST = (0.0, 0.12, 0.0)


def draft_summary(draft, tokens=6, reasons=None, settings=None, margin=None, curve=None, name="draft"):
    lanes = {"standard": standard(tokens, margin=margin), name: draft}
    return summarize(race(lanes, settings=settings, reasons=reasons, curve=curve))[name]


def said(summary):
    return words.sentence(verdict_of(summary))


def outcome(summary):
    return (summary.comparison, summary.identical_to_standard, summary.first_divergence, summary.compared_tokens)


def test_the_same_ids_are_identical():
    assert outcome(draft_summary(script("AAb", "ARc", "s"))) == (Comparison.IDENTICAL, True, None, 6)


def test_a_differing_id_is_a_divergence_with_the_targets_margin_there():
    summary = draft_summary(script("AAb", "ARc", "s", ids=(0, 1, 2, 3, 77, 5)), margin=0.03)
    assert outcome(summary) == (Comparison.DIVERGED, False, 4, 4)
    assert summary.divergence_margin == 0.03


def test_the_lanes_own_margin_stands_in_where_the_standard_lane_has_none():
    draft = script("AAb", "ARc", "s", ids=(0, 1, 2, 3, 77, 5), margin=0.5)
    assert draft_summary(draft).divergence_margin == 0.5
    accepted = script("AAb", "ARc", "s", ids=(0, 1, 2, 77, 4, 5), margin=0.5)
    assert draft_summary(accepted).divergence_margin is None


def test_a_divergence_is_certain_even_if_the_lane_was_stopped():
    summary = draft_summary(script("AAb", ids=(0, 7, 8)), reasons={"draft": Reason.CANCELLED})
    assert outcome(summary) == (Comparison.DIVERGED, False, 1, 1)


@pytest.mark.parametrize("reason", [Reason.CANCELLED, Reason.ERROR, None])
def test_a_lane_broken_off_early_proves_nothing(reason):
    summary = draft_summary(script("AAb"), reasons={"draft": reason})
    assert outcome(summary) == (Comparison.PARTIAL, None, None, 3)


def test_a_standard_lane_broken_off_early_proves_nothing():
    summary = draft_summary(script("AAb", "AAb"), tokens=4, reasons={"standard": Reason.CANCELLED})
    assert outcome(summary) == (Comparison.PARTIAL, None, None, 4)


@pytest.mark.parametrize("reason", [Reason.LENGTH, Reason.CONTEXT])
def test_a_lane_cut_by_its_length_is_compared_as_far_as_it_goes(reason):
    settings = {"draft": Settings(max_new_tokens=3)}
    summary = draft_summary(script("AAb"), reasons={"draft": reason}, settings=settings)
    assert outcome(summary) == (Comparison.IDENTICAL, True, None, 3)


def test_a_text_that_ends_where_the_other_goes_on_diverges_there():
    summary = draft_summary(script("AAb"), reasons={"draft": Reason.EOS})
    assert outcome(summary) == (Comparison.DIVERGED, False, 3, 3)


@pytest.mark.parametrize(
    "changed",
    [{"repetition_penalty": 1.1}, {"presence_penalty": 1}, {"frequency_penalty": 1}, {"stop": ("x",)}]
    + [{"ignore_eos": True}],
)
def test_settings_that_decide_the_text_make_lanes_incomparable(changed):
    summary = draft_summary(script("AAb", "ARc", "s"), settings={"draft": Settings(**changed)})
    assert outcome(summary) == (Comparison.SETTINGS, None, None, 0)
    assert "per token; its settings differ, so texts may differ" in said(summary)


@pytest.mark.parametrize("changed", [{"k": 8}, {"seed": 3}, {"top_k": 5}, {"top_p": 0.5}, {"telemetry": False}])
def test_settings_that_greedy_decoding_ignores_do_not(changed):
    summary = draft_summary(script("AAb", "AAb"), settings={"draft": Settings(**changed)})
    assert summary.identical_to_standard is True


def test_unknown_ids_are_not_compared():
    summary = draft_summary(script("AAb", "AAb", ids=(0, None, 2, 3, 4, 5)))
    assert outcome(summary) == (Comparison.UNKNOWN, None, None, 0)


# 128 tokens: 40 rounds of two drafts, one accepted, and 16 of two accepted and a bonus; see each time below
HALF = script(*["ARc"] * 40, *["AAb"] * 16, times=(0.01, 0.1, 0.017))
PAID = "56 target passes instead of 128, plus 112 draft passes"


def test_verdict_of_a_faster_lane():
    # standard 12.8 s; 56 rounds of 0.127 s = 7.112 s
    assert said(draft_summary(HALF, tokens=128)) == "1.8× faster, the same 128 tokens: " + PAID


def test_verdict_of_a_sampled_lane():
    sampled = Settings(temperature=1)
    summary = draft_summary(HALF, tokens=128, settings={"standard": sampled, "draft": sampled})
    assert said(summary) == "1.8× faster per token; sampled, so texts differ: " + PAID


def test_verdict_of_a_divergence_gives_the_position_from_one_and_the_gap():
    ids = [*range(56), 777, *range(57, 128)]
    slow = script(*["ARc"] * 40, *["AAb"] * 16, times=(0.01, 0.1, 0.017), ids=ids)
    expected = "1.8× faster; first difference at token 57, where the target's top two were 0.03 apart: " + PAID
    assert said(draft_summary(slow, tokens=128, margin=0.03)) == expected


@pytest.mark.parametrize(
    ("margin", "told"),
    [(None, "token 1"), (0.0, "token 1, where the target's top two were tied")]
    + [(0.0002, "token 1, where the target's top two were less than 0.01 apart")],
)
def test_a_gap_is_said_only_where_it_is_known(margin, told):
    summary = draft_summary(script("ARc", "ARc", ids=(9, 9, 9, 9)), tokens=4, margin=margin)
    assert words.badge(verdict_of(summary)).text == "first difference at " + told
    assert f"; first difference at {told}: " in said(summary)


def test_verdict_of_a_slower_lane_gives_the_reason_and_its_number():
    # 4 tokens for .96 + .1 s against .4: slower; alpha 15 / 20, c .24 / .1, S = 4 / (4 * 2.4 + 1), free: 4 / 1
    slow = script(*["AAARc"] * 5, times=(0.96, 0.1, 0.0))
    summary = draft_summary(slow, tokens=20, curve=VerifyCurve((1, 5), (0.1, 0.1), (0.0, 0.0)))
    expected = (
        "0.4×: slower, because the draft costs 2.40 target passes per token: with a free draft, it would be "
        "4.0×; the same 20 tokens"
    )
    assert said(summary) == expected


def test_verdict_of_a_draft_that_found_nothing():
    idle = script(*["s"] * 6, times=(0.01, 0.1, 0.0))
    assert said(draft_summary(idle)) == (
        "0.9×: slower, because the draft proposed nothing in any of its 6 rounds; the same 6 tokens"
    )


def test_verdict_of_a_tie_does_not_call_it_faster():
    assert said(draft_summary(script(*["s"] * 6))) == "1.00×: as fast as standard decoding, the same 6 tokens"


def test_verdict_counts_one_token_in_the_singular():
    summary = draft_summary(script("s", times=(0.0, 0.05, 0.0)), tokens=1)
    assert said(summary) == "2.0× faster, the same 1 token"
    standard_lane = summarize(race({"standard": standard(1)}))["standard"]
    assert said(standard_lane) == "1 token in 1 target pass"
    assert said(summarize(race({"standard": standard(2)}))["standard"]) == "2 tokens in 2 target passes"


def test_verdict_of_an_error_repeats_its_message():
    summary = draft_summary(script("AAb"), reasons={"draft": Reason.ERROR})
    assert said(summary) == "ended by an error after 3 tokens: out of memory"


def test_verdict_of_a_lane_that_was_stopped_or_still_runs():
    stopped = draft_summary(script("ARc", "s", times=FAST), reasons={"draft": Reason.CANCELLED})
    tail = "the same as standard decoding as far as both got (3 tokens)"
    assert said(stopped) == "stopped after 3 tokens: 1.2× faster; " + tail
    running = draft_summary(script("ARc", "s", times=FAST), reasons={"draft": None, "standard": None})
    assert said(running) == f"so far 1.2× faster; {tail}: 2 target passes instead of 3, plus 2 draft passes"
    assert said(draft_summary([], reasons={"draft": None})) == "no tokens yet"
    assert said(draft_summary([], reasons={"draft": Reason.CANCELLED})) == "stopped before the first token"


def test_exactly_all_or_none_accepted_is_a_warning():
    every = said(draft_summary(script("AAb", "AAb", times=FAST)))
    assert "Every tested draft token was accepted (4 of 4)" in every
    none = said(draft_summary(script("RUc", "RUc", times=FAST), tokens=2))
    assert "No tested draft token was accepted (0 of 2)" in none
    assert "tested draft token was" not in said(draft_summary(script("AAb", "ARc", "s", times=FAST)))
    running = draft_summary(script("AAb", times=FAST), reasons={"draft": None})
    assert "tested draft token was" not in said(running)


def test_after_stop_the_headline_the_sentence_and_the_badge_agree():
    verdict = verdict_of(draft_summary(script("ARc", "s", times=FAST), reasons={"draft": Reason.CANCELLED}))
    headline = words.headline(verdict)
    assert headline.big == "1.2× faster"
    assert headline.rest == "stopped after 3 tokens: the same as standard decoding as far as both got (3 tokens)"
    assert words.badge(verdict) == words.Badge("the same as far as both got (3 tokens)")


def test_cautions_are_values():
    def cautions(*spellings, tokens=6):
        return verdict_of(draft_summary(script(*spellings, times=FAST), tokens=tokens)).cautions

    assert cautions("AAb", "AAb") == (Caution.EVERYTHING_ACCEPTED,)
    assert cautions("RUc", "RUc", tokens=2) == (Caution.NOTHING_ACCEPTED,)
    assert cautions("AAb", "ARc", "s") == ()
