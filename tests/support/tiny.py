"""Tiny causal models and tokenizers made from configs: the real engine in milliseconds, with nothing to download.

Weights are drawn wide (a standard deviation of 0.4), so that a random model says something of its own at every
position; a table model's law can be enumerated by hand.
"""

import copy
from functools import cache
from types import SimpleNamespace

import torch
from support.tiny_drafts import make_strategy
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import nn
from torch.nn import functional
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

from specviz import LanguageModel, Settings, decode, make_draft
from specviz.drafting import strategies
from specviz.models.fixed_width import FixedWidthExecutor

VOCABULARY = 64
WINDOW = 8
WIDE = {"hidden_size": 64, "intermediate_size": 128, "head_dim": 16, "num_attention_heads": 4, "num_key_value_heads": 4}


def _without(facts, *names):
    return {name: value for name, value in facts.items() if name not in names}


_WIDTHS = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3}
_HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
_SHAPE = {**_WIDTHS, **_HEADS, "max_position_embeddings": 256, "initializer_range": 0.4}
_NO_SPECIALS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None, "tie_word_embeddings": False}
_CAPS = {"attn_logit_softcapping": 20.0, "final_logit_softcapping": 20.0}
_GPT2 = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 256}
_MIXED = {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}

# name: (config, its facts, a seed whose greedy texts are lively and far from ties)
ARCHITECTURES = {
    "llama": (LlamaConfig, _SHAPE, 0),
    "qwen2": (Qwen2Config, _without(_SHAPE, "head_dim"), 0),
    "gpt2": (GPT2Config, {**_GPT2, "initializer_range": 0.8}, 1),
    "gpt-neox": (GPTNeoXConfig, {**_without(_SHAPE, "num_key_value_heads", "head_dim"), "initializer_range": 0.8}, 5),
    "gemma3, window 8": (Gemma3TextConfig, {**_SHAPE, **_MIXED}, 3),
    "gemma2, soft cap, window 8": (Gemma2Config, {**_SHAPE, **_MIXED, **_CAPS}, 1),
    "mistral, window 8": (MistralConfig, {**_SHAPE, "sliding_window": WINDOW}, 0),
}


def module(architecture="llama", seed=None, **changes):
    """A random float32 transformers causal LM in evaluation mode; `changes` go to its config."""
    kind, facts, lively = ARCHITECTURES[architecture]
    torch.manual_seed(lively if seed is None else seed)
    return AutoModelForCausalLM.from_config(kind(**{**facts, **_NO_SPECIALS, **changes})).eval()


@cache
def target(architecture="llama"):
    """A LanguageModel without a tokenizer, shared by the tests: text and EOS play no part."""
    return LanguageModel(module(architecture), None)


def perturbed(model, scale=0.12, seed=1):
    """A copy with noise of `scale` times each weight's own spread: a draft that is right now and then."""
    twin, generator = copy.deepcopy(model), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in twin.parameters():
            if weight.numel() > 1:
                weight.add_(torch.randn(weight.shape, generator=generator) * weight.std() * scale)
    return twin


@cache
def draft_models(architecture="llama"):
    """Drafts for `target(architecture)`: the same model, a perturbed one, and one that knows nothing of it."""
    return {
        "same": target(architecture),
        "perturbed": LanguageModel(perturbed(module(architecture)), None),
        "unrelated": LanguageModel(module(architecture, 100), None),
    }


def every_draft(model, draft_models):
    """(name, strategy) for each registered strategy; one that takes a model is made with each of `draft_models`."""
    for name, kind in strategies().items():
        if kind.takes_model:
            for quality, draft in draft_models.items():
                yield f"{name}, {quality}", make_strategy(name, model, draft)
        else:
            yield name, make_strategy(name, model)


def rounds_of(model, strategy, prompt, **settings):
    """All rounds of a run."""
    return list(decode(model, strategy, prompt, Settings(**settings)))


def outcome_of(model, strategy, prompt, **settings):
    """All rounds of a run, and how it ended."""
    decoding, rounds = decode(model, strategy, prompt, Settings(**settings)), []
    while True:
        try:
            rounds.append(next(decoding))
        except StopIteration as stop:
            return rounds, stop.value


def ids_of(rounds):
    return [token.id for each in rounds for token in each.kept]


def standard_ids(model, prompt, **settings):
    """What standard decoding writes."""
    return ids_of(rounds_of(model, make_draft("none", model), prompt, **settings))


class TableConfig(PreTrainedConfig):
    model_type = "table"

    def __init__(self, vocab_size=5, num_hidden_layers=2, max_position_embeddings=128, **rest):
        super().__init__(**{**_NO_SPECIALS, **rest})
        self.vocab_size, self.num_hidden_layers = vocab_size, num_hidden_layers
        self.max_position_embeddings = max_position_embeddings


class TableLM(PreTrainedModel):
    """A causal LM whose logits are looked up by the last two tokens, the older one read back from the cache.

    A layer is a table (v + 1, v, v) over (older token + 1 or 0 for none, last token, next token); their sum counts.
    The older token is the one before in the cache, or in a tree the one before among those that the mask shows.
    Made to be quick: the first layer alone keeps the tokens, and the head is an identity that is never multiplied.
    """

    config_class = TableConfig
    _supports_sdpa = True

    def __init__(self, config):
        super().__init__(config)
        size, count = config.vocab_size, config.num_hidden_layers
        self.layers = nn.ModuleList(nn.Embedding((size + 1) * size, size) for _ in range(count))
        self.lm_head = nn.Linear(size, size, bias=False)
        self.post_init()
        self.embed_tokens = nn.Embedding.from_pretrained(torch.eye(size))  # for a draft that reads embeddings
        with torch.no_grad():
            self.lm_head.weight.copy_(torch.eye(size))

    def get_output_embeddings(self):
        return self.lm_head

    def forward(self, input_ids, attention_mask=None, position_ids=None, cache=None, output_hidden_states=False, **_):
        ids = input_ids[0]
        places = torch.arange(len(ids)) if position_ids is None else position_ids[0]
        stored = (ids + 1).float().view(1, 1, -1, 1)
        read = stored if cache is None else cache.update(stored, stored, 0)[0]
        slots = places - 1 if _in_a_row(places) else _slots_before(attention_mask[0, 0])
        older = read[0, 0, slots.clamp_min(0), 0].long() * (slots >= 0)
        row = older * self.config.vocab_size + ids
        hidden = sum(functional.embedding(row, layer.weight) for layer in self.layers)[None]
        return SimpleNamespace(logits=hidden, hidden_states=(hidden, hidden) if output_hidden_states else None)


def _in_a_row(places):
    return len(places) < 2 or bool((places.diff() == 1).all())


def _slots_before(mask):
    """(w,): in a tree, the slot of the token that each row follows: the last it sees but itself, -1 where none."""
    visible = torch.where(mask > -1, torch.arange(mask.shape[-1]), -1)
    return visible.topk(2, dim=-1).values[:, 1]


def table_module(vocabulary=5, seed=0, sharpness=1.0, like=None, mix=0.5):
    """A table model; with `like`, its tables are `mix` of that model's and the rest its own."""
    torch.manual_seed(seed)
    model = TableLM(TableConfig(vocab_size=vocabulary)).eval()
    with torch.no_grad():
        for index, layer in enumerate(model.layers):
            layer.weight.normal_(0.0, sharpness)
            if like is not None:
                layer.weight.mul_(1.0 - mix).add_(like.layers[index].weight, alpha=mix)
    return model


def table_logits(model):
    """(older + 1, last, next) logits of a table model, as nested lists: what the law is enumerated from."""
    size = model.config.vocab_size
    total = sum(layer.weight.detach().double() for layer in model.layers)
    return total.view(size + 1, size, size).tolist()


def scripted_module(follow, vocabulary, **changes):
    """A table model that is all but certain: after token i comes `follow[i]`, whatever stood before."""
    model = TableLM(TableConfig(vocab_size=vocabulary, **changes)).eval()
    with torch.no_grad():
        for layer in model.layers:
            layer.weight.zero_()
        for last in range(vocabulary):
            for older in range(vocabulary + 1):
                model.layers[0].weight[older * vocabulary + last, follow.get(last, 0)] = 20.0
    return model


def words_tokenizer(words, eos=None, specials=()):
    """Each word is a token, and decoding runs the words together."""
    table = {word: index for index, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(table, unk_token=words[0]))
    tokenizer.decoder = decoders.Fuse()
    marks = [word for word in (*specials, eos) if word is not None]
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in marks])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=eos)


@cache
def byte_level_tokenizer():
    """Byte-level BPE over all 256 bytes with a few merges and an end mark, as GPT-2, Llama-3 and Qwen have."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("Ã", "©"), ("ð", "Ł"), ("ðŁ", "ĳ"), ("Ģ", "į"), ("a", "a")]
    words = [*alphabet, *("".join(pair) for pair in merges)]
    tokenizer = Tokenizer(models.BPE({word: index for index, word in enumerate(words)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>")


@cache
def metaspace_tokenizer():
    """Pieces with a space mark, and bytes for what they lack, as SentencePiece models (Llama-2, Gemma) have."""
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    words = ["<unk>", "<s>", "</s>", *bytes_, "▁", "▁the", "▁a", "the", "a", "b", "s", "▁▁", "é", "日", "👩", "!", "▁b"]
    tokenizer = Tokenizer(
        models.BPE({word: index for index, word in enumerate(words)}, [], unk_token="<unk>", byte_fallback=True)
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1, right=0),
        ]
    )
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in ("<s>", "</s>")])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def fixed(model):
    """The same model behind fixed-width passes, as on a GPU but without graphs."""
    model._set_executor(FixedWidthExecutor(model.executor))
    return model
