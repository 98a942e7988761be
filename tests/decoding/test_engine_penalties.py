"""Penalties: every draft under them writes what a loop by hand writes, and a rejected token leaves no trace."""

import pytest
import torch
from support.tiny import draft_models, every_draft, ids_of, module, rounds_of, standard_ids, target

pytestmark = pytest.mark.usefixtures("one_thread")

PROMPT = [3, 9, 4, 3, 9, 4, 3]
NEW_TOKENS = 24
KS = (1, 3, 8)


@torch.inference_mode()
def by_hand(model, prompt, new_tokens, repetition=1.0, presence=0.0, frequency=0.0):
    """Greedy decoding without a cache, penalties applied one id at a time."""
    text, written = list(prompt), []
    for _ in range(new_tokens):
        logits = model(torch.tensor([text]), use_cache=False).logits[0, -1].tolist()
        for token in set(text):
            logits[token] = logits[token] / repetition if logits[token] > 0 else logits[token] * repetition
        for token in set(written):
            logits[token] -= presence + frequency * written.count(token)
        written.append(max(range(len(logits)), key=logits.__getitem__))
        text.append(written[-1])
    return written


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
@pytest.mark.parametrize("penalty", [1.3, 0.7])
def test_a_repetition_penalty_is_that_of_generate(architecture, penalty):
    ids = torch.tensor([PROMPT])
    settings = {"do_sample": False, "max_new_tokens": NEW_TOKENS, "eos_token_id": None, "pad_token_id": 0}
    expected = (
        module(architecture)
        .generate(ids, attention_mask=torch.ones_like(ids), repetition_penalty=penalty, **settings)[0, len(PROMPT) :]
        .tolist()
    )
    lm = target(architecture)
    asked = {"max_new_tokens": NEW_TOKENS, "repetition_penalty": penalty}
    assert standard_ids(lm, PROMPT, **asked) == expected != standard_ids(lm, PROMPT, max_new_tokens=NEW_TOKENS)
    for name, strategy in every_draft(lm, draft_models(architecture)):
        for k in KS:
            assert ids_of(rounds_of(lm, strategy, PROMPT, k=k, **asked)) == expected, f"{name}, k = {k}"


@pytest.mark.parametrize(
    ("repetition", "presence", "frequency"),
    [(1.0, 2.0, 0.0), (1.0, 0.0, 1.5), (1.0, -4.0, 0.5), (1.2, 1.0, 0.7)],
)
def test_penalties_are_those_of_a_loop_by_hand(repetition, presence, frequency):
    expected = by_hand(module(), PROMPT, NEW_TOKENS, repetition, presence, frequency)
    assert expected != standard_ids(target(), PROMPT, max_new_tokens=NEW_TOKENS)
    asked = {"repetition_penalty": repetition, "presence_penalty": presence, "frequency_penalty": frequency}
    for name, strategy in every_draft(target(), draft_models()):
        for k in KS:
            rounds = rounds_of(target(), strategy, PROMPT, k=k, max_new_tokens=NEW_TOKENS, **asked)
            assert ids_of(rounds) == expected, f"{name}, k = {k}"


def test_a_draft_that_is_the_target_stays_always_right_under_penalties():
    strategy = dict(every_draft(target(), draft_models()))["draft-model, same"]
    for temperature in (0.0, 1.0):
        asked = {
            "repetition_penalty": 1.3,
            "presence_penalty": 0.5,
            "frequency_penalty": 0.5,
            "temperature": temperature,
        }
        for k in KS:
            rounds = rounds_of(target(), strategy, PROMPT, k=k, max_new_tokens=NEW_TOKENS, **asked)
            assert all(len(each.accepted) == k for each in rounds[:-1])
