"""Tokenizers of GGUF files: split as the model's own, ended where its turns end, or refused by name."""

import json

import pytest
from gguf import GGUFWriter
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, CohereTokenizer, GPT2Tokenizer, LlamaTokenizer, Qwen2Tokenizer

from specviz.core.errors import LoadError
from specviz.sources import resolve
from specviz.sources.gguf_file import read_fields
from specviz.sources.gguf_tokenizer import RULES, build_tokenizer, end_token_ids

STRINGS = (
    "Continue the list.\n\n1. apple\n\n2. banana\n\n3.",
    "In 2024, 12345 of 1,000,000.5 people; 3/4 and ½ cup, x² Ⅳ ٣٤",
    "a\t\t5  b   c\n\n\n\td\r\n e ",
    "def f(x):\n    return x**2 + 10 != 7  # don't, we'LL, I'M\n",
    "Crème brûlée, cre\u0301me, 日本語とかな, مرحبا, Привет мир! 👩‍👩‍👧",
    "snake_case camelCase HTTPServer //a/b `q` (…) $5 <= ^~|",
    "",
    " leading",
)
SPECIALS = ["<|bos|>", "<|end_of_text|>", "<|eot_id|>"]


def trained(rule, corpus=STRINGS):
    """(tokens, merges) of byte-level BPE that learned `corpus` under a rule of splitting."""
    steps = [pre_tokenizers.Digits(individual_digits=True)] if rule.digits else []
    steps += [pre_tokenizers.Split(Regex(pattern), behavior="isolated") for pattern in rule.patterns]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        corpus * 3,
        trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, special_tokens=SPECIALS, show_progress=False),
    )
    tokens = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    return tokens, [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


def write(path, tokens, merges=None, model="gpt2", kinds=None, **keys):
    """A GGUF file that holds a tokenizer alone."""
    writer = GGUFWriter(path, keys.pop("architecture", "llama"))
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds or [3 if token in SPECIALS else 1 for token in tokens])
    if merges is not None:
        writer.add_token_merges([" ".join(pair) for pair in merges])
    for key, value in keys.items():
        add = {bool: writer.add_bool, str: writer.add_string, int: writer.add_uint32, list: writer.add_array}
        add[type(value)](f"tokenizer.ggml.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def read(path):
    from gguf import GGUFReader

    return build_tokenizer(path, read_fields(GGUFReader(path)))


def written(tmp_path, *args, **keys):
    return read(write(tmp_path / "t.gguf", *args, **keys))


def reloaded(tokenizer, tmp_path):
    """The tokenizer as a converted folder gives it back."""
    tokenizer.save_pretrained(tmp_path / "saved")
    return AutoTokenizer.from_pretrained(tmp_path / "saved")


def llama3_tokenizer(tokens, merges):
    """Meta's: the tiktoken pattern, and a piece that is a token taken whole."""
    tokenizer = Tokenizer(models.BPE(dict(zip(tokens, range(len(tokens)), strict=True)), merges, ignore_merges=True))
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    split = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    return tokenizer


def smollm_tokenizer(tokens, merges):
    """SmolLM's: single digits, then GPT-2's byte level."""
    tokenizer = Tokenizer(models.BPE(dict(zip(tokens, range(len(tokens)), strict=True)), merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def of_class(cls):
    return lambda tokens, merges: cls(vocab={token: index for index, token in enumerate(tokens)}, merges=merges)


ORIGINALS = {
    "qwen2": of_class(Qwen2Tokenizer),
    "gpt-2": of_class(GPT2Tokenizer),
    "command-r": of_class(CohereTokenizer),
    "llama-bpe": llama3_tokenizer,
    "smollm": smollm_tokenizer,
}


def ids_of(tokenizer, text):
    encoded = tokenizer.encode(text, add_special_tokens=False)
    return encoded if isinstance(encoded, list) else encoded.ids


@pytest.mark.parametrize("pre", ORIGINALS)
def test_text_is_split_as_the_family_s_own_tokenizer_splits_it(tmp_path, pre):
    tokens, merges = trained(RULES[pre])
    original = ORIGINALS[pre](tokens, merges)
    tokenizer = reloaded(written(tmp_path, tokens, merges, pre=pre), tmp_path)
    for text in STRINGS:
        assert ids_of(tokenizer, text) == ids_of(original, text), text


@pytest.mark.parametrize("pre", RULES)
def test_every_named_rule_keeps_the_text_whole(tmp_path, pre):
    """Each rule's pieces lie end to end: what it splits, it neither loses nor repeats."""
    tokenizer = written(tmp_path, *trained(RULES["gpt-2"]), pre=pre)
    for text in STRINGS:
        ids = tokenizer.encode(text, add_special_tokens=False)
        normal = tokenizer.backend_tokenizer.normalizer
        assert tokenizer.decode(ids) == (normal.normalize_str(text) if normal else text)


def test_a_rule_that_is_not_known_is_refused_by_name(tmp_path):
    with pytest.raises(LoadError, match="pre-tokenizer 'unheard-of'"):
        written(tmp_path, *trained(RULES["gpt-2"]), pre="unheard-of")


@pytest.mark.parametrize("key, value", [("new_switch", True), ("add_sep_token", True), ("escape_whitespaces", False)])
def test_a_key_that_could_change_the_split_is_refused_by_name(tmp_path, key, value):
    with pytest.raises(LoadError, match=key):
        written(tmp_path, *trained(RULES["gpt-2"]), pre="gpt-2", **{key: value})


def test_a_merge_of_what_is_no_token_is_refused_in_words(tmp_path):
    tokens, merges = trained(RULES["gpt-2"])
    with pytest.raises(LoadError, match="contradicts itself"):
        written(tmp_path, tokens, [*merges, ("unheard", "of")], pre="gpt-2")


def test_a_kind_of_tokenizer_that_is_not_read_is_refused(tmp_path):
    with pytest.raises(LoadError, match="of the kind 'rwkv'"):
        written(tmp_path, ["a", "b"], model="rwkv")


@pytest.mark.parametrize(
    "pre, keys, wanted",
    [
        ("gpt-2", {}, ()),
        ("gpt-2", {"add_bos_token": True}, ("bos",)),
        ("llama-bpe", {}, ("bos",)),
        ("llama-bpe", {"add_bos_token": False}, ()),
        ("gpt-2", {"add_eos_token": True}, ("eos",)),
        ("tekken", {"add_eos_token": True}, ("bos", "eos")),
    ],
)
def test_the_ends_of_a_text_are_added_as_the_file_says(tmp_path, pre, keys, wanted):
    tokens, merges = trained(RULES["gpt-2"])
    path = write(tmp_path / "t.gguf", tokens, merges, pre=pre, bos_token_id=0, eos_token_id=1, **keys)
    tokenizer = reloaded(read(path), tmp_path)
    plain = tokenizer.encode("a b", add_special_tokens=False)
    assert tokenizer.encode("a b") == [0] * ("bos" in wanted) + plain + [1] * ("eos" in wanted)


PIECES = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "c", "▁a", "ab", "▁ab"]


def pieces_file(tmp_path, **keys):
    scores = [0.0] * 259 + [-9.0, -9.0, -9.0, -9.0, -1.0, -2.0, -3.0]
    kinds = [2, 3, 3, *[6] * 256, *[1] * 7]
    return write(
        tmp_path / "t.gguf", PIECES, model="llama", kinds=kinds, scores=scores, bos_token_id=1, eos_token_id=2, **keys
    )


@pytest.mark.parametrize(
    "keys, prefix", [({}, True), ({"add_space_prefix": True}, True), ({"add_space_prefix": False}, False)]
)
def test_a_sentencepiece_text_begins_with_a_space_as_the_file_says(tmp_path, keys, prefix):
    tokenizer = reloaded(read(pieces_file(tmp_path, **keys)), tmp_path)
    original = LlamaTokenizer(
        vocab={token: index for index, token in enumerate(PIECES)},
        merges=[("▁", "a"), ("a", "b"), ("▁a", "b"), ("▁", "ab")],
        add_prefix_space=prefix,
    )
    for text in ("ab", " ab", "c ab  a", "é"):
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert ids == original.encode(text, add_special_tokens=False), text
        assert tokenizer.decode(ids) == original.decode(ids)
    assert tokenizer.encode("ab")[0] == 1


def test_a_gemma_text_with_a_space_before_it_is_refused(tmp_path):
    with pytest.raises(LoadError, match="begin with a space"):
        read(pieces_file(tmp_path, architecture="gemma2", add_space_prefix=True))


# ---- end tokens


@pytest.mark.parametrize(
    "tokens, keys, wanted",
    [
        (["a", "<|end_of_text|>", "<|eot_id|>"], {"eos_token_id": 1}, (1, 2)),
        (["a", "<eos>", "<end_of_turn>"], {"eos_token_id": 1}, (1, 2)),
        (["a", "<|endoftext|>", "<|im_end|>"], {"eos_token_id": 1}, (1, 2)),
        (["a", "</s>", "<stop>"], {"eos_token_id": 1, "eot_token_id": 2}, (1, 2)),
        (["a", "</s>", "<stop>", "<|eom_id|>"], {"eos_token_id": 1, "eom_token_id": 2}, (1, 2, 3)),
        (["a", "</s>"], {"eos_token_id": 99}, ()),
        (["<|end|>", "<|return|>", "<|call|>"], {"eos_token_id": 1}, (1, 2)),
        (["<|end|>", "<|endoftext|>"], {"eos_token_id": 1}, (1, 0)),
    ],
)
def test_turns_end_by_key_and_by_the_names_that_are_known(tokens, keys, wanted):
    fields = {f"tokenizer.ggml.{key}": value for key, value in keys.items()}
    assert end_token_ids({"tokenizer.ggml.tokens": tokens, **fields}) == wanted


# ---- the embedded model

EMBEDDED = {
    "Continue the list.\n\n1. apple\n\n2. banana\n\n3.": "Continue Ġthe Ġlist . ĊĊ 1 . Ġapple ĊĊ 2 . Ġbanana ĊĊ 3 .",
    "2024": "2 0 2 4",
    "a\t\t5": "a ĉĉ 5",
    "½ cup": "Â½ Ġcup",
    "²": "Â²",
    "Ⅳ": "â ħ £",
    "٣٤": "Ù £ Ù ¤",
    "x = 10\n    y": "x Ġ= Ġ 1 0 ĊĠĠĠ Ġy",
    " 5": "Ġ 5",
    "\n\n1.": "ĊĊ 1 .",
}


@pytest.mark.embedded
@pytest.mark.parametrize("text", EMBEDDED)
def test_the_embedded_tokenizer_splits_as_its_original(text):
    tokenizer = AutoTokenizer.from_pretrained(resolve("embedded").folder)
    assert tokenizer.tokenize(text) == EMBEDDED[text].split(" ")
