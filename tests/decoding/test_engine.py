"""The loop: rounds scripted by hand, the token that ends a run, what a closed run leaves behind, and runs at once."""

import threading
from dataclasses import dataclass
from typing import Any

import numpy
import pytest
import torch
from support.tiny import (
    draft_models,
    every_draft,
    ids_of,
    module,
    outcome_of,
    rounds_of,
    scripted_module,
    standard_ids,
    table_module,
    target,
    words_tokenizer,
)

from specviz import LanguageModel, Settings, decode, make_draft
from specviz.core.errors import ContextError, InputError, SpecvizError
from specviz.decoding.engine import capacity_for
from specviz.drafting import Drafter, Proposal, Strategy
from specviz.traces import Kind, Reason, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

WORDS = ["<unk>", "one ", "two ", "three ", "four ", "five ", "<end>", "six "]
COUNTING = {1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 1, 7: 1}


def counting(eos="<end>"):
    """Counts from one to five, writes the end mark, and starts again."""
    return LanguageModel(scripted_module(COUNTING, 8), words_tokenizer(WORDS, eos=eos))


@dataclass(frozen=True)
class Says(Strategy):
    """Proposes what it is told to, block by block, then nothing."""

    blocks: Any

    def start(self, run):
        return _Says(iter(self.blocks))


class _Says(Drafter):
    def __init__(self, blocks):
        self._blocks = blocks

    def propose(self, k):
        return Proposal(tuple(next(self._blocks, ()))[:k], passes=1)


def spelled(rounds):
    """Rounds as text: A accepted, R rejected, U untested, then the target's kind."""
    letters = {Verdict.ACCEPTED: "A", Verdict.REJECTED: "R", Verdict.UNTESTED: "U"}
    kinds = {Kind.CORRECTION: "c", Kind.BONUS: "b", Kind.STANDARD: "s"}
    return ["".join(letters[d.verdict] for d in r.drafts) + (kinds[r.target.kind] if r.target else "") for r in rounds]


def test_a_scripted_run_is_as_worked_by_hand():
    blocks = [(2, 3, 4), (1, 6), (), (2, 3, 5), (4, 5)]
    rounds, outcome = outcome_of(counting(), Says(blocks), [1], k=3, max_new_tokens=11, ignore_eos=True)
    # 1 | 2 3 4 5 | (1 is wrong) 6 | 1 | 2 3 (5 is wrong) 4 | (4 is wrong) 5 | 6
    assert spelled(rounds) == ["AAAb", "RUc", "s", "AARc", "RUc", "s"]
    assert ids_of(rounds) == [2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]
    assert [each.index for each in rounds] == [0, 1, 2, 3, 4, 5]
    assert [(each.k, each.drafted, each.target_passes) for each in rounds[:3]] == [(3, 3, 1), (3, 2, 1), (3, 0, 1)]
    assert outcome.reason is Reason.LENGTH


def test_kept_tokens_are_accepted_drafts_and_the_targets_own():
    for name, strategy in every_draft(target(), draft_models()):
        for temperature in (0.0, 1.0):
            rounds = rounds_of(target(), strategy, [3, 9, 3], k=4, max_new_tokens=18, temperature=temperature)
            for each in rounds:
                if any(draft.parent not in (None, place - 1) for place, draft in enumerate(each.drafts)):
                    continue  # a tree's path is the matter of test_trees
                verdicts = [draft.verdict for draft in each.drafts]
                count = verdicts.count(Verdict.ACCEPTED)
                assert verdicts[:count] == [Verdict.ACCEPTED] * count, name
                assert verdicts.count(Verdict.REJECTED) <= 1
                assert set(verdicts[count + 1 :]) <= {Verdict.UNTESTED}
                if each.target is None:
                    assert each is rounds[-1]
                else:
                    kind = Kind.STANDARD if not verdicts else Kind.BONUS if count == len(verdicts) else Kind.CORRECTION
                    assert each.target.kind is kind
            assert len(ids_of(rounds)) == 18


def test_numbers_of_a_round_fit_its_verdicts():
    strategy = make_draft("draft-model", target(), draft_model=draft_models()["perturbed"])
    rounds = rounds_of(target(), strategy, [3, 9], k=4, max_new_tokens=60, temperature=1.0, top_p=0.95)
    tested = [d for each in rounds for d in each.drafts if d.verdict is not Verdict.UNTESTED]
    assert {Verdict.ACCEPTED, Verdict.REJECTED} == {draft.verdict for draft in tested}
    for draft in tested:
        assert (draft.draw * draft.draft_prob < draft.target_prob) == (draft.verdict is Verdict.ACCEPTED)
        assert 0.0 <= draft.draw < 1.0 and 0.0 <= draft.overlap <= 1.0 + 1e-6
        assert draft.overlap >= min(draft.draft_prob, draft.target_prob) - 1e-6
        assert len(draft.draft_top) == len(draft.target_top) == 5
        assert [value for _, value in draft.target_top] == sorted((v for _, v in draft.target_top), reverse=True)
    for draft in (d for each in rounds for d in each.drafts if d.verdict is Verdict.UNTESTED):
        assert draft.draw is draft.target_prob is draft.overlap is draft.target_top is None and draft.draft_prob > 0
    for each in rounds:
        if each.target is not None:
            assert each.target.margin >= 0 and 0 < each.target.draw_prob <= 1.0 + 1e-6
            assert (each.target.residual_top is not None) == (each.target.kind is Kind.CORRECTION)
            if each.target.kind is not Kind.CORRECTION:
                assert each.target.draw_prob == pytest.approx(each.target.target_prob, abs=1e-6)


def test_a_greedy_round_draws_nothing():
    strategy = make_draft("draft-model", target(), draft_model=draft_models()["perturbed"])
    for each in rounds_of(target(), strategy, [3, 9], k=3, max_new_tokens=20):
        assert all(draft.draw is None for draft in each.drafts)
        assert each.target is None or each.target.residual_top is None


# endings


@pytest.mark.parametrize("draft", ["draft-model", "prompt-lookup", "none"])
@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_an_accepted_end_mark_ends_the_run_inside_the_block(draft, k):
    lm = counting()
    strategy = make_draft(draft, lm, draft_model=lm if draft == "draft-model" else None)
    rounds, outcome = outcome_of(lm, strategy, [1, 2, 3, 4, 5, 6, 1, 2], k=k, max_new_tokens=40)
    assert ids_of(rounds) == [3, 4, 5, 6]
    assert outcome.reason is Reason.EOS and outcome.text == "three four five "
    assert [token.text for token in rounds[-1].kept][-1] == ""
    if draft != "none" and k == 8:
        assert spelled(rounds) == ["AAAAUUUU"]


@pytest.mark.parametrize("max_new_tokens", [1, 2, 3])
@pytest.mark.parametrize("draft", ["draft-model", "prompt-lookup"])
def test_a_block_longer_than_the_run_is_cut_to_it(draft, max_new_tokens):
    lm = counting(eos=None)
    strategy = make_draft(draft, lm, draft_model=lm if draft == "draft-model" else None)
    rounds, outcome = outcome_of(lm, strategy, [1, 2, 3, 4, 5, 6, 1, 2], k=8, max_new_tokens=max_new_tokens)
    assert spelled(rounds) == ["A" * max_new_tokens + "U" * (8 - max_new_tokens)]
    assert ids_of(rounds) == [3, 4, 5][:max_new_tokens] and outcome.reason is Reason.LENGTH


def test_a_run_may_end_on_the_bonus_or_the_correction():
    lm = counting(eos=None)
    assert spelled(rounds_of(lm, Says([(2, 3)]), [1], k=2, max_new_tokens=3)) == ["AAb"]
    assert spelled(rounds_of(lm, Says([(2, 5)]), [1], k=2, max_new_tokens=2)) == ["ARc"]
    assert spelled(rounds_of(lm, Says([(2, 5)]), [1], k=2, max_new_tokens=1)) == ["AU"]
    assert spelled(rounds_of(counting(), Says([(5,)]), [4], k=1, max_new_tokens=9)) == [
        "Ab"
    ]  # the bonus is the end mark


@pytest.mark.parametrize(("stop", "ids", "text"), [("four", [2, 3, 4], "two three "), ("ee f", [2, 3, 4], "two thr")])
@pytest.mark.parametrize("k", [0, 1, 2, 8])
def test_a_stop_string_cuts_text_and_tokens_in_mid_block(stop, ids, text, k):
    lm = counting()
    for draft in ("draft-model", "prompt-lookup"):
        strategy = make_draft(draft, lm, draft_model=lm if draft == "draft-model" else None)
        for telemetry in (True, False):
            prompt = [1, 2, 3, 4, 5, 6, 1]
            rounds, outcome = outcome_of(
                lm, strategy, prompt, k=k, max_new_tokens=40, stop=(stop,), telemetry=telemetry
            )
            assert ids_of(rounds) == ids and outcome.text == text and outcome.reason is Reason.STOP


def test_a_stop_string_of_the_prompt_does_not_stop_a_run():
    _, outcome = outcome_of(
        counting(), make_draft("none", counting()), [1, 2, 3], max_new_tokens=2, stop=("two", "e f")
    )
    assert outcome.reason is Reason.LENGTH and outcome.text == "four five "


def test_kept_texts_and_tail_are_the_decoded_whole():
    lm = counting()
    for settings in ({}, {"ignore_eos": True}, {"stop": ("five",)}, {"temperature": 2.0, "seed": 3}):
        strategy = make_draft("draft-model", lm, draft_model=lm)
        rounds, outcome = outcome_of(lm, strategy, [1], k=3, max_new_tokens=17, **settings)
        texts = "".join(token.text for each in rounds for token in each.kept)
        assert texts + outcome.tail == lm.tokenizer.decode(ids_of(rounds), skip_special_tokens=True)


def test_without_a_tokenizer_there_is_no_text_and_no_end_mark():
    lm = LanguageModel(scripted_module(COUNTING, 8), None)
    rounds, outcome = outcome_of(lm, make_draft("prompt-lookup", lm), [1], k=3, max_new_tokens=14)
    assert len(ids_of(rounds)) == 14 and outcome.text is None and outcome.tail is None
    with pytest.raises(InputError, match="need a tokenizer"):
        rounds_of(lm, make_draft("none", lm), [1], stop=("x",))


# contexts


def short(limit):
    model = table_module(5, 3, sharpness=3.0)
    model.config.max_position_embeddings = limit
    return LanguageModel(model, None)


@pytest.mark.parametrize("k", [1, 3, 8, 64])
def test_k_is_cut_to_the_room_in_the_context_and_says_so(k):
    lm = short(40)
    expected, outcome = outcome_of(lm, make_draft("none", lm), [1, 2, 3], max_new_tokens=100)
    assert outcome.reason is Reason.CONTEXT and len(expected) == 37
    for _, strategy in every_draft(lm, {"same": lm}):
        rounds, outcome = outcome_of(lm, strategy, [1, 2, 3], k=k, max_new_tokens=100)
        assert ids_of(rounds) == ids_of(expected) and outcome.reason is Reason.CONTEXT
        for each in rounds if strategy.drafts else ():
            room = 40 - 3 - sum(len(before.kept) for before in rounds[: each.index])
            assert each.k == min(k, room)
            assert (each.note is not None and f"k cut to {room}" in each.note) == (room < k)


def test_k_is_never_cut_to_the_length_asked_for():
    lm = counting(eos=None)
    rounds = rounds_of(lm, make_draft("draft-model", lm, draft_model=lm), [1], k=8, max_new_tokens=2)
    assert [(each.k, each.drafted, each.note) for each in rounds] == [(8, 8, None)]


def test_a_prompt_that_leaves_room_for_one_token_writes_one():
    lm = short(40)
    for k in (0, 1, 8):
        strategy = make_draft("draft-model", lm, draft_model=lm)
        rounds, outcome = outcome_of(lm, strategy, [1] * 39, k=k, max_new_tokens=5)
        assert len(ids_of(rounds)) == 1 and outcome.reason is Reason.CONTEXT


@pytest.mark.parametrize("prompt", [[], [1] * 40, [1] * 41, [5], [-1], [1, 99]])
def test_prompts_that_cannot_be_decoded_are_refused_in_words(prompt):
    lm = short(40)
    with pytest.raises((InputError, ContextError), match="prompt"):
        rounds_of(lm, make_draft("none", lm), prompt)


def test_k_zero_decodes_as_standard():
    for name, strategy in every_draft(target(), draft_models()):
        rounds = rounds_of(target(), strategy, [5], k=0, max_new_tokens=10)
        assert spelled(rounds) == ["s"] * 10, name
        assert {(each.k, each.drafted, each.draft_passes) for each in rounds} == {(0, 0, 0)}
        assert ids_of(rounds) == standard_ids(target(), [5], max_new_tokens=10)


def test_the_reserve_covers_what_a_run_can_need():
    lm = short(40)
    assert capacity_for(lm, [1] * 10, Settings(k=4, max_new_tokens=8)) == 22
    assert capacity_for(lm, [1] * 10, Settings(k=4, max_new_tokens=800)) == 40


def test_a_draft_with_a_shorter_context_falls_silent_and_says_so():
    lm = LanguageModel(table_module(5, 3, sharpness=3.0), None)
    small_module = table_module(5, 3, sharpness=3.0)
    small_module.config.max_position_embeddings = 32
    strategy = make_draft("draft-model", lm, draft_model=LanguageModel(small_module, None))
    for prompt in ([1] * 4, [1] * 31, [1] * 32, [1] * 33, [1] * 34, [1] * 60):
        expected = standard_ids(lm, prompt, max_new_tokens=50)
        for k in (1, 3, 8, 40):
            rounds = rounds_of(lm, strategy, prompt, k=k, max_new_tokens=50)
            assert ids_of(rounds) == expected
            silent = [each for each in rounds if "draft off" in (each.note or "")]
            assert all(each.drafted == 0 and each.draft_passes == 0 for each in silent)
            assert all(each.drafted > 0 for each in rounds if each not in silent)
            assert silent and silent == rounds[-len(silent) :]


# a run leaves nothing behind


class Ledger:
    """Caches that a model has made and taken back."""

    def __init__(self, model):
        self.open, self.made = 0, 0
        opened, given, new = model.open, model.give_back, model.executor.new_cache
        model.open = lambda capacity: self._count(1, opened(capacity))
        model.give_back = lambda cache: self._count(-1, given(cache))
        model.executor.new_cache = lambda size: self._made(new(size))

    def _count(self, step, value):
        self.open += step
        return value

    def _made(self, cache):
        self.made += 1
        return cache


def test_closing_a_run_early_frees_its_caches():
    lm = LanguageModel(table_module(5, 3), None)
    draft = LanguageModel(table_module(5, 4), None)
    ledgers = Ledger(lm), Ledger(draft)
    strategy = make_draft("draft-model", lm, draft_model=draft)
    for _ in range(5):
        decoding = decode(lm, strategy, [1, 2], Settings(k=2, max_new_tokens=20))
        next(decoding)
        assert [ledger.open for ledger in ledgers] == [1, 1]
        decoding.close()
        assert [ledger.open for ledger in ledgers] == [0, 0]
    list(decode(lm, strategy, [1, 2], Settings(k=2, max_new_tokens=20)))
    assert [ledger.open for ledger in ledgers] == [0, 0]
    assert max(ledger.made for ledger in ledgers) <= 1


@pytest.mark.parametrize("where", ["start", "propose", "observe"])
def test_a_draft_that_fails_leaves_no_cache_open(where):
    @dataclass(frozen=True)
    class Failing(Strategy):
        def start(self, run):
            if where == "start":
                raise RuntimeError("no start")
            return _Failing()

    class _Failing(Drafter):
        def propose(self, k):
            if where == "propose":
                raise RuntimeError("no proposal")
            return Proposal((1,))

        def observe(self, kept_ids, seen):
            if where == "observe" and len(kept_ids) < 2:
                raise RuntimeError("not seen")

    lm = LanguageModel(table_module(5, 3), None)
    ledger = Ledger(lm)
    with pytest.raises(RuntimeError, match="no"):
        rounds_of(lm, Failing(), [1, 2], max_new_tokens=40, temperature=1.0)
    assert ledger.open == 0


def test_a_target_that_cannot_open_leaves_no_draft_cache_open(monkeypatch):
    lm, draft = LanguageModel(table_module(5, 3), None), LanguageModel(table_module(5, 4), None)
    ledger = Ledger(draft)
    strategy = make_draft("draft-model", lm, draft_model=draft)

    def full(capacity):
        raise ContextError("no room")

    monkeypatch.setattr(lm, "open", full)
    with pytest.raises(ContextError):
        rounds_of(lm, strategy, [1, 2])
    assert ledger.open == 0


def test_the_same_seed_repeats_tokens_and_verdicts_and_another_does_not():
    for name, strategy in every_draft(target(), draft_models()):
        runs = [
            rounds_of(target(), strategy, [3, 9, 3], k=3, max_new_tokens=24, temperature=1.5, seed=seed)
            for seed in (5, 5, 6)
        ]
        patterns = [(ids_of(rounds), spelled(rounds)) for rounds in runs]
        assert patterns[0] == patterns[1] != patterns[2], name


def test_a_run_is_the_same_after_other_runs_of_the_same_models():
    strategy = make_draft("draft-model", target(), draft_model=draft_models()["perturbed"])

    def run():
        rounds = rounds_of(target(), strategy, [8, 1], k=4, max_new_tokens=24, temperature=0.9)
        return ids_of(rounds), spelled(rounds), [each.k for each in rounds]

    before = run()
    for settings in ({"k": 16}, {"temperature": 2.0, "top_k": 3}, {"repetition_penalty": 2.0}):
        rounds_of(target(), strategy, [60] * 30, max_new_tokens=24, **settings)
    assert run() == before


def test_two_runs_at_once_are_each_as_if_alone():
    lm, draft = LanguageModel(module(), None), draft_models()["perturbed"]
    strategy = make_draft("draft-model", lm, draft_model=draft)
    asked = [([3, 9, seed], {"k": 3, "max_new_tokens": 40, "temperature": 1.2, "seed": seed}) for seed in (1, 2)]
    alone = [(ids_of(r), spelled(r)) for r in (rounds_of(lm, strategy, prompt, **s) for prompt, s in asked)]
    for _ in range(3):
        found, barrier = [None, None], threading.Barrier(2)

        def work(index, found=found, barrier=barrier):
            torch.set_num_threads(1)
            barrier.wait()
            prompt, settings = asked[index]
            rounds = rounds_of(lm, strategy, prompt, **settings)
            found[index] = (ids_of(rounds), spelled(rounds))

        threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == alone


def test_two_runs_that_take_turns_are_each_as_if_alone():
    strategy = make_draft("draft-model", target(), draft_model=draft_models()["perturbed"])
    settings = [Settings(k=3, max_new_tokens=20, temperature=1.2, seed=seed) for seed in (1, 2)]
    alone = [list(decode(target(), strategy, [3, 9], each)) for each in settings]
    turns = [decode(target(), strategy, [3, 9], each) for each in settings]
    found = [[], []]
    while turns[0] or turns[1]:
        for index in (0, 1):
            each = next(turns[index], None) if turns[index] else None
            if each is None:
                turns[index] = None
            else:
                found[index].append(each)
    assert [ids_of(rounds) for rounds in found] == [ids_of(rounds) for rounds in alone]
    assert [spelled(rounds) for rounds in found] == [spelled(rounds) for rounds in alone]


def test_the_same_model_as_draft_at_a_tiny_temperature_is_always_right():
    model = table_module(5, 3)
    model.config.max_position_embeddings = 520
    lm = LanguageModel(model, None)
    strategy = make_draft("draft-model", lm, draft_model=lm)
    for seed in range(20):
        rounds = rounds_of(lm, strategy, [1, 2], k=8, max_new_tokens=500, temperature=0.01, seed=seed, telemetry=False)
        assert len(ids_of(rounds)) == 500
        assert {draft.verdict for each in rounds[:-1] for draft in each.drafts} == {Verdict.ACCEPTED}


@pytest.mark.parametrize("prompt", ["123", "hello", {1: 2}, [1.5], [[1, 2]], None, 5, torch.ones(1, 3).long()])
def test_a_prompt_that_is_no_flat_sequence_of_ids_is_refused_in_words(prompt):
    with pytest.raises(InputError, match="prompt must be"):
        next(decode(target(), make_draft("none", target()), prompt, Settings()))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_no_numbers_are_said_so(temperature):
    broken = LanguageModel(module(), None, weights="plain")
    head = broken.executor.module.lm_head
    head.weight = torch.nn.Parameter(torch.full_like(head.weight, torch.nan))
    with pytest.raises(SpecvizError, match="not numbers"):
        next(decode(broken, make_draft("none", broken), [1, 2], Settings(temperature=temperature)))


@pytest.mark.parametrize("wrong", [{"stop": None}, {"stop": 5}, {"ignore_eos": "false"}, {"telemetry": None}])
def test_settings_of_a_wrong_type_are_refused_in_words(wrong):
    with pytest.raises(InputError):
        Settings(**wrong)


def test_numpy_numbers_are_numbers():
    assert Settings(k=numpy.int64(3), temperature=numpy.float32(0.5)) == Settings(k=3, temperature=0.5)
