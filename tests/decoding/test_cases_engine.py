"""What has gone wrong in other programs, row by row of the engine's list of cases (B1 to B50), and what happens here.

A row whose whole kind is covered elsewhere has its smallest input here. B31 and B35 (is sampled text lossless?) are
`test_law.py`; features that are not offered (B6, B7, B9, B10, B46, B47) must be refused in words.
"""

import itertools
import re
from collections import Counter
from dataclasses import dataclass

import pytest
import torch
from support.law import p_value
from support.tiny import (
    TableConfig,
    TableLM,
    byte_level_tokenizer,
    draft_models,
    every_draft,
    ids_of,
    metaspace_tokenizer,
    module,
    outcome_of,
    perturbed,
    rounds_of,
    scripted_module,
    standard_ids,
    table_module,
    target,
    words_tokenizer,
)
from support.tree_drafts import Told
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    MambaConfig,
)

from specviz import Lane, LanguageModel, Settings, make_draft, race, summarize
from specviz.core.errors import InputError, LoadError, PairError
from specviz.drafting import Drafter, Proposal, Strategy
from specviz.metrics import verdict_of
from specviz.metrics.words import sentence
from specviz.races.racing import MAX_LANES
from specviz.sampling.sampler import Draws
from specviz.traces import Kind, LaneFinished, Reason, RoundDone, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

LETTERS = ["<unk>", *"abcdefghijklmnopqrstuvwxyz"]


def words_model(words, rows, eos=None, specials=(), seed=None):
    tokenizer = words_tokenizer(words, eos=eos, specials=specials)
    return LanguageModel(module(vocab_size=rows, seed=seed), tokenizer, name=f"{rows} rows")


def drafted(rounds):
    return [draft for each in rounds for draft in each.drafts]


def model_draft(lm, draft):
    return make_draft("draft-model", lm, draft_model=draft)


# pairs


def test_b1_padded_vocabularies_of_one_tokenizer():
    """Qwen2.5's real sizes: 152,064 rows for the 7B, 151,936 for the 0.5B."""
    tokenizer = words_tokenizer(LETTERS)
    narrow = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "head_dim": 2}
    large, small = (
        LanguageModel(module("llama", 3, vocab_size=rows, **narrow), tokenizer) for rows in (152_064, 151_936)
    )
    for one, other in ((large, small), (small, large)):
        expected = standard_ids(one, [3, 4], max_new_tokens=6)
        for settings in ({}, {"temperature": 1.0, "top_p": 0.95, "top_k": 50}):
            rounds = rounds_of(one, model_draft(one, other), [3, 4], k=3, max_new_tokens=6, **settings)
            assert max((draft.token.id for draft in drafted(rounds)), default=0) < 151_936
            assert settings or ids_of(rounds) == expected


def test_b3_and_b6_pairs_of_two_tokenizers_are_refused_before_they_run():
    one, other = (
        LanguageModel(module(vocab_size=len(tokenizer)), tokenizer, name=name)
        for name, tokenizer in (("Llama-3", byte_level_tokenizer()), ("TinyLlama", metaspace_tokenizer()))
    )
    with pytest.raises(PairError, match="TinyLlama cannot draft for Llama-3: their tokenizers differ.*Choose a draft"):
        model_draft(one, other)


def test_b4_other_special_tokens_are_allowed_with_a_note():
    one = words_model([*LETTERS, "<s>", "</s>"], 32, eos="</s>", specials=["<s>"])
    other = words_model([*LETTERS, "<|im_start|>", "<|im_end|>"], 32, eos="<|im_end|>", specials=["<|im_start|>"])
    lanes = [
        Lane("standard", one, make_draft("none", one), Settings(max_new_tokens=4)),
        Lane("pair", one, model_draft(one, other), Settings(max_new_tokens=4)),
    ]
    header = next(iter(race(lanes, [3, 4]))).header
    assert "special" in header.lanes[1].note


# (target's words, rows), (draft's words, rows): pairs that were accepted once stay accepted
PAIRS = {
    "the same": ((LETTERS, 27), (LETTERS, 27)),
    "the target padded": ((LETTERS, 40), (LETTERS, 32)),
    "the draft padded": ((LETTERS, 32), (LETTERS, 40)),
    "the target with words at the end": (([*LETTERS, "<tool>", "</tool>"], 32), (LETTERS, 32)),
    "the draft with words at the end": ((LETTERS, 32), ([*LETTERS, "<tool>", "</tool>"], 32)),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_b5_pairs_that_were_accepted_stay_accepted(pair):
    one, other = (words_model(words, rows, seed=index) for index, (words, rows) in enumerate(PAIRS[pair]))
    expected = standard_ids(one, [3, 4, 5], max_new_tokens=12)
    assert ids_of(rounds_of(one, model_draft(one, other), [3, 4, 5], k=3, max_new_tokens=12)) == expected


@pytest.mark.parametrize("longer", [True, False])
def test_b7_a_draft_that_splits_the_prompt_otherwise_is_refused_as_a_draft_model_alone(longer):
    pair = [
        LanguageModel(module(vocab_size=300), tokenizer()) for tokenizer in (byte_level_tokenizer, metaspace_tokenizer)
    ]
    one, other = pair if longer else pair[::-1]
    with pytest.raises(PairError, match="tokenizers differ.*'cross-tokenizer'"):
        model_draft(one, other)
    prompt, crossing = [68, 70, 80, 84], make_draft("cross-tokenizer", one, draft_model=other)
    expected = standard_ids(one, prompt, max_new_tokens=16)
    assert ids_of(rounds_of(one, crossing, prompt, k=3, max_new_tokens=16)) == expected


@pytest.mark.parametrize("policy", ["heuristic", "Adaptive", "", None, 3])
def test_b9_b46_and_b47_a_policy_for_k_that_is_not_there_is_refused(policy):
    """What the policies do that are there is in test_k_policies."""
    with pytest.raises(InputError, match="k_policy"):
        Settings(k_policy=policy)
    with pytest.raises(InputError, match="no option 'threshold'"):
        make_draft("draft-model", target(), draft_model=target(), threshold=0.4)


def test_b10_a_draft_is_as_good_as_new_after_other_runs_and_targets():
    draft = LanguageModel(perturbed(module()), None)
    fresh = rounds_of(target(), model_draft(target(), LanguageModel(perturbed(module()), None)), [3, 9], k=3)
    other = LanguageModel(module(seed=7, vocab_size=32), None)  # half of the draft's ids
    rounds_of(other, model_draft(other, draft), [3, 9], k=3)
    used = rounds_of(target(), model_draft(target(), draft), [3, 9], k=3)
    assert [(ids_of([each]), len(each.accepted)) for each in used] == [(ids_of([e]), len(e.accepted)) for e in fresh]


# endings


@dataclass(frozen=True)
class Says(Strategy):
    """Proposes one block in every round."""

    block: tuple[int, ...]

    def start(self, run):
        return _Says(self.block)


class _Says(Drafter):
    def __init__(self, block):
        self._block = block

    def propose(self, k):
        return Proposal(self._block[:k])


def test_b11_an_end_mark_accepted_in_mid_block_ends_the_run():
    words = ["a", "EOS", "b", "c", "start"]
    lm = LanguageModel(scripted_module({4: 0, 0: 1, 1: 2, 2: 3}, 5), words_tokenizer(words, eos="EOS"))
    rounds, outcome = outcome_of(lm, Says((0, 1, 2, 3)), [4], k=4, max_new_tokens=20)
    verdicts = [draft.verdict for draft in rounds[0].drafts]
    assert verdicts == [Verdict.ACCEPTED, Verdict.ACCEPTED, Verdict.UNTESTED, Verdict.UNTESTED]
    assert len(rounds) == 1 and rounds[0].target is None
    assert ids_of(rounds) == [0, 1] and (outcome.text, outcome.reason) == ("a", Reason.EOS)


@pytest.mark.parametrize("max_new_tokens", [1, 2, 3])
def test_b12_a_run_is_never_longer_than_asked(max_new_tokens):
    for name, strategy in every_draft(target(), draft_models()):
        rounds = rounds_of(target(), strategy, [5, 6] * 4, k=8, max_new_tokens=max_new_tokens)
        assert len(ids_of(rounds)) == max_new_tokens, name


def test_b14_a_stop_string_completed_in_mid_block_cuts_text_and_tokens():
    words = ["so ", "ha", " ", "!", "he"]
    lm = LanguageModel(scripted_module({0: 1, 1: 2, 2: 1}, 5), words_tokenizer(words))
    rounds, outcome = outcome_of(lm, Says((1, 2, 1, 2, 1)), [0], k=5, max_new_tokens=20, stop=("ha ha",))
    assert ids_of(rounds) == [1, 2, 1] and (outcome.text, outcome.reason) == ("", Reason.STOP)
    assert [draft.verdict for draft in drafted(rounds)] == [Verdict.ACCEPTED] * 3 + [Verdict.UNTESTED] * 2


def test_b16_a_model_without_an_end_mark_runs_to_the_length_asked_for():
    for tokenizer in (None, words_tokenizer(LETTERS)):
        lm = LanguageModel(module(vocab_size=27), tokenizer)
        assert lm.eos_ids == ()
        for name, strategy in every_draft(lm, {"same": lm}):
            rounds, outcome = outcome_of(lm, strategy, [3, 4, 3], k=4, max_new_tokens=19)
            assert (len(ids_of(rounds)), outcome.reason) == (19, Reason.LENGTH), name


# caches


@torch.inference_mode()
def argmax_after(model, ids):
    return int(model(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax())


def reference(target_module, draft_module, prompt, k, new_tokens):
    """(accepted, kept) of every round of a speculative engine without any cache."""
    text, rounds = list(prompt), []
    while sum(len(kept) for _, kept in rounds) < new_tokens:
        draft = list(text)
        for _ in range(k):
            draft.append(argmax_after(draft_module, draft))
        accepted = 0
        while (
            accepted < k and argmax_after(target_module, draft[: len(text) + accepted]) == draft[len(text) + accepted]
        ):
            accepted += 1
        kept = [*draft[len(text) : len(text) + accepted], argmax_after(target_module, draft[: len(text) + accepted])]
        rounds.append((accepted, kept))
        text += kept
    return rounds


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gemma3, window 8"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_b17_and_b18_acceptance_is_that_of_an_engine_without_a_cache(architecture, k):
    prompt = [3, 9, 4]
    own = module(architecture)
    seen = set()
    for draft_module in (own, perturbed(own, 0.05)):
        draft = LanguageModel(draft_module, None)
        expected = reference(own, draft_module, prompt, k, 20)
        found = rounds_of(
            target(architecture), model_draft(target(architecture), draft), prompt, k=k, max_new_tokens=20
        )
        assert [(len(each.accepted), ids_of([each])) for each in found[:-1]] == expected[: len(found) - 1]
        seen |= {accepted for accepted, _ in expected}
    assert k in seen and len(seen) > 1


def test_b20_a_prompt_of_one_token():
    expected = (
        module()
        .generate(torch.tensor([[10]]), do_sample=False, max_new_tokens=20, eos_token_id=None, pad_token_id=0)[0, 1:]
        .tolist()
    )
    for name, strategy in every_draft(target(), draft_models()):
        assert ids_of(rounds_of(target(), strategy, [10], k=3, max_new_tokens=20)) == expected, name


@pytest.mark.parametrize("architecture", ["mistral, window 8", "gemma3, window 8", "gemma2, soft cap, window 8"])
def test_b21_a_window_shorter_than_the_run(architecture):
    prompt = [3, 9, 4, 3, 9, 5]
    expected = (
        module(architecture)
        .generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=30, eos_token_id=None, pad_token_id=0)[0, 6:]
        .tolist()
    )
    for name, strategy in every_draft(target(architecture), draft_models(architecture)):
        rounds = rounds_of(target(architecture), strategy, prompt, k=4, max_new_tokens=30)
        assert ids_of(rounds) == expected, name


def test_b22_a_recurrent_model_is_refused_as_target_and_as_draft():
    facts = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}
    with pytest.raises(LoadError, match="recurrent state"):
        LanguageModel(AutoModelForCausalLM.from_config(MambaConfig(**facts)), None)


@pytest.mark.parametrize("room", [64, 110])
def test_b23_and_b24_past_the_drafts_context_rounds_say_that_the_draft_is_off(room):
    short = LanguageModel(perturbed(module(max_position_embeddings=room), 0.05), None)
    prompt = [(7 * i) % 64 for i in range(100)]
    rounds = rounds_of(target(), model_draft(target(), short), prompt, k=3, max_new_tokens=24)
    assert ids_of(rounds) == standard_ids(target(), prompt, max_new_tokens=24)
    off = [each for each in rounds if not each.drafts]
    assert off and all(each.note.startswith("draft off") and each.target.kind is Kind.STANDARD for each in off)
    assert (len(off) == len(rounds)) == (room == 64)
    lanes = [
        Lane("standard", target(), make_draft("none", target()), Settings(max_new_tokens=8)),
        Lane("short", target(), model_draft(target(), short), Settings(k=3, max_new_tokens=8)),
    ]
    summary = summarize(race(lanes, prompt, calibrate=False))["short"]
    assert room == 110 or (summary.tested == 0 and summary.alpha is None and summary.coverage == 0.0)


def test_b26_a_very_short_prompt_and_four_tokens():
    for prompt in ([5], [5, 6]):
        rounds = rounds_of(target(), model_draft(target(), target()), prompt, k=4, max_new_tokens=4)
        assert ids_of(rounds) == standard_ids(target(), prompt, max_new_tokens=4)
        assert len(ids_of(rounds)) == 4


def test_b27_lookups_that_match_now_and_then():
    found = set()
    for prompt in ([3, 9, 4, 3, 9, 4, 3], [5, 6] * 5, [20, 21, 22]):
        expected = standard_ids(target(), prompt, max_new_tokens=60)
        for options in ({}, {"max_ngram": 1}, {"min_ngram": 2}):
            rounds = rounds_of(
                target(), make_draft("prompt-lookup", target(), **options), prompt, k=3, max_new_tokens=60
            )
            assert ids_of(rounds) == expected
            found |= {(bool(a.drafts), bool(b.drafts)) for a, b in zip(rounds, rounds[1:], strict=False)}
    assert found == {(True, True), (True, False), (False, True), (False, False)}


# exactness


def test_b29_in_bfloat16_a_divergence_is_a_near_tie_and_is_shown():
    lm = LanguageModel(module().to(torch.bfloat16), None)
    draft = LanguageModel(perturbed(module()).to(torch.bfloat16), None)
    standard = Lane("standard", lm, make_draft("none", lm), Settings(max_new_tokens=40))
    drafts = [
        Lane(name, lm, strategy, Settings(k=4, max_new_tokens=40))
        for name, strategy in every_draft(lm, {"perturbed": draft})
        if strategy.drafts
    ]
    races = [[standard, *lanes] for lanes in (drafts[: MAX_LANES - 1], drafts[MAX_LANES - 1 :])]
    for prompt, lanes in itertools.product(([3, 9, 4], [60, 1], [7]), races):
        for lane, summary in summarize(race(lanes, prompt, calibrate=False)).items():
            if lane != "standard" and not summary.identical_to_standard:
                assert summary.first_divergence is not None
                assert summary.divergence_margin <= 0.125  # two units in the last place of a logit near 16


@dataclass(frozen=True)
class Random(Strategy):
    """Drafts anything."""

    def start(self, run):
        return _Random(run)


class _Random(Drafter):
    def __init__(self, run):
        self._run = run

    def propose(self, k):
        return Proposal((self._run.draws(k) * self._run.target.vocabulary).long())


def test_b30_random_drafts_change_nothing_but_the_speed():
    expected = standard_ids(target(), [3, 9], max_new_tokens=60)
    rounds = rounds_of(target(), Random(), [3, 9], k=5, max_new_tokens=60)
    assert ids_of(rounds) == expected
    tested = [draft for draft in drafted(rounds) if draft.verdict is not Verdict.UNTESTED]
    assert sum(draft.verdict is Verdict.ACCEPTED for draft in tested) / len(tested) < 0.1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_b32_the_distribution_of_the_ratio_is_bit_for_bit_the_one_that_was_drawn_from(monkeypatch, dtype):
    import specviz.decoding.engine as engine
    import specviz.drafting.drawn_block as drafting

    lm = LanguageModel(module().to(dtype), None)
    draft = LanguageModel(perturbed(module()).to(dtype), None)
    drawn, used = [], []
    draw, decide = drafting.draw, engine.decide_sampled

    def spy_draw(probs, u):
        drawn.append(probs.clone())
        return draw(probs, u)

    def spy_decide(p, q, *rest):
        used.append((p.dtype, q.clone()))
        return decide(p, q, *rest)

    monkeypatch.setattr(drafting, "draw", spy_draw)
    monkeypatch.setattr(engine, "decide_sampled", spy_decide)
    settings = {"temperature": 0.7, "top_k": 9, "top_p": 0.9, "repetition_penalty": 1.2}
    rounds = rounds_of(lm, model_draft(lm, draft), [3, 9], k=3, max_new_tokens=20, **settings)
    assert len(used) == len(rounds) and all(kind is torch.float32 and q.dtype is torch.float32 for kind, q in used)
    assert torch.equal(torch.cat([q for _, q in used]), torch.cat(drawn))


def test_b34_a_draft_that_is_the_target_never_meets_an_empty_residual():
    """At a temperature of 0.01 distributions are all but points; passes of another width leave q close to p."""
    for seed in range(4):
        settings = {"k": 4, "max_new_tokens": 60, "temperature": 0.01, "seed": seed}
        for each in drafted(rounds_of(target(), model_draft(target(), target()), [3, 9], **settings)):
            assert each.verdict is not Verdict.REJECTED or each.target_prob > 0.9 * each.draft_prob
            assert each.overlap is None or 0.99 < each.overlap <= 1 + 1e-6


def test_b37_two_children_that_were_not_drawn_keep_the_law():
    """p = (.5, .3, .2), children 1 and 0: q is 1 for each in its turn, and what is left of p decides the rest."""
    p = (0.5, 0.3, 0.2)
    coin = TableLM(TableConfig(vocab_size=3, num_hidden_layers=1)).eval()
    with torch.no_grad():
        coin.layers[0].weight.copy_(torch.tensor(p).log().expand(12, 3))
    lm, counts = LanguageModel(coin, None), Counter()
    for seed in range(1000):
        settings = {"k": 2, "max_new_tokens": 1, "temperature": 1.0, "seed": seed, "telemetry": False}
        counts[tuple(ids_of(rounds_of(lm, Told([((1, 0), (-1, -1))]), [0, 1], **settings)))] += 1
    assert p_value(counts, {(token,): chance for token, chance in enumerate(p)}) >= 1e-4


@pytest.mark.parametrize("temperature", [0, 0.0, 1e-6, 0.01])
def test_b38_temperatures_at_and_near_zero_are_greedy(temperature):
    expected = standard_ids(target(), [3, 9], max_new_tokens=24)
    for name, strategy in every_draft(target(), draft_models()):
        rounds = rounds_of(target(), strategy, [3, 9], k=3, max_new_tokens=24, temperature=temperature)
        found = ids_of(rounds)
        if found != expected:
            index = next(i for i, (a, b) in enumerate(zip(expected, found, strict=True)) if a != b)
            with torch.inference_mode():
                ids = torch.tensor([[3, 9, *expected[:index]]])
                best = module()(ids, use_cache=False).logits[0, -1].topk(2).values
            assert float(best[0] - best[1]) < 20 * temperature, name  # e^-20 otherwise
        for each in drafted(rounds):
            assert each.target_prob is None or 0 <= each.target_prob <= 1 + 1e-6


def test_b39_and_b41_no_draft_ignores_a_penalty():
    expected = standard_ids(target(), [3, 9], max_new_tokens=24, repetition_penalty=1.3)
    assert expected != standard_ids(target(), [3, 9], max_new_tokens=24)
    for name, strategy in every_draft(target(), draft_models()):
        rounds = rounds_of(target(), strategy, [3, 9], k=3, max_new_tokens=24, repetition_penalty=1.3)
        assert ids_of(rounds) == expected, name


def test_b42_a_seed_repeats_tokens_and_verdicts():
    strategy = model_draft(target(), draft_models()["perturbed"])

    def run(seed):
        rounds = rounds_of(target(), strategy, [3], k=3, max_new_tokens=30, temperature=1.0, seed=seed)
        return ids_of(rounds), [draft.verdict for draft in drafted(rounds)]

    assert run(11) == run(11) != run(12)


def test_b43_runs_at_once_do_not_share_random_numbers():
    """Two runs that take turns; two threads at once are in `test_engine.py`."""
    one, other = (Draws(seed, 0, torch.device("cpu")) for seed in (1, 2))
    found = []
    for count in (2, 3, 1):
        found.append(one(count))
        other(5)
        torch.rand(9)
    assert torch.equal(torch.cat(found), Draws(1, 0, torch.device("cpu"))(6))


def test_b45_a_checkpoints_generation_config_changes_nothing():
    own = module()
    own.generation_config = GenerationConfig(
        do_sample=True,
        temperature=0.7,
        top_k=20,
        top_p=0.8,
        repetition_penalty=1.3,
        max_new_tokens=3,
        eos_token_id=[0, 1],
    )
    lm = LanguageModel(own, None)
    expected = standard_ids(target(), [3, 9], max_new_tokens=24)
    for name, strategy in every_draft(lm, {"same": lm}):
        assert ids_of(rounds_of(lm, strategy, [3, 9], k=3, max_new_tokens=24)) == expected, name


def test_b46_a_run_asks_for_the_same_k_whatever_ran_before():
    easy, hard = model_draft(target(), target()), model_draft(target(), draft_models()["unrelated"])
    alone = [each.k for each in rounds_of(target(), hard, [3, 9], k=4, max_new_tokens=12)]
    rounds_of(target(), easy, [3, 9], k=4, max_new_tokens=40)
    assert [each.k for each in rounds_of(target(), hard, [3, 9], k=4, max_new_tokens=12)] == alone == [4] * len(alone)


@pytest.mark.parametrize("k", [1, 12, 64])
def test_b49_any_k_works_or_is_cut_with_a_note(k):
    small = table_module(5, 3)
    small.config.max_position_embeddings = 40
    lm = LanguageModel(small, None)
    for name, strategy in every_draft(lm, {"same": lm}):
        rounds = rounds_of(lm, strategy, [1, 2, 1, 2], k=k, max_new_tokens=5)
        assert len(ids_of(rounds)) == 5, name
        assert all((each.note is None) == (each.k == k) for each in rounds if strategy.drafts)
    for wrong in (65, -1, 2.5, 10**400, float("nan"), "4"):
        with pytest.raises(InputError, match="k must"):
            Settings(k=wrong)


def test_b50_a_draft_that_costs_more_than_it_saves_is_said_to_be_slower_and_why():
    lm, unrelated = target(), draft_models()["unrelated"]
    lanes = [
        Lane("standard", lm, make_draft("none", lm), Settings(max_new_tokens=24)),
        Lane("bad", lm, model_draft(lm, unrelated), Settings(k=8, max_new_tokens=24)),
    ]
    summary = summarize(race(lanes, [3, 9]))["bad"]
    assert summary.speedup < 0.7 and summary.c > 0.3 and summary.identical_to_standard
    assert summary.because is not None
    assert re.search(r"slower, because|slower: ", sentence(verdict_of(summary)))


def test_b65_a_lane_that_runs_out_of_memory_leaves_the_others_running():
    lm = LanguageModel(table_module(5, 3), None)

    @dataclass(frozen=True)
    class Full(Strategy):
        def start(self, run):
            return _Full()

    class _Full(Drafter):
        def propose(self, k):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    settings = Settings(max_new_tokens=6)
    lanes = [Lane("standard", lm, make_draft("none", lm), settings), Lane("full", lm, Full(), settings)]
    events = list(race(lanes, [1, 2], calibrate=False))
    ends = {event.lane: event for event in events if isinstance(event, LaneFinished)}
    assert ends["standard"].reason is Reason.LENGTH
    assert ends["full"].reason is Reason.ERROR and "ran out of memory" in ends["full"].message
    assert sum(isinstance(event, RoundDone) for event in events) == 6
