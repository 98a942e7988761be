"""A tiny checkpoint to be saved and read back, and the words in which a source is refused."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from specviz.core.errors import LoadError
from specviz.sources import resolve


def tiny_llama(**changes):
    torch.manual_seed(0)
    facts = {"vocab_size": 12, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "eos_token_id": 3}
    return LlamaForCausalLM(LlamaConfig(**(facts | heads | changes)))


def tiny_tokenizer():
    words = {word: index for index, word in enumerate(["<unk>", "a", "b", "</s>", *"cdefghij"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>")


def refusal(source):
    with pytest.raises(LoadError) as caught:
        resolve(source)
    return str(caught.value)
