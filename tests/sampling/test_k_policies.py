"""How much of k is drafted: each policy as worked by hand, exact in every case, with state of one run alone."""

from functools import partial

import pytest
import torch
from support.law import FILTERED, PLAIN, PROMPT, RUNS, exact_law, p_value, table_models
from support.tiny import draft_models, every_draft, ids_of, rounds_of, standard_ids, target

from specviz import Settings, decode, make_draft
from specviz.core.errors import InputError
from specviz.core.settings import K_POLICIES, k_policy
from specviz.drafting.drawn_block import DrawnBlock
from specviz.sampling.k_policies import AdaptivePolicy, StopRule, block_policy, stop_rule
from specviz.sampling.sampler import distribution, draw
from specviz.traces import Kind

pytestmark = pytest.mark.usefixtures("one_thread")

LEAST, FOUND_OUT = 1e-4, 1e-8
POLICIES = ("confidence-0.25", "entropy-2", "adaptive", "adaptive-0.8")


# spelling


def test_a_policy_is_spelt_by_its_name_and_a_level():
    assert k_policy("fixed") == ("fixed", None)
    assert k_policy("confidence") == ("confidence", 0.4) and k_policy("confidence-0.55") == ("confidence", 0.55)
    assert k_policy("entropy-3") == ("entropy", 3.0) and k_policy("adaptive-1e-1") == ("adaptive", 0.1)
    for name in K_POLICIES:
        assert Settings(k_policy=name).k_policy == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("clever", "'clever' is not known; use one of: fixed, confidence-0.4"),
        ("fixed-3", "'fixed-3' is not known"),
        ("", "is not known"),
        (None, "is not known"),
        ("confidence-", "level of 'confidence' must be a number from 0.0 to 1.0"),
        ("confidence-high", "must be a number"),
        ("confidence-1.5", "must lie between 0.0 and 1.0; 1.5 does not"),
        ("confidence--0.5", "must lie between"),
        ("entropy-nan", "must be a number"),
        ("adaptive-0", "must lie between 0.01 and 0.99"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_in_words(text, words):
    with pytest.raises(InputError) as caught:
        Settings(k_policy=text)
    assert words in str(caught.value)


# rules by hand


def test_a_stop_rule_judges_the_distribution_and_not_a_token():
    probs = torch.tensor([[0.5, 0.3, 0.2], [0.35, 0.35, 0.3], [0.0, 0.0, 1.0]])
    assert StopRule("confidence", 0.4).unsure(probs).tolist() == [False, True, False]
    assert StopRule("confidence", 0.5).unsure(probs).tolist() == [False, True, False]  # as likely as asked is enough
    # .5 ln 2 + .3 ln 3.33 + .2 ln 5 = 1.0297; for the second row 1.0961; a certain one has none
    assert StopRule("entropy", 1.03).unsure(probs).tolist() == [False, True, False]
    assert StopRule("entropy", 1.02).unsure(probs).tolist() == [True, True, False]
    assert stop_rule(Settings()) is None and stop_rule(Settings(k_policy="adaptive")) is None


def test_an_adaptive_k_is_what_the_acceptance_so_far_makes_worth_while():
    """At a level of 1/4: .75^4 = .32 and .75^5 = .24; (2.7 + 0) / (3.6 + 1) = .587, squared .34, cubed .20."""
    policy = AdaptivePolicy(8, 0.25)
    assert policy.ask() == (4, "k cut to 4: of the drafts tested lately 75% were accepted")
    policy.learn(0, 0)
    assert policy.ask()[0] == 4  # a round that tested nothing teaches nothing
    policy.learn(0, 1)
    assert policy.alpha == pytest.approx(2.7 / 4.6) and policy.ask()[0] == 2
    for _ in range(9000):  # alpha is 0 in the end
        policy.learn(0, 1)
    assert policy.ask()[0] == 1  # never none, or it could not find out that the text has become easy
    grown = []
    for _ in range(60):
        asked = policy.ask()[0]
        grown.append(asked)
        policy.learn(asked, asked)
    assert grown == sorted(grown) and grown[-1] == 8 and policy.ask()[1] is None


def test_the_first_block_of_an_adaptive_run_is_no_longer_than_k():
    assert block_policy(Settings(k=2, k_policy="adaptive")).ask() == (2, None)
    assert block_policy(Settings(k=0, k_policy="adaptive")).ask() == (0, None)
    assert block_policy(Settings(k=7)).ask() == (7, None)


# exactness


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("architecture", ("llama", "gpt2"))
def test_greedy_text_is_that_of_standard_decoding(policy, architecture):
    lm, prompt = target(architecture), [3, 9, 4, 3, 9, 4, 3]
    expected = standard_ids(lm, prompt, max_new_tokens=24)
    shorter = 0
    for name, strategy in every_draft(lm, {"perturbed": draft_models(architecture)["perturbed"]}):
        for k in (2, 7):
            rounds = rounds_of(lm, strategy, prompt, k=k, k_policy=policy, max_new_tokens=24, telemetry=False)
            assert ids_of(rounds) == expected, f"{name}, k = {k}"
            assert all(each.drafted <= each.k <= k for each in rounds)
            assert all(each.note for each in rounds if strategy.drafts and each.k < k)
            shorter += sum(bool(each.note) for each in rounds)
    assert shorter


def registered(name, model, draft):
    return make_draft(name, model, draft_model=draft)


def judged_at_the_end(self, probs):
    """As on an accelerator: flags are kept, and the block is cut when it is whole."""
    self._unsure.append(self._stop.unsure(probs))
    return False


def dropping_the_drawn(self, logits):
    """Judges the token that was drawn by its own probability, and drops it."""
    self._logits.append(logits)
    probs = distribution(logits, self._settings)
    token = draw(probs[None], self._run.draws(1)).squeeze(0)
    if probs[token] < self._stop.level:
        return None
    self._take(token, probs)
    return token


AT_THE_END = ("specviz.drafting.drawn_block.DrawnBlock._ends", judged_at_the_end)
DROPPING = ("specviz.drafting.drawn_block.DrawnBlock.next", dropping_the_drawn)


@pytest.mark.parametrize(
    ("policy", "base", "patches"),
    [
        ("confidence-0.5", PLAIN, ()),
        pytest.param("entropy-1.1", FILTERED, (), marks=pytest.mark.slow),
        pytest.param("adaptive-0.5", PLAIN, (), marks=pytest.mark.slow),
        pytest.param("confidence-0.5", PLAIN, (AT_THE_END,), id="judged at the block's end", marks=pytest.mark.slow),
    ],
)
def test_sampled_text_has_the_law_of_the_target(workers, policy, base, patches):
    settings = {**base, "k_policy": policy}
    texts, verdicts = workers.sample(partial(registered, "draft-model"), 2, settings, patches=patches)
    assert p_value(texts, exact_law(table_models()[2], PROMPT, 4, settings)) >= LEAST
    assert policy.startswith("adaptive") or verdicts[Kind.STANDARD] > 500  # blocks of none


def test_a_stop_that_looks_at_the_drawn_token_is_found_out(workers):
    settings = {**PLAIN, "k_policy": "confidence-0.4"}
    texts, _ = workers.sample(partial(registered, "draft-model"), 2, settings, patches=(DROPPING,), runs=RUNS // 2)
    assert p_value(texts, exact_law(table_models()[2], PROMPT, 4, settings)) < FOUND_OUT


# blocks


def run_of(quality="perturbed", **settings):
    lm = target()
    strategy = make_draft("draft-model", lm, draft_model=draft_models()[quality])
    return rounds_of(lm, strategy, [4, 9, 4], max_new_tokens=30, **settings)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_no_token_is_drafted_where_the_draft_was_unsure(temperature):
    rounds = run_of("same", k=5, k_policy="confidence-0.25", temperature=temperature)
    drafts = [draft for each in rounds for draft in each.drafts]
    assert drafts and min(draft.draft_top[0][1] for draft in drafts) >= 0.25
    cut = [each for each in rounds if each.drafted < 5]
    assert cut and len(cut) < len(rounds)
    for each in rounds:
        assert each.k == 5 and each.draft_passes == min(5, each.drafted + 1)  # the pass that was found unsure
        assert (each.note is not None) == (each.drafted < 5)
    assert cut[0].note == "stopped where the draft gives no token a chance of 0.25"


def test_a_first_block_is_that_of_fixed_k_as_far_as_it_goes():
    fixed, cut = (run_of("same", k=8, k_policy=policy)[0] for policy in ("fixed", "confidence-0.25"))
    sure = [draft.draft_top[0][1] >= 0.25 for draft in fixed.drafts]
    assert 0 < sure.index(False) == cut.drafted
    assert [draft.token for draft in cut.drafts] == [draft.token for draft in fixed.drafts[: cut.drafted]]


def test_a_level_that_nothing_reaches_drafts_nothing_and_one_that_all_reach_drafts_all():
    for each in run_of(k=4, k_policy="confidence-1"):
        assert (each.drafted, each.draft_passes, each.target.kind) == (0, 1, Kind.STANDARD)
    assert [each.drafts for each in run_of(k=4, k_policy="confidence-0")] == [each.drafts for each in run_of(k=4)]


def test_a_draft_that_was_not_drawn_is_never_unsure():
    lm = target()
    for name in ("prompt-lookup", "token-recycling"):
        runs = [
            rounds_of(lm, make_draft(name, lm), [5, 6] * 5, k=3, k_policy=policy, max_new_tokens=16)
            for policy in ("fixed", "confidence-1", "entropy-0")
        ]
        ids = [[[draft.token.id for draft in each.drafts] for each in run] for run in runs]
        assert ids[0] == ids[1] == ids[2]


@pytest.mark.parametrize("quality", ["same", "perturbed"])
def test_a_block_judged_at_its_end_is_the_block_judged_as_it_grows(monkeypatch, quality):
    grown = run_of(quality, k=5, k_policy="confidence-0.25")
    monkeypatch.setattr(DrawnBlock, "_ends", judged_at_the_end)
    cut = run_of(quality, k=5, k_policy="confidence-0.25")
    assert any(each.drafted < 5 for each in cut)
    for one, other in zip(grown, cut, strict=True):
        assert (one.drafts, one.target, one.note) == (other.drafts, other.target, other.note)
        assert one.previous_draft_choice == other.previous_draft_choice
        assert other.draft_passes == 5


def test_the_choice_at_the_bonus_position_is_known_where_a_block_stopped_short():
    rounds = run_of("same", k=5, k_policy="confidence-0.25")
    assert any(0 < each.drafted < 5 for each in rounds)
    for before, each in zip(rounds, rounds[1:], strict=False):
        expected = before.target.token.id if before.drafted else None  # the draft is the target
        assert each.previous_draft_choice == expected


# state


def ks(rounds):
    return [each.k for each in rounds]


def test_k_grows_on_acceptance_and_falls_on_rejection():
    right, wrong = (ks(run_of(quality, k=12, k_policy="adaptive")) for quality in ("same", "unrelated"))
    assert right == sorted(right) and right[0] == 4 and right[-1] == 12
    assert wrong == sorted(wrong, reverse=True) and wrong[-1] == 1


def test_a_run_leaves_nothing_behind_for_the_next():
    alone = ks(run_of("perturbed", k=8, k_policy="adaptive"))
    run_of("same", k=8, k_policy="adaptive")
    assert ks(run_of("perturbed", k=8, k_policy="adaptive")) == alone


def test_two_runs_at_once_learn_apart():
    lm, settings = target(), Settings(k=8, k_policy="adaptive", max_new_tokens=30)
    pairs = [make_draft("draft-model", lm, draft_model=draft_models()[name]) for name in ("same", "unrelated")]
    alone = [ks(decode(lm, strategy, [4, 9, 4], settings)) for strategy in pairs]
    runs, found = [decode(lm, strategy, [4, 9, 4], settings) for strategy in pairs], ([], [])
    for _ in range(max(map(len, alone))):
        for run, rounds in zip(runs, found, strict=True):
            rounds.extend(each.k for each in [next(run, None)] if each)
    assert list(found) == alone
