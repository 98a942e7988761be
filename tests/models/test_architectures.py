"""A dozen kinds of causal language models, tiny and random: each runs as docs/architectures.md says, token for token.

`scripts/architectures.py` tries every kind that transformers knows and writes that page.
"""

import re

import pytest

from scripts.architectures import CAUSAL, PAGE, verdict

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.slow]

# Each stands for a kind of attention, of positions or of state.
KINDS = {
    "llama": "native",
    "qwen3": "native",
    "mistral": "native",  # one window in all layers
    "gemma3_text": "plain",  # windows in some layers
    "llama4_text": "plain",  # chunks
    "gpt_oss": "plain",  # attention sinks, experts
    "deepseek_v3": "plain",  # latent attention
    "falcon": "plain",  # one key head
    "roberta": "plain",  # learned positions that begin behind the pad
    "gpt_neo": "plain, own masks",  # a buffer of masks
    "bart": "plain, own masks",  # positions counted by the cache
    "mamba": "refused",  # a recurrent state
    "moshi": "refused",  # a cache that forgets what the forward pass sees
}


def pages_outcomes():
    rows = re.findall(r"^\| (\S+) \| \w+ \| ([\w, ]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {model_type: outcome for model_type, outcome in rows if model_type in CAUSAL}


@pytest.mark.parametrize("model_type", KINDS)
def test_a_kind_of_model_writes_what_generate_writes_or_is_refused(model_type):
    row = verdict(model_type)
    assert row.outcome == KINDS[model_type], row.why


def test_the_page_has_every_kind_and_none_that_differs():
    outcomes = pages_outcomes()
    assert outcomes.keys() == CAUSAL.keys()
    assert "different" not in outcomes.values()
    assert {name: outcomes[name] for name in KINDS} == KINDS


@pytest.mark.parametrize("model_type", [name for name in CAUSAL if name not in KINDS])
def test_every_other_kind_is_what_the_page_says(model_type):
    assert verdict(model_type).outcome == pages_outcomes()[model_type]
