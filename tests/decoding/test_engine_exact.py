"""Greedy float32: every strategy, every k, every kind of attention writes exactly what the target alone writes."""

from collections import Counter

import pytest
import torch
from support.near_ties import assert_same
from support.tiny import ARCHITECTURES, draft_models, every_draft, ids_of, module, rounds_of, standard_ids, target

from specviz import LanguageModel, make_draft
from specviz.traces import Kind, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

KS = (1, 2, 3, 5, 8, 16)
PROMPTS = ([7], [3, 9, 4, 3, 9, 4, 3])
NEW_TOKENS = 24


def generate(model, prompt, new_tokens=NEW_TOKENS, **settings):
    """transformers' own greedy decoding."""
    ids = torch.tensor([prompt])
    facts = {"do_sample": False, "max_new_tokens": new_tokens, "eos_token_id": None, "pad_token_id": 0, **settings}
    return model.generate(ids, attention_mask=torch.ones_like(ids), **facts)[0, len(prompt) :].tolist()


def every_kind_of_draft(lm, models):
    """`every_draft`, but of the strategies that add something to a draft model only the one that is sometimes right."""
    for name, strategy in every_draft(lm, models):
        if name.startswith("draft-model, ") or not name.endswith((", same", ", unrelated")):
            yield name, strategy


def kind_of(each):
    if not each.drafts:
        return "nothing drafted"
    count = len(each.accepted)
    return "none" if count == 0 else "all" if count == len(each.drafts) else "some"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_greedy_text_is_that_of_standard_decoding_and_of_generate(architecture):
    model, lm = module(architecture), target(architecture)
    seen = Counter()
    for prompt, ks in ((PROMPTS[0], KS[::2]), (PROMPTS[1], KS[1::2])):  # the long grid pairs them all
        expected = standard_ids(lm, prompt, max_new_tokens=NEW_TOKENS)
        assert len(set(expected)) >= 10
        assert_same(model, prompt, generate(model, prompt), expected, f"{architecture}, generate")
        for name, strategy in every_kind_of_draft(lm, draft_models(architecture)):
            for k in ks:
                rounds = rounds_of(lm, strategy, prompt, k=k, max_new_tokens=NEW_TOKENS, telemetry=False)
                assert_same(model, prompt, expected, ids_of(rounds), f"{architecture}, {name}, k = {k}")
                seen.update(kind_of(each) for each in rounds)
    assert min(seen[kind] for kind in ("none", "some", "all", "nothing drafted")) > 0, seen


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("k", range(1, 9))
def test_a_draft_that_is_the_target_is_always_right(architecture, k):
    lm = target(architecture)
    rounds = rounds_of(lm, make_draft("draft-model", lm, draft_model=lm), [5], k=k, max_new_tokens=20)
    assert all(draft.verdict is not Verdict.REJECTED for each in rounds for draft in each.drafts)
    assert all(each.draft_passes == k == each.drafted for each in rounds)
    for each in rounds[:-1]:
        assert len(each.accepted) == k and each.target.kind is Kind.BONUS
    assert len(rounds) == -(-20 // (k + 1))


@pytest.mark.parametrize("architecture", ("llama", "gpt2"))
def test_an_end_of_sequence_ends_every_strategy_where_it_ends_generate(architecture):
    model, prompt = module(architecture), [3, 9, 4, 3, 9, 4, 3]
    plain = standard_ids(target(architecture), prompt, max_new_tokens=NEW_TOKENS)
    eos = next(token for token in plain if plain.index(token) >= 6)
    lm = LanguageModel(model, None, eos_ids=[eos])
    expected = generate(model, prompt, eos_token_id=eos)
    assert expected == plain[: plain.index(eos) + 1]
    for name, strategy in every_draft(lm, draft_models(architecture)):
        for k in KS:
            rounds = rounds_of(lm, strategy, prompt, k=k, max_new_tokens=NEW_TOKENS)
            assert ids_of(rounds) == expected, f"{name}, k = {k}"


def test_telemetry_never_changes_a_token_or_a_verdict():
    lm = target()
    for _, strategy in every_draft(lm, draft_models()):
        runs = [
            rounds_of(lm, strategy, [1, 2], k=3, max_new_tokens=16, temperature=0.9, top_p=0.9, telemetry=telemetry)
            for telemetry in (True, False)
        ]
        bare = [[[(d.token.id, d.verdict) for d in r.drafts], [t.id for t in r.kept]] for r in runs[1]]
        assert [[[(d.token.id, d.verdict) for d in r.drafts], [t.id for t in r.kept]] for r in runs[0]] == bare


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("seed", range(3))
def test_greedy_text_is_exact_past_many_windows(architecture, seed):
    model = module(architecture, seed)
    lm, drafts = LanguageModel(model, None), draft_models(architecture)
    for prompt in ([seed], [*range(20)], [5, 6] * 12):
        expected = standard_ids(lm, prompt, max_new_tokens=80)
        assert_same(model, prompt, generate(model, prompt, 80), expected, f"{architecture}, generate")
        for name, strategy in every_draft(lm, {**drafts, "same": lm}):
            for k in KS:
                rounds = rounds_of(lm, strategy, prompt, k=k, max_new_tokens=80, telemetry=False)
                assert_same(model, prompt, expected, ids_of(rounds), f"{architecture}, {name}, k = {k}")
