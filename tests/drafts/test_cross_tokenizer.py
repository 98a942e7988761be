"""A draft with another tokenizer: the text it reads and writes, the tokens it shares, and the proof that it is exact.

The target speaks in SentencePiece pieces with bytes for what it lacks, as Llama does, the draft in byte-level BPE, as
GPT-2 does; both tokenizers are trained here on a few lines, and two of the models learn those lines by heart.
"""

import copy
import json
from collections import Counter
from functools import cache, partial

import pytest
import torch
from support.law import FILTERED, PENALISED, PLAIN, PROMPT, RUNS, VOCABULARY, exact_law, p_value
from support.near_ties import assert_same
from support.quick_tables import QuickTables
from support.tiny import (
    byte_level_tokenizer,
    ids_of,
    metaspace_tokenizer,
    module,
    rounds_of,
    standard_ids,
    table_logits,
    table_module,
)
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from specviz import LanguageModel, Settings, decode, make_draft
from specviz.core.errors import PairError
from specviz.core.text import decode_ids
from specviz.drafting import Run
from specviz.drafting.retokenising import Retokenised, continuation
from specviz.drafting.shared_tokens import shared_tokens
from specviz.drafting.strategy import Seen
from specviz.sampling.sampler import Draws
from specviz.traces import Kind, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

LEAST = 1e-4
LINES = "The quick brown fox jumps over the lazy dog.\nWhy does the quick dog  jump?\n  It saw 日本 and 👩‍💻.\n"
LESSON = LINES.replace("日本 and 👩‍💻", "the fox and another dog")
PROMPTS = ["The  quick", "dog.\n\n  It ", "saw 👩‍💻 and 日本", "é\n", "T", "fox  \t jumps"]


@cache
def gpt2_tokenizer():
    """Byte-level BPE."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator([LINES, LINES], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|endoftext|>")


@cache
def llama_tokenizer():
    """Pieces with a space mark over whole lines, bytes for what they lack, and a mark where a text begins."""
    learnt = Tokenizer(models.BPE())
    learnt.normalizer = normalizers.Replace(" ", "▁")
    learnt.pre_tokenizer = pre_tokenizers.Split("\n", "isolated")
    kept = "".join(letter for letter in LINES if letter.isascii())
    learnt.train_from_iterator([kept, kept], trainers.BpeTrainer(vocab_size=90, show_progress=False))
    found = json.loads(learnt.to_str())["model"]
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    words += [word for word in sorted(found["vocab"], key=found["vocab"].get) if word != "\n"]
    merges = [tuple(pair) for pair in found["merges"]]
    model = models.BPE({word: index for index, word in enumerate(words)}, merges, unk_token="<unk>", byte_fallback=True)
    core = Tokenizer(model)
    core.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    core.decoder = decoders.Sequence([*parts, decoders.Strip(content=" ", left=1, right=0)])
    core.add_special_tokens([AddedToken(mark, special=True) for mark in ("<s>", "</s>")])
    marks = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    return PreTrainedTokenizerFast(tokenizer_object=core, **marks)


TOKENIZERS = {"llama": llama_tokenizer, "gpt2": gpt2_tokenizer}


@cache
def random_model(kind, rows=0):
    """A random model of an architecture, with the tokenizer of its kind; `rows` beyond it are padding."""
    tokenizer = TOKENIZERS[kind]()
    return LanguageModel(module(kind, vocab_size=len(tokenizer) + rows), tokenizer, name=f"tiny {kind}")


@cache
def bare(kind, vocabulary):
    """transformers' own module of a random model."""
    return module(kind, vocab_size=vocabulary)


@cache
def scholar(kind):
    """A model that has learnt LESSON by heart, in its own tokens."""
    tokenizer = TOKENIZERS[kind]()
    ids = torch.tensor([tokenizer(LESSON * 2).input_ids])
    model = module(kind, vocab_size=len(tokenizer), initializer_range=0.1)
    learning = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(60):
        loss = model(ids, labels=ids).loss
        learning.zero_grad()
        loss.backward()
        learning.step()
    assert loss < 0.2
    return LanguageModel(model, tokenizer, name=f"scholar {kind}")


def ids_in(model, text):
    return model.tokenizer(text, add_special_tokens=False).input_ids


# telling a text again


def story(one, other, specials=None):
    target, draft = TOKENIZERS[one](), TOKENIZERS[other]()
    return target, draft, Retokenised(target, draft, specials or {}, ())


@pytest.mark.parametrize(("one", "other"), [("llama", "gpt2"), ("gpt2", "llama")])
@pytest.mark.parametrize("text", [*PROMPTS, LINES])
def test_a_text_is_told_in_the_drafts_own_tokens_however_it_came(one, other, text):
    target, draft, retokenised = story(one, other)
    ids = target(text, add_special_tokens=False).input_ids
    for token in ids:
        retokenised.push([token])
    assert retokenised.text == decode_ids(target, ids)
    assert retokenised.ids == draft(retokenised.text, add_special_tokens=False).input_ids
    assert decode_ids(draft, retokenised.ids) == retokenised.text and retokenised.held == []


def test_a_character_that_has_only_begun_is_held_back():
    target, _, retokenised = story("llama", "gpt2")
    ids = target("a日", add_special_tokens=False).input_ids
    retokenised.push(ids[:-1])
    assert retokenised.text == "a" and retokenised.held == ids[-3:-1] and len(retokenised.ids) == 1
    retokenised.push(ids[-1:])
    assert retokenised.text == "a日" and retokenised.held == []


def test_special_tokens_are_told_where_both_have_them_and_left_out_elsewhere():
    target, draft = llama_tokenizer(), gpt2_tokenizer()
    fox, end = target("fox", add_special_tokens=False).input_ids, draft.eos_token_id
    told = Retokenised(target, draft, {1: None, 2: end}, [])
    told.push([1, *fox, 2, *fox])
    once = draft("fox", add_special_tokens=False).input_ids
    assert told.ids == [*once, end, *once]
    begun = Retokenised(target, draft, {1: end}, [end])
    begun.push([1, *fox])
    assert begun.ids == [end, *once]  # the mark with which both begin a text comes once


@pytest.mark.parametrize(("one", "other"), [("llama", "gpt2"), ("gpt2", "llama")])
def test_a_long_text_is_told_in_pieces_and_stays_the_same(one, other):
    target, draft, retokenised = story(one, other)
    ids = target(LINES * 40, add_special_tokens=False).input_ids
    assert len(ids) > 1200
    for start in range(0, len(ids), 50):
        retokenised.push(ids[start : start + 50])
    assert retokenised.ids == draft(decode_ids(target, ids), add_special_tokens=False).input_ids
    assert len(retokenised.text) < len(LINES * 40) / 2  # what is told anew stays bounded


def test_a_continuation_is_split_as_it_would_be_in_its_place():
    target = llama_tokenizer()
    whole = target("The quick dog", add_special_tokens=False).input_ids
    assert (
        continuation(target, "The quick", " dog")
        == whole[len(target("The quick", add_special_tokens=False).input_ids) :]
    )
    alone = continuation(target, "", "dog")
    assert decode_ids(target, [*target("a", add_special_tokens=False).input_ids, *alone]) == "adog"  # and no space
    melted = continuation(target, "The qu", "ick")
    assert decode_ids(target, [*target("The qu", add_special_tokens=False).input_ids, *melted]) == "The quick"
    assert continuation(target, "The", "") == []


# shared tokens


def test_tokens_are_shared_that_have_the_same_bytes():
    one, other = random_model("llama"), random_model("gpt2", rows=3)
    shared = shared_tokens(one, other)
    names = [{number: name for name, number in m.tokenizer.get_vocab().items()} for m in (one, other)]
    for ours, theirs in shared.to_draft.items():
        spelt = names[0][ours], names[1][theirs]
        if ours != one.tokenizer.eos_token_id and not spelt[0].startswith("<0x"):
            assert spelt[0].replace("▁", "Ġ") == spelt[1]
    vocabulary = one.tokenizer.get_vocab()
    assert shared.to_draft[vocabulary["<0xE6>"]] == other.tokenizer.get_vocab()["æ"]  # byte E6
    assert [names[0][ours] for ours in shared.to_draft if names[0][ours].startswith("▁") and len(names[0][ours]) > 2]
    assert shared.to_draft[2] == other.tokenizer.eos_token_id  # </s> and <|endoftext|> both end a text
    assert len(set(shared.to_draft.values())) == len(shared.to_draft)
    assert vocabulary["<unk>"] not in shared.to_draft and vocabulary["<s>"] not in shared.to_draft


def test_logits_are_laid_out_by_the_targets_ids():
    one, other = random_model("llama"), random_model("gpt2")
    shared = shared_tokens(one, other)
    logits = torch.randn(2, other.vocabulary)
    wide = shared.restrict(logits)
    assert wide.shape == (2, one.vocabulary)
    for token in range(one.vocabulary):
        expected = logits[:, shared.to_draft[token]] if token in shared.to_draft else torch.full((2,), -torch.inf)
        assert torch.equal(wide[:, token], expected)
    for token in (5, 200):
        assert int(shared.in_draft(torch.tensor(token))) == shared.to_draft[token]


# greedy


@pytest.mark.parametrize(("one", "other"), [("llama", "gpt2"), ("gpt2", "llama")])
@pytest.mark.parametrize("text", PROMPTS)
def test_greedy_text_is_that_of_standard_decoding(one, other, text):
    """One way round the draft's tokens make the prompt longer, the other way shorter."""
    lm = random_model(one, rows=5)  # and it does write ids that its tokenizer lacks
    prompt = ids_in(lm, text)
    expected = standard_ids(lm, prompt, max_new_tokens=24, ignore_eos=True)
    for draft in (random_model(other), scholar(other)):
        strategy = make_draft("cross-tokenizer", lm, draft_model=draft)
        for k in (1, 3, 8):
            rounds = rounds_of(lm, strategy, prompt, k=k, max_new_tokens=24, ignore_eos=True, telemetry=False)
            assert_same(bare(one, lm.vocabulary), prompt, expected, ids_of(rounds), f"{draft.name}, {k}")
            assert all(each.drafted <= k and each.draft_passes <= k for each in rounds)


@pytest.mark.parametrize(("one", "other"), [("llama", "gpt2"), ("gpt2", "llama")])
def test_two_models_that_know_the_same_text_agree(one, other):
    lm, strategy = scholar(one), make_draft("cross-tokenizer", scholar(one), draft_model=scholar(other))
    prompt = ids_in(lm, LESSON * 2)[: len(ids_in(lm, LESSON))]
    expected = standard_ids(lm, prompt, max_new_tokens=30)
    assert "brown fox jumps" in decode_ids(lm.tokenizer, expected)
    for policy in ("fixed", "confidence-0.6", "adaptive"):
        rounds = rounds_of(lm, strategy, prompt, k=4, max_new_tokens=30, k_policy=policy)
        assert ids_of(rounds) == expected
        assert policy != "fixed" or 30 / len(rounds) > 1.5  # tokens a pass
        assert any(each.drafted < 4 and each.note for each in rounds)


def test_a_draft_without_rows_for_its_own_special_tokens_is_off_where_the_text_spells_one():
    ours, theirs = metaspace_tokenizer(), byte_level_tokenizer()
    target = LanguageModel(module(vocab_size=len(ours)), ours)
    short = LanguageModel(module(seed=4, vocab_size=len(theirs) - 1), theirs)
    strategy = make_draft("cross-tokenizer", target, draft_model=short)
    spelt = [ours.get_vocab()[f"<0x{byte:02X}>"] for byte in theirs.convert_ids_to_tokens(len(theirs) - 1).encode()]
    for prompt in (spelt, ours("the a").input_ids):
        rounds = rounds_of(target, strategy, prompt, k=4, max_new_tokens=8)
        assert ids_of(rounds) == standard_ids(target, prompt, max_new_tokens=8)
        assert rounds_of(target, strategy, prompt, k=4, max_new_tokens=8, temperature=1.0)
        off = [each.note for each in rounds if "holds a token" in (each.note or "")]
        assert bool(off) == (prompt == spelt)


def test_a_draft_reads_on_where_it_stopped():
    """Its passes read what is new to the text, not the text."""
    lm = scholar("llama")
    draft = LanguageModel(copy.deepcopy(module("gpt2", vocab_size=scholar("gpt2").vocabulary)), gpt2_tokenizer())
    widths, inner = [], draft.executor.run
    draft.executor.run = lambda ids, *rest, **more: (widths.append(len(ids)), inner(ids, *rest, **more))[1]
    strategy = make_draft("cross-tokenizer", lm, draft_model=draft)
    prompt = ids_in(lm, LINES)
    for temperature in (0.0, 1.0):
        widths.clear()
        rounds = rounds_of(lm, strategy, prompt, k=3, max_new_tokens=30, temperature=temperature)
        assert widths[0] == len(ids_in(draft, LINES)) - 1
        assert len(widths) == 1 + sum(each.draft_passes for each in rounds)
        assert max(widths[1:]) <= 12


def test_an_end_that_the_draft_foresees_is_told_as_the_targets_own():
    lm, other = random_model("llama"), random_model("gpt2")
    run = Run(lm, Settings(), (1,), 64, Draws(0, 1, torch.device("cpu")))
    drafter = make_draft("cross-tokenizer", lm, draft_model=other).start(run)
    drafter.observe(tuple(ids_in(lm, "The")), Seen(()))
    dog = ids_in(other, " dog")
    assert drafter._told([*dog, other.tokenizer.eos_token_id, *dog]) == [*continuation(lm.tokenizer, "The", " dog"), 2]
    assert drafter._told([]) == []
    drafter.close()


# sampled


ORDER = ["e", "d", "c", "b", "a", "ab", "x"]


def letters_tokenizer(words, merges=()):
    """A token a letter, and what `merges` joins."""
    core = Tokenizer(models.BPE({word: index for index, word in enumerate(words)}, list(merges)))
    core.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=core)


@cache
def letters_pair(eos):
    """Letters a to e, and a draft that has them in another order and one more, and joins a and b."""
    known = () if eos is None else (eos,)
    first = QuickTables.speed_up(LanguageModel(table_module(VOCABULARY, 3), letters_tokenizer("abcde"), eos_ids=known))
    ends = () if eos is None else (ORDER.index("abcde"[eos]),)
    other = LanguageModel(table_module(7, 4), letters_tokenizer(ORDER, [("a", "b")]), eos_ids=ends)
    return first, make_draft("cross-tokenizer", first, draft_model=QuickTables.speed_up(other))


def sample_pair(settings, eos, k, seeds):
    (lm, strategy), texts, verdicts = letters_pair(eos), Counter(), Counter()
    for seed in seeds:
        asked = Settings(k=k, max_new_tokens=k + 2, seed=seed, telemetry=False, **settings)
        rounds = list(decode(lm, strategy, PROMPT, asked))
        texts[tuple(ids_of(rounds))] += 1
        verdicts.update(draft.verdict for each in rounds for draft in each.drafts)
        verdicts.update(each.target.kind for each in rounds if each.target)
    return texts, verdicts


@pytest.mark.parametrize(
    ("settings", "eos", "k"),
    [
        (FILTERED, None, 2),
        pytest.param(PLAIN, None, 2, marks=pytest.mark.slow),
        pytest.param(PENALISED, 3, 1, marks=pytest.mark.slow),
        pytest.param({**PLAIN, "k_policy": "confidence-0.5"}, None, 2, marks=pytest.mark.slow),
        pytest.param(PLAIN, None, 1, marks=pytest.mark.slow),
        pytest.param(FILTERED, 3, 1, marks=pytest.mark.slow),
        pytest.param(PENALISED, None, 2, marks=pytest.mark.slow),
    ],
)
def test_sampled_text_has_the_law_of_the_target(workers, settings, eos, k):
    texts, counts = workers.spread(partial(sample_pair, settings, eos, k), RUNS)
    law = exact_law(table_logits(table_module(VOCABULARY, 3)), PROMPT, k + 2, settings, eos)
    assert p_value(texts, law) >= LEAST
    assert min(counts[one] for one in (Verdict.ACCEPTED, Verdict.REJECTED, Kind.BONUS, Kind.CORRECTION)) > 50


def test_a_sampled_draft_is_drawn_from_the_shared_tokens_alone():
    lm, other = random_model("llama"), random_model("gpt2")
    shared = shared_tokens(lm, other)
    strategy = make_draft("cross-tokenizer", lm, draft_model=other)
    for text in PROMPTS:
        rounds = rounds_of(lm, strategy, ids_in(lm, text), k=4, max_new_tokens=40, temperature=1.0, ignore_eos=True)
        drafts = [draft for each in rounds for draft in each.drafts]
        assert drafts and {draft.token.id for draft in drafts} <= set(shared.to_draft)
        assert all(0 < draft.draft_prob <= 1 for draft in drafts)


def test_two_tokenizers_that_share_nothing_draft_nothing_when_sampling():
    lm = LanguageModel(table_module(3, 1), letters_tokenizer("abc"))
    other = LanguageModel(table_module(3, 2), letters_tokenizer("xyz"))
    rounds = rounds_of(lm, make_draft("cross-tokenizer", lm, draft_model=other), [0, 1], k=2, temperature=1.0)
    assert {(each.drafted, each.note) for each in rounds} == {
        (0, "draft off: the two tokenizers have no token in common")
    }


# pairs


def test_a_draft_model_with_other_tokens_is_refused_with_the_way_out():
    with pytest.raises(PairError, match="tokenizers differ.*use this one as the draft 'cross-tokenizer'"):
        make_draft("draft-model", random_model("llama"), draft_model=random_model("gpt2"))


def test_the_note_says_how_much_is_shared():
    lm, other = random_model("llama"), random_model("gpt2")
    note = make_draft("cross-tokenizer", lm, draft_model=other).note
    assert f"{len(shared_tokens(lm, other).to_draft)} of the target's {lm.vocabulary} tokens are shared" in note


def test_a_pair_that_shares_its_tokens_drafts_as_a_draft_model_does():
    lm, other = random_model("llama"), LanguageModel(module("llama", 7, vocab_size=400), llama_tokenizer())
    runs = [
        rounds_of(lm, make_draft(name, lm, draft_model=other), [5, 300, 7], k=3, temperature=1.0)
        for name in ("cross-tokenizer", "draft-model")
    ]
    assert [[each.drafts, each.target] for each in runs[0]] == [[each.drafts, each.target] for each in runs[1]]


def test_a_draft_is_as_good_as_new_afterwards():
    lm, same = random_model("llama"), random_model("gpt2")
    model = module("gpt2", 3, vocab_size=same.vocabulary)
    before = copy.deepcopy(model.state_dict())
    used, fresh = LanguageModel(model, gpt2_tokenizer()), LanguageModel(copy.deepcopy(model), gpt2_tokenizer())
    for temperature in (0.0, 1.0):
        rounds_of(lm, make_draft("cross-tokenizer", lm, draft_model=used), [5, 300], k=3, temperature=temperature)
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
    runs = [
        rounds_of(same, make_draft("draft-model", same, draft_model=draft), [5, 20], k=3, temperature=1.0)
        for draft in (used, fresh)
    ]
    assert [[each.drafts, each.target] for each in runs[0]] == [[each.drafts, each.target] for each in runs[1]]


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_draft_with_a_short_context_stops_drafting_and_says_so(temperature):
    lm = random_model("llama")
    short = LanguageModel(
        module("gpt2", vocab_size=len(gpt2_tokenizer()), n_positions=40), gpt2_tokenizer(), name="short"
    )
    strategy = make_draft("cross-tokenizer", lm, draft_model=short)
    prompt, settings = ids_in(lm, "The quick brown fox"), {"max_new_tokens": 80, "ignore_eos": True}
    rounds = rounds_of(lm, strategy, prompt, k=4, temperature=temperature, **settings)
    assert any(each.drafted for each in rounds) and rounds[-1].drafted == 0
    assert rounds[-1].note == "draft off: short reads at most 40 tokens, and the text is longer"
    if temperature == 0:
        assert ids_of(rounds) == standard_ids(lm, prompt, **settings)
    longer = rounds_of(lm, strategy, ids_in(lm, LINES), k=4, max_new_tokens=4, temperature=temperature)
    assert {each.drafted for each in longer} == {0}


def test_a_draft_whose_tokens_are_many_more_finds_room():
    """Single letters against words: the draft's context grows beyond the target's count."""
    lm = scholar("gpt2")
    letters = letters_tokenizer(sorted(set(LINES)))
    draft = LanguageModel(module("llama", vocab_size=len(letters), max_position_embeddings=2048), letters)
    prompt = ids_in(lm, LINES * 2)[:150]
    strategy = make_draft("cross-tokenizer", lm, draft_model=draft)
    rounds = rounds_of(lm, strategy, prompt, k=8, max_new_tokens=20)
    assert len(ids_in(draft, decode_ids(lm.tokenizer, prompt))) > 150 + 20 + 8
    assert ids_of(rounds) == standard_ids(lm, prompt, max_new_tokens=20)
    assert all(each.draft_passes > 0 for each in rounds)
