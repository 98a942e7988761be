"""The embedded model in float32: three prompts, every strategy, exactly what standard decoding and `generate` write."""

import pytest
import torch
from support.tiny import every_draft, ids_of, rounds_of, standard_ids
from transformers import AutoModelForCausalLM

from specviz import make_draft
from specviz.models.device import available_cores
from specviz.sources import resolve
from specviz.traces import Kind

pytestmark = pytest.mark.embedded

COPY = "Repeat the following text exactly, twice: The quick brown fox jumps over the lazy dog."
PROMPTS = (
    pytest.param(COPY, id="copy"),
    pytest.param("Write a Python function that adds two numbers.", id="code"),
    pytest.param("日本語で自己紹介をしてください。", id="japanese"),
)
NEW_TOKENS = 24
NEAR_TIE = 1e-4


@pytest.fixture(scope="module", autouse=True)
def all_cores():
    threads = torch.get_num_threads()
    torch.set_num_threads(available_cores())
    yield
    torch.set_num_threads(threads)


def chat_ids(model, prompt):
    messages = [{"role": "user", "content": prompt}]
    text = model.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return model.tokenizer.encode(text, add_special_tokens=False)


@torch.inference_mode()
def gap(model, ids):
    with model.open(len(ids) + 1) as context:
        best = context.forward(ids)[-1].topk(2).values
    return float(best[0] - best[1])


def assert_same(model, prompt, expected, found, what):
    if expected == found:
        return
    index = next(i for i, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1])
    distance = gap(model, [*prompt, *expected[:index]])
    assert distance <= NEAR_TIE, f"{what}: token {index}, gap {distance:.2e}"
    print(f"near tie: {what}, token {index}, gap {distance:.2e}")


def share_of(place, drafts):
    """Every third draft: each meets one of the three prompts, and a draft model all. The long grid pairs them all."""
    for index, (name, strategy) in enumerate(drafts):
        if index % len(PROMPTS) == place or name.startswith("draft-model"):
            yield name, strategy


@pytest.mark.parametrize(
    ("place", "prompt"), [pytest.param(i, *each.values, id=each.id) for i, each in enumerate(PROMPTS)]
)
def test_every_strategy_writes_what_standard_decoding_writes(embedded, place, prompt):
    ids = chat_ids(embedded, prompt)
    expected = standard_ids(embedded, ids, max_new_tokens=NEW_TOKENS)
    draft = embedded if prompt == COPY else embedded.first_layers(3)
    for name, strategy in share_of(place, every_draft(embedded, {"a draft": draft})):
        rounds = rounds_of(embedded, strategy, ids, k=4, max_new_tokens=NEW_TOKENS)
        assert_same(embedded, ids, expected, ids_of(rounds), name)
        if name == "draft-model, a draft" and draft is embedded:
            assert all(each.target.kind is Kind.BONUS for each in rounds[:-1])
        texts = "".join(token.text for each in rounds for token in each.kept)
        assert embedded.tokenizer.decode(ids_of(rounds), skip_special_tokens=True).startswith(texts)


@pytest.fixture(scope="module")
def transformers_model(embedded):
    return AutoModelForCausalLM.from_pretrained(resolve("embedded").folder, dtype=torch.float32).eval()


@pytest.mark.parametrize("prompt", PROMPTS)
def test_standard_decoding_writes_what_generate_writes(embedded, transformers_model, prompt):
    ids = chat_ids(embedded, prompt)
    tensor = torch.tensor([ids])
    facts = {
        "do_sample": False,
        "max_new_tokens": NEW_TOKENS,
        "eos_token_id": list(embedded.eos_ids),
        "pad_token_id": 0,
    }
    facts |= {"repetition_penalty": 1.0, "attention_mask": torch.ones_like(tensor)}
    expected = transformers_model.generate(tensor, **facts)[0, len(ids) :].tolist()
    found = standard_ids(embedded, ids, max_new_tokens=NEW_TOKENS)
    assert_same(embedded, ids, expected, found, "generate")


@pytest.mark.parametrize("text", ["Hi", "You are"])
def test_a_very_short_prompt_writes_as_many_tokens_as_asked(embedded, text):
    ids = embedded.tokenizer.encode(text, add_special_tokens=False)
    strategy = make_draft("draft-model", embedded, draft_model=embedded)
    for prompt in (ids, ids[:1]):
        rounds = rounds_of(embedded, strategy, prompt, k=4, max_new_tokens=4, ignore_eos=True)
        assert ids_of(rounds) == standard_ids(embedded, prompt, max_new_tokens=4, ignore_eos=True)
        assert len(ids_of(rounds)) == 4


def test_copying_text_makes_a_lookup_right(embedded):
    ids = chat_ids(embedded, COPY)
    rounds = rounds_of(embedded, make_draft("prompt-lookup", embedded), ids, k=8, max_new_tokens=NEW_TOKENS)
    assert len(ids_of(rounds)) / len(rounds) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 16])
def test_every_strategy_is_exact_at_every_k(embedded, prompt, k):
    ids = chat_ids(embedded, prompt)
    expected = standard_ids(embedded, ids, max_new_tokens=64)
    for name, strategy in every_draft(embedded, {"same": embedded, "shallow": embedded.first_layers(3)}):
        found = ids_of(rounds_of(embedded, strategy, ids, k=k, max_new_tokens=64))
        assert_same(embedded, ids, expected, found, f"{name}, k = {k}")
