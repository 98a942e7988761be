"""The tokenizer of a GGUF file, with the split rule, the spaces and the end tokens that its metadata names.

transformers builds the vocabulary and the merges, but knows only some names of pre-tokenizers and reads the others as
GPT-2's. Here every name of llama.cpp's vocabulary loader (`llama-vocab.cpp`) has its rule, or is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specviz.core.errors import LoadError

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_QWEN35 = (
    _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    rf"|\p{{N}}|{_REST}"
)
_GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTIONS}?"
    rf"|\p{{N}}{{1,3}}|{_REST}"
)
_DEEPSEEK3 = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)
_DEEPSEEK_CODER = (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}")
_BLOOM = " ?[^(\\s|.,!?…。，、।۔،)]+"
_FALCON = (r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, r"[0-9][0-9][0-9]")
_DEFAULT = (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")


@dataclass(frozen=True, slots=True)
class _Rule:
    """How text is split before byte-level BPE: by each pattern in turn, every match a piece of its own.

    `digits`: every number character is split off first. `whole_words`: a piece that is a token needs no merges.
    `nfc`: the text is normalised first. `bos`: texts begin with BOS where the file does not say.
    """

    patterns: tuple[str, ...]
    digits: bool = False
    whole_words: bool = False
    nfc: bool = False
    bos: bool = False


# the names that llama.cpp's loader maps to each rule
_NAMES = (
    (
        _Rule((_LLAMA3,), whole_words=True, bos=True),
        ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"),
    ),
    (_Rule((_LLAMA3,)), ("dbrx", "smaug-bpe", "glm4", "chatglm-bpe")),
    (_Rule((_QWEN2,), nfc=True), ("qwen2", "deepseek-r1-qwen", "kormo", "megrez")),
    (_Rule((_QWEN2,)), ("stablelm2", "hunyuan")),
    (_Rule((_QWEN35,), nfc=True), ("qwen35",)),
    (_Rule((_TEKKEN,), whole_words=True, bos=True), ("tekken",)),
    (_Rule((_GPT4O,)), ("gpt-4o", "llama4", "kanana2", "minimax-m2")),
    (_Rule((_GPT2,), digits=True), ("smollm", "starcoder", "refact", "codeshell", "exaone", "minerva-7b")),
    (_Rule((_GPT2,), digits=True, nfc=True), ("command-r",)),
    (
        _Rule((_GPT2,)),
        ("gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "gigachat", "a.x-4.0", "mellum", "exaone4"),
    ),
    (_Rule(_DEEPSEEK3), ("deepseek-v3", "hunyuan-dense")),
    (_Rule(_DEEPSEEK_CODER), ("deepseek-coder",)),
    (_Rule(_FALCON), ("falcon",)),
    (_Rule((_BLOOM,)), ("bloom", "poro-chat", "gpt3-finnish")),
    (_Rule((_BLOOM, r"\p{N}")), ("viking",)),
    (_Rule(_DEFAULT), ("default",)),
)
RULES = {name: rule for rule, names in _NAMES for name in names}

# tokens at which llama.cpp ends generation, whatever the file names as its end of text
END_NAMES = (
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<turn|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<｜end▁of▁sentence｜>",
    "<end_of_utterance>",
    "<|eot|>",
    "<|eom|>",
)
# in gpt-oss's format a message ends with <|end|> and the turn goes on
_CHANNELS = {"<|return|>", "<|call|>", "<|end|>"}
_ID_KEYS = ("eos", "eot", "eom")
# what cannot change how the text of a causal model is split, or is applied by transformers' own reading
_KNOWN_KEYS = frozenset(
    "model pre tokens token_type token_type_count scores merges bos_token_id eos_token_id eot_token_id eom_token_id "
    "unknown_token_id seperator_token_id separator_token_id padding_token_id mask_token_id cls_token_id "
    "prefix_token_id suffix_token_id middle_token_id fim_pre_token_id fim_suf_token_id fim_mid_token_id "
    "fim_pad_token_id fim_rep_token_id fim_sep_token_id add_bos_token add_eos_token add_space_prefix "
    "remove_extra_whitespaces".split()
)
# these change the split where they are other than this
_NEUTRAL = {"add_sep_token": False, "escape_whitespaces": True, "normalizer.lowercase": False}
_PREFIX = "tokenizer.ggml."


def build_tokenizer(path: Path, fields: dict[str, Any]) -> Any:
    """The tokenizer of the GGUF file `path` whose metadata is `fields`. Raises LoadError for what it cannot be."""
    _check_keys(path.name, fields)
    rule = _rule(path.name, fields)
    tokenizer = _read(path)
    backend = tokenizer.backend_tokenizer
    if rule is not None:
        _apply_rule(backend, rule)
    elif fields[_PREFIX + "model"] == "llama":
        _apply_space_prefix(backend, fields, path.name)
    tokenizer.add_bos_token = _flag(fields, "add_bos_token", tokenizer.add_bos_token or bool(rule and rule.bos))
    tokenizer.add_eos_token = _flag(fields, "add_eos_token", False)
    tokenizer.update_post_processor()
    return tokenizer


def end_token_ids(fields: dict[str, Any]) -> tuple[int, ...]:
    """The ids that end a text or a turn: those that the file names by key, then those with a known name."""
    tokens = fields.get(_PREFIX + "tokens") or []
    ids = [fields.get(f"{_PREFIX}{key}_token_id") for key in _ID_KEYS]
    index = {token: number for number, token in enumerate(tokens)}
    names = [name for name in END_NAMES if name in index]
    if set(names) >= _CHANNELS:
        names.remove("<|end|>")
    found = [*ids, *(index[name] for name in names)]
    return tuple(dict.fromkeys(token for token in found if isinstance(token, int) and 0 <= token < len(tokens)))


def tokenizer_note(fields: dict[str, Any]) -> str:
    """What a person should know of how the text is split, or nothing."""
    if fields.get(_PREFIX + "model") == "gpt2" and _PREFIX + "pre" not in fields:
        return "The file names no pre-tokenizer, so text is split as GPT-2 does; the model may have learned another."
    return ""


def _flag(fields: dict[str, Any], key: str, usual: bool) -> bool:
    return bool(fields.get(_PREFIX + key, usual))


def _check_keys(name: str, fields: dict[str, Any]) -> None:
    for key, value in fields.items():
        short = key.removeprefix(_PREFIX)
        if short == key or short in _KNOWN_KEYS or _NEUTRAL.get(short) is value:
            continue
        raise LoadError(
            f"{name} cannot be converted: its tokenizer sets '{short}', which specviz does not apply; "
            "choose another file of this model, or its original as hub:ID or path:FOLDER."
        )


def _rule(name: str, fields: dict[str, Any]) -> _Rule | None:
    """The split rule of a byte-level tokenizer; None for the other kinds, and for a file that names none."""
    kind = fields.get(_PREFIX + "model")
    if kind not in ("gpt2", "llama", "gemma4"):
        raise LoadError(
            f"{name} cannot be converted: its tokenizer is of the kind '{kind}', which is not supported; "
            "give the original model as hub:ID or path:FOLDER."
        )
    if kind != "gpt2" or _PREFIX + "pre" not in fields:
        return None
    pre = fields[_PREFIX + "pre"]
    if pre not in RULES:
        raise LoadError(
            f"{name} cannot be converted: it splits text by the pre-tokenizer '{pre}', which specviz does not know; "
            "give the original model as hub:ID or path:FOLDER."
        )
    return RULES[pre]


def _read(path: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    except Exception as error:
        if type(error) is not Exception:
            raise
        # tokenizers raises plain Exceptions
        raise LoadError(f"The tokenizer of {path.name} contradicts itself ({error}); get a fresh copy.") from error


def _apply_rule(backend: Any, rule: _Rule) -> None:
    from tokenizers import Regex, normalizers, pre_tokenizers

    split: Callable[[str], Any] = lambda pattern: pre_tokenizers.Split(Regex(pattern), behavior="isolated")  # noqa: E731
    steps = [pre_tokenizers.Digits(individual_digits=True)] if rule.digits else []
    steps += [split(pattern) for pattern in rule.patterns]
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    backend.model.ignore_merges = rule.whole_words
    if rule.nfc:
        backend.normalizer = normalizers.NFC()


def _apply_space_prefix(backend: Any, fields: dict[str, Any], name: str) -> None:
    """A SentencePiece text begins with a space unless the file says that it does not."""
    from tokenizers import decoders, pre_tokenizers

    metaspace = isinstance(backend.pre_tokenizer, pre_tokenizers.Metaspace)
    gemma = str(fields.get("general.architecture", "")).startswith("gemma")
    if _flag(fields, "add_space_prefix", not gemma) != gemma:
        return  # as transformers builds it
    if not metaspace:
        wanted = "begin with a space" if gemma else "begin without a space"
        raise LoadError(f"{name} cannot be converted: its texts {wanted}, which its kind of tokenizer does not do.")
    backend.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="never", split=False)
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    backend.decoder = decoders.Sequence(steps)
