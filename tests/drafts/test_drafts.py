"""Draft strategies: what each proposes, worked by hand; which pairs are allowed; options and their refusals."""

from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import pytest
import torch
from support.tiny import (
    byte_level_tokenizer,
    draft_models,
    every_draft,
    ids_of,
    metaspace_tokenizer,
    module,
    rounds_of,
    scripted_module,
    standard_ids,
    table_module,
    target,
    words_tokenizer,
)

from specviz import LanguageModel, Settings, make_draft
from specviz.core.errors import InputError, PairError
from specviz.drafting import Run, Seen, Strategy, strategies
from specviz.drafting.strategy import same_device
from specviz.drafting.vocabulary import common_vocabulary
from specviz.sampling.sampler import Draws

SOURCES = ("lookup", "model")
pytestmark = pytest.mark.usefixtures("one_thread")


def lookup(text, k, **options):
    """What prompt lookup proposes after `text`, shown to it as a prompt and then token by token."""
    strategy = make_draft("prompt-lookup", target(), **options)
    run = Run(target(), Settings(k=k), tuple(text), 64, Draws(0, 1, torch.device("cpu")))
    whole, grown = strategy.start(run), strategy.start(run)
    whole.observe(text, Seen(tuple(text[:-1])))
    for token in text:
        grown.observe([token], Seen(()))
    proposals = [tuple(int(i) for i in drafter.propose(k).ids) for drafter in (whole, grown)]
    assert proposals[0] == proposals[1]
    return proposals[0]


@pytest.mark.parametrize(
    ("text", "k", "expected"),
    [
        ((1, 2, 3, 4, 5, 1, 2), 3, (3, 4, 5)),
        ((1, 2, 3, 1, 2, 4, 1, 2), 2, (4, 1)),  # the latest match
        ((7, 1, 2, 3, 9, 1, 2, 4, 7, 1, 2), 2, (3, 9)),  # the longest before the latest
        ((1, 2, 1, 2), 5, (1, 2, 1, 2, 1)),  # a period goes on into the draft
        ((5, 5), 4, (5, 5, 5, 5)),
        ((1, 2, 3), 4, ()),
        ((9,), 4, ()),
        ((1, 2, 1), 0, ()),
    ],
)
def test_a_lookup_follows_the_longest_and_latest_match(text, k, expected):
    assert lookup(text, k) == expected


def test_a_lookup_keeps_to_the_sizes_it_was_given():
    text = (7, 1, 2, 3, 9, 2, 4, 7, 1, 2)
    assert lookup(text, 1) == (3,)
    assert lookup(text, 1, max_ngram=1) == (4,)
    assert lookup((1, 2, 9, 3, 2), 1, min_ngram=2, max_ngram=3) == ()
    with pytest.raises(InputError, match="min_ngram must not exceed"):
        make_draft("prompt-lookup", target(), min_ngram=3, max_ngram=2)


def test_a_lookups_drafts_were_not_drawn_and_cost_no_pass():
    for settings in ({}, {"temperature": 1.0}):
        rounds = rounds_of(
            target(), make_draft("prompt-lookup", target()), [5, 6] * 4, k=3, max_new_tokens=12, **settings
        )
        drafts = [draft for each in rounds for draft in each.drafts]
        assert drafts and all(draft.draft_prob == 1.0 and draft.draft_top is None for draft in drafts)
        assert {each.draft_passes for each in rounds} == {0}


def test_every_strategy_describes_itself():
    found = strategies()
    assert {"none", "draft-model", "prompt-lookup", "early-exit"} <= set(found)
    for name, kind in found.items():
        assert kind.name == name and kind.label and kind.help
        assert kind.needs <= {"hidden", "choices"}
        for option in kind.options():
            assert option.help and option.parse(option.default) == option.default
            assert option.low is None or option.low <= option.default <= option.high


def test_a_strategy_is_frozen_and_serves_any_number_of_runs():
    for name, strategy in every_draft(target(), draft_models()):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            strategy.anything = 1
        first, second = (
            ids_of(rounds_of(target(), strategy, [1, 2, 1], k=3, max_new_tokens=12, temperature=0.9)) for _ in range(2)
        )
        assert first == second, name


def test_a_round_of_a_model_takes_as_many_passes_as_tokens():
    """After a rejection and after a full acceptance alike; the catch-up is part of the first pass."""
    passes = []
    for quality in draft_models():
        spied = LanguageModel(module(seed=100 if quality == "unrelated" else None), None)
        inner = spied.executor.run

        def counted(*arguments, inner=inner, **rest):
            passes.append(len(arguments[0]))
            return inner(*arguments, **rest)

        spied.executor.run = counted
        for k in (1, 3):
            strategy = make_draft("draft-model", target(), draft_model=spied)
            passes.clear()
            rounds = rounds_of(target(), strategy, [4, 9, 4], k=k, max_new_tokens=12)
            assert passes[0] == 2  # the prompt but its last token
            assert len(passes) - 1 == sum(each.draft_passes for each in rounds) == k * len(rounds)
            assert max(passes[1:]) <= 2


def test_a_model_beside_a_lookup_may_be_held_to_fewer_tokens():
    lm = target()
    same = make_draft("lookup-else-model", lm, draft_model=lm, model_k=2)
    rounds = rounds_of(lm, same, [4, 9, 4, 9, 4], k=5, max_new_tokens=30)
    drafted = {source: {each.drafted for each in rounds if each.drafts[0].source == source} for source in SOURCES}
    assert 2 in drafted["model"] <= {1, 2} and max(drafted["lookup"]) > 2
    free = make_draft("lookup-else-model", lm, draft_model=lm)
    rounds = rounds_of(lm, free, [4, 9, 4, 9, 4], k=5, max_new_tokens=30)
    assert max(each.drafted for each in rounds if each.drafts[0].source == "model") == 5


def test_the_choice_at_the_bonus_position_is_known_after_a_full_acceptance_only():
    lm = target()
    same = make_draft("draft-model", lm, draft_model=lm)
    rounds = rounds_of(lm, same, [5], k=3, max_new_tokens=20)
    assert rounds[0].previous_draft_choice is None
    for before, each in zip(rounds, rounds[1:], strict=False):
        assert each.previous_draft_choice == before.target.token.id  # the draft is the target
    unrelated = make_draft("draft-model", lm, draft_model=draft_models()["unrelated"])
    rounds = rounds_of(lm, unrelated, [5], k=2, max_new_tokens=20)
    for before, each in zip(rounds, rounds[1:], strict=False):
        assert (each.previous_draft_choice is None) == (len(before.accepted) < 2)


def test_unknown_drafts_options_and_models_are_refused_in_words():
    lm = target()
    with pytest.raises(InputError, match="no draft 'medusa'.*early-exit.*prompt-lookup"):
        make_draft("medusa", lm)
    with pytest.raises(InputError, match="needs a draft model"):
        make_draft("draft-model", lm)
    with pytest.raises(InputError, match="takes no model"):
        make_draft("prompt-lookup", lm, draft_model=lm)
    with pytest.raises(InputError, match="no option 'speed'; it has: max_ngram, min_ngram"):
        make_draft("prompt-lookup", lm, speed=3)
    for wrong in ("three", 2.5, None, [1]):
        with pytest.raises(InputError, match="max_ngram must be a whole number"):
            make_draft("prompt-lookup", lm, max_ngram=wrong)
    for wrong in (0, 17, "99"):
        with pytest.raises(InputError, match="between 1 and 16"):
            make_draft("prompt-lookup", lm, max_ngram=wrong)
    assert make_draft("prompt-lookup", lm, max_ngram="5").option_values == {"max_ngram": 5, "min_ngram": 1}


def test_an_early_exit_uses_the_layers_it_was_given():
    lm = target()
    assert "first 2 layers" in make_draft("early-exit", lm, layers=2).model.name
    assert "first 1 layers" in make_draft("early-exit", lm).model.name  # a quarter of three, at least one
    whole = make_draft("early-exit", lm, layers=3)
    assert all(len(each.accepted) == 4 for each in rounds_of(lm, whole, [5], k=4, max_new_tokens=20)[:-1])


# pairs

LETTERS = ["<unk>", *"abcdefghijklmnopqrstuvwxyz"]


def words_model(words, rows, eos=None, specials=()):
    tokenizer = words_tokenizer(words, eos=eos, specials=specials)
    return LanguageModel(module(vocab_size=rows), tokenizer, name=f"{rows} rows")


def test_tables_are_compared_and_not_sizes():
    plain = words_model(LETTERS, 27)
    assert common_vocabulary(plain, words_model(LETTERS, 40)).size == 27
    assert common_vocabulary(words_model(LETTERS, 40), plain).excluded is None


def test_other_special_tokens_do_not_make_two_tokenizers_different():
    one = words_model([*LETTERS, "<s>", "</s>"], 32, eos="</s>", specials=["<s>"])
    other = words_model([*LETTERS, "<|im_start|>", "<|im_end|>"], 32, eos="<|im_end|>", specials=["<|im_start|>"])
    common = common_vocabulary(one, other)
    assert common.excluded.nonzero().flatten().tolist() == [27, 28]
    assert "2 special or added tokens differ" in common.note
    strategy = make_draft("draft-model", one, draft_model=other)
    for settings in ({}, {"temperature": 1.5}, {"temperature": 1.0, "repetition_penalty": 1.3}):
        rounds = rounds_of(one, strategy, [3, 4], k=4, max_new_tokens=24, ignore_eos=True, **settings)
        assert not {draft.token.id for each in rounds for draft in each.drafts} & {27, 28}


def test_a_pair_whose_tokens_differ_is_refused_before_it_runs():
    shifted = words_model(["<unk>", *LETTERS[2:], "a"], 27)
    with pytest.raises(PairError, match="their tokenizers differ.*own family"):
        make_draft("draft-model", words_model(LETTERS, 27), draft_model=shifted)
    one_letter = words_model([*LETTERS[:-1], "ż"], 27)
    with pytest.raises(PairError, match=r"in 1 of 27 tokens \(id 26: 'z' and 'ż'\)"):
        make_draft("draft-model", words_model(LETTERS, 27), draft_model=one_letter)
    tokenizers = (byte_level_tokenizer(), metaspace_tokenizer())
    models = [LanguageModel(module(vocab_size=len(tokenizer)), tokenizer) for tokenizer in tokenizers]
    for target_model, draft in (models, models[::-1]):
        with pytest.raises(PairError, match="tokenizers differ"):
            make_draft("draft-model", target_model, draft_model=draft)


def test_no_id_is_drafted_that_the_target_lacks():
    small, large = LanguageModel(table_module(5, 3), None), LanguageModel(table_module(9, 4, sharpness=0.1), None)
    strategy = make_draft("draft-model", small, draft_model=large)
    for temperature in (0.0, 2.0):
        rounds = rounds_of(small, strategy, [1, 2], k=5, max_new_tokens=60, temperature=temperature)
        assert {draft.token.id for each in rounds for draft in each.drafts} <= set(range(5))


def test_a_target_may_write_ids_that_the_draft_lacks():
    """The target's padded rows are random here, so it does write them; the draft cannot read them and must not fail."""
    follow = {0: 1, 1: 6, 6: 0, 7: 0}
    large = LanguageModel(scripted_module(follow, 8), None)
    small = LanguageModel(scripted_module({0: 1, 1: 2, 2: 0}, 5), None)
    strategy = make_draft("draft-model", large, draft_model=small)
    expected = standard_ids(large, [0], max_new_tokens=9)
    assert expected == [1, 6, 0] * 3
    for k in (1, 2, 4):
        assert ids_of(rounds_of(large, strategy, [0], k=k, max_new_tokens=9)) == expected
    assert ids_of(rounds_of(large, strategy, [7], k=2, max_new_tokens=3)) == [0, 1, 6]


def test_two_devices_are_refused_in_words():
    cpu, gpu = SimpleNamespace(device=torch.device("cpu")), SimpleNamespace(device=torch.device("cuda", 0))
    with pytest.raises(PairError, match="same device"):
        same_device(gpu, cpu)
    same_device(cpu, cpu)


def test_a_strategy_defined_elsewhere_without_a_name_is_not_registered():
    class Passing(Strategy):
        pass

    assert Passing not in strategies().values() and "" not in strategies()
