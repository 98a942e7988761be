"""Trained drafts: what their files may hold, what is refused, and that they draft with the target's own parts.

That they are exact is shown by the tests that run through every strategy; here the weights are chosen so that the
drafts can be told beforehand.
"""

import json
import math

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from support.tiny import byte_level_tokenizer, ids_of, module, rounds_of, standard_ids, target, words_tokenizer
from support.tiny_drafts import make_strategy, random_head, random_student

from specviz import LanguageModel, Settings, make_draft
from specviz.core.errors import InputError, PairError
from specviz.drafting import Run, Seen, bundled_drafts
from specviz.drafting.draft_weights import IDS, save_weights
from specviz.drafting.feature_pass import FEATURE_NORM, FUSE, TOKEN_NORM, HeadShape
from specviz.drafting.target_facts import target_facts
from specviz.models.shallow import own_parameters
from specviz.sampling.sampler import Draws

pytestmark = pytest.mark.usefixtures("one_thread")

PROMPT = [3, 9, 4, 3, 9]
BOTH = (("student", random_student), ("feature-head", random_head))


def whole_student(lm, source, path, ids=None):
    """A student that has every layer of the target, with the target's own weights."""
    facts = {"kind": "student", "target": target_facts(lm), "layers": lm.layers}
    extra = {} if ids is None else {IDS: torch.tensor(ids)}
    save_weights(path, {**own_parameters(source), **extra}, facts)
    return make_draft("student", lm, weights=str(path))


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "gpt2", "gemma3, window 8"])
@pytest.mark.parametrize("weights", ["native", "plain"])
def test_a_student_of_all_the_targets_layers_is_always_right(architecture, weights, tmp_path):
    source = module(architecture)
    lm = LanguageModel(source, None, weights=weights)
    rounds = rounds_of(lm, whole_student(lm, source, tmp_path / "s.safetensors"), PROMPT, k=3, max_new_tokens=20)
    assert all(len(each.accepted) == each.drafted == 3 for each in rounds[:-1])


@pytest.mark.parametrize("weights", ["native", "plain"])
@pytest.mark.parametrize("tied", [False, True])
def test_a_reduced_vocabulary_drafts_its_own_ids_only_and_right_ones(weights, tied, tmp_path):
    source = module(tie_word_embeddings=tied)
    lm = LanguageModel(source, None, weights=weights)
    expected = standard_ids(lm, PROMPT, max_new_tokens=20)
    known = sorted(set(expected[::2]))
    strategy = whole_student(lm, source, tmp_path / "s.safetensors", known)
    assert "knows" in strategy.note
    rounds = rounds_of(lm, strategy, PROMPT, k=1, max_new_tokens=20)
    assert ids_of(rounds) == expected
    drafts = [draft.token.id for each in rounds for draft in each.drafts]
    assert set(drafts) <= set(known)
    place = 0
    for each in rounds:  # the best of all ids is the best of those known wherever it is one of them
        assert bool(each.accepted) == (expected[place] in known)
        place += len(ids_of([each]))


def test_sampled_drafts_of_a_reduced_vocabulary_come_from_a_distribution_over_it(tmp_path):
    lm, known = target(), [1, 5, 9, 40]
    for name, write in BOTH:
        path = write(lm, tmp_path / f"{name}.safetensors", ids=known)
        rounds = rounds_of(lm, make_draft(name, lm, weights=str(path)), PROMPT, k=3, max_new_tokens=30, temperature=1.0)
        drafts = [draft for each in rounds for draft in each.drafts]
        assert drafts and {draft.token.id for draft in drafts} <= set(known)
        assert all(0.0 < draft.draft_prob <= 1.0 for draft in drafts)


def copying_head(lm, path):
    """A feature head whose layer adds nothing and whose fuse passes on the features: it says again what it reads."""
    shape = HeadShape.of(lm.config, 32, lm.context_length)
    zeros, ones = torch.zeros(32, 32), torch.ones(32)
    special = {FUSE: torch.cat([torch.eye(32), zeros], -1), TOKEN_NORM: ones, FEATURE_NORM: ones.clone()}
    tensors = {name: special.get(name, torch.ones(size) if len(size) == 1 else torch.zeros(size))
               for name, size in shape.shapes().items()}  # fmt: skip
    save_weights(path, tensors, {"kind": "feature-head", "target": target_facts(lm), "shape": shape.facts})
    return make_draft("feature-head", lm, weights=str(path))


@pytest.mark.parametrize("weights", ["native", "plain"])
@pytest.mark.parametrize("prompt", [[7], PROMPT])
def test_a_head_that_copies_the_features_says_the_last_token_again(weights, prompt, tmp_path):
    """What the target said before the last kept token is that token: features and tokens are in step."""
    lm = LanguageModel(module(), None, weights=weights)
    rounds = rounds_of(lm, copying_head(lm, tmp_path / "h.safetensors"), prompt, k=3, max_new_tokens=25)
    last = None
    for each in rounds:
        if last is not None:
            assert [draft.token.id for draft in each.drafts] == [last] * len(each.drafts)
        last = ids_of([each])[-1]
    assert {len(each.accepted) for each in rounds} != {0} or len(rounds) == 25


def test_a_head_reads_the_kept_text_the_same_in_one_piece_and_round_by_round(tmp_path):
    """What a rejected block left in its cache is not seen again."""
    lm = target()
    strategy = make_draft("feature-head", lm, weights=str(random_head(lm, tmp_path / "h.safetensors")))
    text = standard_ids(lm, PROMPT, max_new_tokens=20)
    with lm.open(40) as context:
        hidden = context.forward([*PROMPT, *text], hidden=True)[1]
    run = Run(lm, Settings(k=4), tuple(PROMPT), 64, Draws(0, 1, torch.device("cpu")))
    whole, grown = strategy.start(run), strategy.start(run)
    kept = [*PROMPT, *text[:9]]
    whole.observe(kept, Seen(tuple(kept[:-1]), hidden=hidden[: len(kept) - 1]))
    grown.observe(PROMPT, Seen(tuple(PROMPT[:-1]), hidden=hidden[: len(PROMPT) - 1]))
    for place in range(len(PROMPT), len(kept), 3):
        grown.propose(4)
        block = kept[place : place + 3]
        rejected = torch.full((2, 32), 9.0)  # what the target said of drafts that were not kept
        seen = torch.cat([hidden[place - 1 : place + 2], rejected])
        grown.observe(block, Seen((kept[place - 1], *block, 0), hidden=seen))
    assert whole.propose(4).ids.tolist() == grown.propose(4).ids.tolist()


@pytest.mark.parametrize("name", ["student", "feature-head"])
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.8, "repetition_penalty": 1.2, "top_k": 9}])
def test_a_trained_draft_never_waits_for_the_device_while_it_drafts(name, settings, monkeypatch):
    lm = target()
    strategy = make_strategy(name, lm)
    kind = type(strategy.start(Run(lm, Settings(**settings), tuple(PROMPT), 64, Draws(0, 1, torch.device("cpu")))))
    propose = kind.propose

    def guarded(drafter, k):
        with monkeypatch.context() as patched:
            for read in ("item", "tolist", "__bool__", "__int__", "__float__", "__index__", "numpy"):
                patched.setattr(torch.Tensor, read, _waits)
            return propose(drafter, k)

    monkeypatch.setattr(kind, "propose", guarded)
    rounds = rounds_of(lm, strategy, PROMPT, k=4, max_new_tokens=12, **settings)
    assert all(each.draft_passes == each.drafted == 4 for each in rounds)


def _waits(*_):
    raise AssertionError("the host waited for the device")


def test_the_target_and_its_parts_are_shared_and_not_changed(tmp_path):
    lm = LanguageModel(module(), None)
    before = standard_ids(lm, PROMPT, max_new_tokens=20)
    embedding = lm.executor._embedding.clone()
    for name, _ in BOTH:
        rounds_of(lm, make_strategy(name, lm), PROMPT, k=3, max_new_tokens=20)
    student = make_strategy("student", lm).model
    assert student.executor._embedding.data_ptr() == lm.executor._embedding.data_ptr()
    assert student.executor._head is lm.executor._head
    assert torch.equal(lm.executor._embedding, embedding)
    assert standard_ids(lm, PROMPT, max_new_tokens=20) == before


def test_bfloat16_and_strict_targets_take_float32_weights(tmp_path):
    lm = LanguageModel(module().to(torch.bfloat16), None, strict=True)
    expected = standard_ids(lm, PROMPT, max_new_tokens=20)
    for name, _ in BOTH:
        rounds = rounds_of(lm, make_strategy(name, lm), PROMPT, k=3, max_new_tokens=20)
        assert ids_of(rounds) == expected, name


def test_what_ships_is_found_by_the_target_that_it_was_trained_for(tmp_path, monkeypatch):
    words = words_tokenizer([f"w{number} " for number in range(64)])
    lm, other = (LanguageModel(module(num_hidden_layers=layers), words, name="llama") for layers in (3, 2))
    monkeypatch.setattr(bundled_drafts, "FOLDER", tmp_path)
    (tmp_path / "one").mkdir()
    for name, write in BOTH:
        with pytest.raises(InputError, match=f"No {name} is bundled for llama.*--kind {name}"):
            make_draft(name, lm)
        write(lm, tmp_path / "one" / f"{name}.safetensors")
        (tmp_path / "broken").mkdir(exist_ok=True)
        (tmp_path / "broken" / f"{name}.safetensors").write_bytes(b"no draft")
        assert ids_of(rounds_of(lm, make_draft(name, lm), PROMPT, max_new_tokens=9)) == standard_ids(
            lm, PROMPT, max_new_tokens=9
        )
        with pytest.raises(InputError, match=f"No {name} is bundled"):
            make_draft(name, other)


@pytest.mark.parametrize(("name", "write"), BOTH)
def test_files_that_are_none_are_refused_in_words(name, write, tmp_path):
    lm = target()
    path = write(lm, tmp_path / "good.safetensors")

    def refused(file, error, words):
        with pytest.raises(error, match=words):
            make_draft(name, lm, weights=str(file))

    refused(tmp_path / "absent", InputError, "cannot be read; give the path")
    refused("a\0b", InputError, "cannot be read")
    refused("~nosuchuser/x", InputError, "cannot be read")
    refused(tmp_path, InputError, "no trained draft")
    whole = path.read_bytes()
    for broken in (b"", b"PK", whole[:40], whole[:-1], b"\xff" * 64):
        (tmp_path / "broken").write_bytes(broken)
        refused(tmp_path / "broken", InputError, "no trained draft of specviz, or is damaged")
    save_file({"weight": torch.zeros(2)}, tmp_path / "foreign")
    refused(tmp_path / "foreign", InputError, "no trained draft")
    other = [pair for pair in BOTH if pair[0] != name][0]
    refused(other[1](lm, tmp_path / "other"), InputError, f"those of a draft '{other[0]}'; the draft '{name}'")


@pytest.mark.parametrize(("name", "write"), BOTH)
def test_weights_of_another_target_are_refused_in_words(name, write, tmp_path):
    lm = target()
    wide = LanguageModel(module(hidden_size=48), None)
    with pytest.raises(PairError, match="do not fit|reads? 48|read 48 features"):
        make_draft(name, lm, weights=str(write(wide, tmp_path / "wide")))
    words = LanguageModel(module(vocab_size=27), words_tokenizer([chr(97 + i) for i in range(26)]))
    letters = LanguageModel(module(vocab_size=27), words_tokenizer([chr(65 + i) for i in range(26)]))
    with pytest.raises(PairError, match="whose tokens are not those of"):
        make_draft(name, letters, weights=str(write(words, tmp_path / "words")))
    with pytest.raises(PairError, match="name tokens that llama does not have"):
        make_draft(name, lm, weights=str(write(lm, tmp_path / "beyond", ids=[3, 64])))
    with pytest.raises(PairError, match="name tokens"):
        make_draft(name, lm, weights=str(write(lm, tmp_path / "twice", ids=[3, 3])))


@pytest.mark.parametrize("kind", [name for name, _ in BOTH])
def test_hostile_facts_and_numbers_are_refused_in_words(kind, tmp_path):
    lm = target()
    write = dict(BOTH)[kind]
    path = write(lm, tmp_path / "good.safetensors")
    tensors = load_file(path)
    good = {"kind": kind, "target": target_facts(lm), "layers": 2}
    good["shape"] = HeadShape.of(lm.config, 32, lm.context_length).facts
    wrong = [{"layers": 0}, {"layers": 99}, {"layers": "2"}, {"layers": True}] if kind == "student" else [
        {"shape": None}, {"shape": {"width": 32}}, {"shape": {**good["shape"], "groups": 3}},
        {"shape": {**good["shape"], "middle": 10**12}}, {"shape": {**good["shape"], "heads": 0}},
        *({"shape": {**good["shape"], size: True}} for size in ("width", "middle", "groups", "positions")),
        *({"shape": {**good["shape"], name: value}} for name in ("theta", "epsilon")
          for value in (10**400, math.nan, math.inf, 0, -1.0, None, "much", [])),
    ]  # fmt: skip
    for change in [*wrong, {"target": None}, {"kind": None}]:
        save_file(tensors, tmp_path / "bad", {"specviz": json.dumps({**good, **change})})
        with pytest.raises(InputError, match="train"):
            make_draft(kind, lm, weights=str(tmp_path / "bad"))
    first = next(iter(tensors))
    save_file({**tensors, first: tensors[first] * float("nan")}, tmp_path / "nan", {"specviz": json.dumps(good)})
    with pytest.raises(InputError, match="damaged"):
        make_draft(kind, lm, weights=str(tmp_path / "nan"))
    rest = {name: value for name, value in tensors.items() if name != first}
    save_file(rest, tmp_path / "less", {"specviz": json.dumps(good)})
    with pytest.raises(PairError, match="do not fit llama.*holds nothing"):
        make_draft(kind, lm, weights=str(tmp_path / "less"))


def test_a_head_whose_measures_are_whole_numbers_is_read(tmp_path):
    shape = HeadShape.of(target().config, 32, 64).facts
    again = HeadShape.read({**shape, "theta": 10000, "epsilon": 1})
    assert (again.theta, again.epsilon) == (10000.0, 1.0) and isinstance(again.theta, float)
    assert again.shapes() == HeadShape.read(shape).shapes()


@pytest.mark.parametrize(("name", "write"), BOTH)
@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint16, torch.uint32, torch.uint64, torch.complex64, torch.float32]
)
def test_ids_of_a_dtype_that_holds_none_are_refused_in_words(name, write, dtype, tmp_path):
    lm = target()
    tensors = load_file(write(lm, tmp_path / "good", ids=[0, 1]))
    with safe_open(tmp_path / "good", "pt") as file:
        facts = file.metadata()
    save_file({**tensors, IDS: torch.tensor([0, 1]).to(dtype)}, tmp_path / "bad", facts)
    with pytest.raises(PairError, match="name tokens that llama does not have"):
        make_draft(name, lm, weights=str(tmp_path / "bad"))


def test_a_target_with_a_tokenizer_takes_what_was_made_for_its_tokens(tmp_path):
    tokenizer = byte_level_tokenizer()
    lm = LanguageModel(module(vocab_size=len(tokenizer)), tokenizer)
    for name, write in BOTH:
        strategy = make_draft(name, lm, weights=str(write(lm, tmp_path / name)))
        assert ids_of(rounds_of(lm, strategy, [70, 71], max_new_tokens=9)) == standard_ids(
            lm, [70, 71], max_new_tokens=9
        )
