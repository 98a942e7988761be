"""Tiny models saved as real checkpoints, so that tests load them as a person would: by `path:FOLDER`, in a moment.

Weights are random, with a spread at which greedy text does not settle on one token.
"""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

CONTEXT = 64
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|end|>", "<|im_start|>", "<|im_end|>"]
ENGLISH = ("the cat sat on the mat and the dog sat on the log", "a cat is not a dog, and a dog is not a cat")
GERMAN = ("der Hund sitzt unter dem Tisch und die Katze schläft", "ein Vogel singt früh am Morgen im Garten")


def tokenizer(sentences=ENGLISH, template=TEMPLATE, size=300):
    """A byte-level BPE tokenizer trained on a few sentences."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator(sentences, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token=SPECIAL[0], chat_template=template)


def save_llama(folder, **facts):
    """Save a tiny Llama with its tokenizer into `folder`; returns its source text."""
    logging.disable_progress_bar()  # a bar of transformers' own has no place in what a test captures
    for part in llama(**facts):
        part.save_pretrained(folder)
    return f"path:{Path(folder)}"


def llama(*, seed=0, layers=2, sentences=ENGLISH, template=TEMPLATE, context=CONTEXT):
    """(a tiny random Llama, its tokenizer)."""
    words = tokenizer(sentences, template)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=context,
        initializer_range=0.5,
        eos_token_id=words.eos_token_id,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config).eval(), words
