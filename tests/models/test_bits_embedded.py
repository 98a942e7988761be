"""bfloat16 on a CPU: a lane that verifies blocks computes the very logits that a lane of single tokens computes.

Widths are padded to even ones for it (docs/decisions.md); where processors differ in their kernels, this is what tells.
"""

import pytest
import torch

from specviz import Settings, decode, load, make_draft
from specviz.decoding.telemetry import Recorder
from specviz.races.prompts import make_prompt

pytestmark = pytest.mark.embedded
PROMPTS = [
    "Repeat the following text exactly, twice: Ships that miss the morning flood wait outside the bar until evening.",
    "Write a Python function that merges two sorted lists, with type hints and a docstring.",
    "Tell a story about a lighthouse keeper who finds a letter in a bottle.",
    "Count from one to forty in words.",
    "List the planets of the solar system with one fact each.",
    "Translate to French: The cat sleeps on the warm stove.",
    "What is the capital of Mongolia?",
    "Explain speculative decoding to a child.",
    "Write an SQL query that finds the three customers who ordered most.",
    "Say hello in ten languages.",
    "Write a haiku about rain, then another, then another.",
    "Summarise the plot of Hamlet in five sentences.",
    "Give me a recipe for pancakes as a numbered list.",
    "Why is the sky blue, and why is it red in the evening?",
    "日本の四季について短く説明してください。",
    "Write the HTML of a page with a table of three rows. 😀",
    "Invent twelve words that do not exist and define each.",
    "Write a limerick about a compiler.",
    "Name twenty animals in alphabetical order.",
    "Continue: It was a bright cold day in April, and the clocks were striking",
]


@pytest.fixture(scope="module")
def bfloat16(embedded):
    return load("embedded", device="cpu", dtype="bfloat16")


def logits_of(model, draft, prompt, tokens, monkeypatch):
    """The logits that each token of the output was chosen from, and how wide the passes were."""
    rows, widths, record = [], [], Recorder.record

    def keep(self, block):
        rows.append(block.logits[: len(block.kept)].clone())
        widths.append(len(block.logits))
        return record(self, block)

    monkeypatch.setattr(Recorder, "record", keep)
    settings = Settings(k=5, max_new_tokens=tokens, ignore_eos=True, telemetry=False)
    for _ in decode(model, make_draft(draft, model), make_prompt(model, prompt).ids, settings):
        pass
    monkeypatch.undo()
    return torch.cat(rows), widths


@pytest.mark.parametrize(
    ("prompts", "tokens"), [(PROMPTS[:2], 32), pytest.param(PROMPTS, 128, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_a_verify_pass_has_the_bits_of_single_steps(bfloat16, prompts, tokens, monkeypatch):
    for prompt in prompts:
        single, widths = logits_of(bfloat16, "none", prompt, tokens, monkeypatch)
        assert set(widths) == {1} and len(single) == tokens
        block, widths = logits_of(bfloat16, "token-recycling", prompt, tokens, monkeypatch)
        assert max(widths) > 1
        assert torch.equal(block, single), prompt
