"""Try every causal language model that transformers knows, tiny and random, and write docs/architectures.md.

    python scripts/architectures.py              all of them, a few minutes
    python scripts/architectures.py llama gemma3 these alone, printed and not written

Each is built from its own config class, shrunk by rules on the names of its fields. What specviz accepts must write the
tokens that `generate` writes, greedily and in float32, past its windows and up to its last position, with every kind of
draft; the exit status is 1 where one does not.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, GenerationConfig, PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from specviz import LanguageModel, Settings, decode, make_draft  # noqa: E402
from specviz.core.errors import SpecvizError  # noqa: E402

PAGE = ROOT / "docs" / "architectures.md"
VOCABULARY, POSITIONS, WINDOW = 128, 128, 8
PROMPT_TOKENS, NEW_TOKENS, LAST_TOKENS = 30, 32, 6
SEEDS = range(4)
LIVELY = 8  # distinct tokens in a reply that is worth comparing
DRAFTS = (("none", 1), ("prompt-lookup", 5), ("token-recycling", 4))

# What a field of this name becomes; fields of other names keep what their config class gives them.
RULES = (
    (r".*vocab_size(_per_layer_input)?|n_vocab|n_words", VOCABULARY),
    (r"hidden_size|d_model|n_embd|emb_dim|embedding_size|word_embed_proj_dim|input_embedding_size|lru_width|dim", 64),
    (r"num_hidden_layers|n_layers?|num_layers|(num_)?(encoder|decoder)_layers|num_blocks", 4),
    (r"num_attention_heads|n_heads?|num_heads|(num_)?(encoder|decoder)_attention_heads|mamba_n_heads", 4),
    (r"num_key_value_heads|n_kv_heads|num_kv_heads", 2),
    (r"(attention_|global_|v_|qk_nope_|qk_rope_|index_)?head_dim|kv_channels|d_kv|rotary_dim|mamba_d_head", 16),
    (r"\w*intermediate_size\w*|(encoder_|decoder_)?ffn_dim|d_ff|n_inner|dff|ffn_hidden_size", 64),
    (r"\w*lora_(rank|dim)", 16),
    (r"(max|n)_position(_embedding)?s|n_ctx|max_seq_len|(max_sequence|seq)_length|max_(source|target)_positions",
     POSITIONS),
    (r"n_routed_experts|n_experts|\w*num_(local_)?experts", 4),
    (r"num_experts_per_tok(en)?|experts_per_token|moe_top_?k|top_k_experts|moe_k", 2),
    (r"n_group|topk_group|n_groups", 1),
    (r"sliding_window(_size)?|(attention_|local_)?window_size|attention_chunk_size|index_topk", WINDOW),
    (r"first_k_dense_replace", 1),
)  # fmt: skip

# What the rules cannot know, by the name of the model type.
_MLA = {"num_key_value_heads": 4}
EXTRA: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        ("axk1", "axk2", "bailing_hybrid", "deepseek_v3", "deepseek_v32", "glm4_moe_lite", "glm_moe_dsa",
         "kimi_linear", "longcat_flash", "minicpm3", "sarvam_mla", "youtu"), _MLA,
    ),
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "bamba": {"attn_layer_indices": [1]},
    "deepseek_v2": {**_MLA, "num_experts_per_tok": 2},
    "dots1": {"n_routed_experts": 4, "num_experts_per_tok": 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "nemotron": {"head_dim": 16, "num_key_value_heads": 2},
    "zaya": {"num_experts_per_tok": 1},
    "hunyuan_v1_dense": {"head_dim": 16},
    "hunyuan_v1_moe": {"head_dim": 16},
    "ministral": {"head_dim": 16},
}  # fmt: skip


class NotBuilt(Exception):
    """A config that the rules do not shrink to a module that runs; the message is transformers' own."""


@dataclass(frozen=True, slots=True)
class Row:
    """One architecture: how it runs (native, plain, refused, not built, different), and why where it does not."""

    model_type: str
    causal_class: str
    outcome: str
    why: str = ""


def tiny_module(model_type: str, seed: int = 0) -> torch.nn.Module:
    """A random float32 module in evaluation mode. Raises NotBuilt."""
    try:
        torch.manual_seed(seed)
        kind = CONFIG_MAPPING[model_type]
        facts = shrunk(kind) | EXTRA.get(model_type, {})
        module = AutoModelForCausalLM.from_config(kind(**facts), dtype=torch.float32).eval()
        shake(module)
        module(input_ids=torch.arange(3, 20)[None])
    except Exception as error:  # whatever a foreign architecture raises on a size that it was not made for
        raise NotBuilt(f"{type(error).__name__}: {' '.join(str(error).split())[:160]}") from error
    return module


def shrunk(kind: type[PreTrainedConfig]) -> dict[str, Any]:
    """Arguments that make a config of this class small."""
    usual = kind()
    facts = {name: small for name, value in usual.to_dict().items() if (small := _small(name, value)) is not None}
    for name in getattr(kind, "sub_configs", None) or {}:
        if isinstance(part := getattr(usual, name, None), PreTrainedConfig):
            facts[name] = shrunk(type(part))
    facts |= {name: token for name, token in _SPECIAL_TOKENS.items() if hasattr(usual, name)}
    facts |= {name: value for name, value in _FLAGS.items() if hasattr(usual, name)}
    place = (kind.attribute_map or {}).get("layer_types", "layer_types")
    if (kinds := getattr(usual, "layer_types", None)) and not isinstance(getattr(kind, place, None), property):
        distinct = list(dict.fromkeys(kinds))
        facts["layer_types"] = (distinct * 4)[: max(4, len(distinct))]
    return facts


_SPECIAL_TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_FLAGS = {"is_decoder": True, "tie_word_embeddings": False}


def _small(name: str, value: Any) -> int | None:
    if type(value) is not int:
        return None
    return next((small for rule, small in RULES if re.fullmatch(rule, name)), None)


@torch.no_grad()
def shake(module: torch.nn.Module) -> None:
    """Weights so wide that every part counts: norms, biases and attention sinks too."""
    for weight in module.parameters():
        if weight.dim() > 1:
            weight.normal_(0.0, 1.5 * weight.shape[-1] ** -0.5)
        else:
            weight.add_(0.2 * torch.randn_like(weight))


def verdict(model_type: str) -> Row:
    """Build one, load it, and compare what it writes with `generate`."""
    name = CAUSAL[model_type]
    try:
        module, prompt, expected = liveliest(model_type)
    except NotBuilt as error:
        return Row(model_type, name, "not built", str(error))
    try:
        model = LanguageModel(module, name=f"A tiny {model_type}")
    except SpecvizError as error:
        return Row(model_type, name, "refused", str(error).removeprefix(f"A tiny {model_type} cannot be used: "))
    try:
        wrong = ", ".join(differences(model, module, prompt, expected))
    except (RuntimeError, IndexError, SpecvizError) as error:
        wrong = f"accepted, and then fails: {' '.join(str(error).split())[:160]}"
    if wrong:
        return Row(model_type, name, "different", wrong)
    return Row(model_type, name, model.executor.path, "" if model.reads_trees else "chains only, no trees of drafts")


def liveliest(model_type: str) -> tuple[torch.nn.Module, list[int], list[int]]:
    """(module, prompt, greedy reply) of the first seed whose reply does not repeat itself, else of the best."""
    found = []
    prompt = [(7 * place * place + 3 * place) % (VOCABULARY - 8) + 4 for place in range(PROMPT_TOKENS)]
    for seed in SEEDS:
        module = tiny_module(model_type, seed)
        reply = greedy(module, prompt, NEW_TOKENS)
        found.append((len(set(reply)), -seed, module, reply))
        if len(set(reply)) >= LIVELY:
            break
    _, _, module, reply = max(found, key=lambda each: each[:2])
    return module, prompt, reply


def greedy(module: torch.nn.Module, prompt: list[int], new_tokens: int) -> list[int]:
    """What transformers' own `generate` writes. Raises NotBuilt where it cannot."""
    module.generation_config = GenerationConfig(do_sample=False, max_new_tokens=new_tokens, pad_token_id=0)
    try:
        return module.generate(torch.tensor([prompt]))[0, len(prompt) :].tolist()
    except Exception as error:  # as above
        raise NotBuilt(f"generate fails: {' '.join(str(error).split())[:160]}") from error


def differences(model: LanguageModel, module: torch.nn.Module, prompt: list[int], expected: list[int]) -> Iterable[str]:
    """Names of the ways in which the model says something else than its module; none where it is the same model."""
    ways = (*DRAFTS, ("cascade", 8)) if model.reads_trees else DRAFTS
    for name, k in ways:
        if written(model, name, k, prompt, NEW_TOKENS) != expected:
            yield f"{name} differs from generate"
    last = (prompt * POSITIONS)[: model.context_length - LAST_TOKENS]
    if written(model, "none", 1, last, LAST_TOKENS) != greedy(module, last, LAST_TOKENS):
        yield "differs from generate at the last positions"
    whole = model.first_layers(model.layers)
    with model.open(PROMPT_TOKENS) as ours, whole.open(PROMPT_TOKENS) as exits:
        if not torch.allclose(ours.forward(prompt), exits.forward(prompt), atol=1e-3):
            yield "an early exit of all layers is another model"


def written(model: LanguageModel, draft: str, k: int, prompt: list[int], new_tokens: int) -> list[int]:
    """The tokens that a lane keeps."""
    settings = Settings(k=k, max_new_tokens=new_tokens, ignore_eos=True, telemetry=False)
    return [token.id for each in decode(model, make_draft(draft, model), prompt, settings) for token in each.kept]


def page(rows: list[Row]) -> str:
    """docs/architectures.md."""
    counts = Counter(row.outcome for row in rows)
    table = "\n".join(f"| {row.model_type} | {row.causal_class} | {row.outcome} | {_cell(row.why)} |" for row in rows)
    summary = "\n".join(f"| {outcome} | {counts[outcome]} |" for outcome in _OUTCOMES if counts[outcome])
    return _PAGE.format(
        version=transformers.__version__, total=len(rows), summary=summary, table=table, prompt=PROMPT_TOKENS,
        new=NEW_TOKENS, window=WINDOW,
    )  # fmt: skip


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


_OUTCOMES = ("native", "plain", "plain, own masks", "refused", "not built", "different")
_PAGE = """# Architectures

Which causal language models run, how, and why the others do not. `scripts/architectures.py` writes this page.

It builds a tiny random float32 model of each of the {total} model types that transformers {version} maps to a causal
language model, gives it to `LanguageModel`, and compares what it writes with `generate`: greedily, {new} tokens after a
prompt of {prompt} (windows are {window} tokens), and again up to the last position; with standard decoding, two drafts,
a tree of drafts, and an early exit of all layers.

| outcome | model types |
|---|---|
{summary}

- **native**: passes written out in `specviz/models/native.py`.
- **plain**: transformers' own forward pass, over a cache and under masks of specviz.
- **plain, own masks**: the same, but the module makes its own masks and positions. No trees of drafts.
- **refused**: `LanguageModel` raises this sentence.
- **not built**: the script's rules do not shrink this config to a model that runs, so nothing is known of it. It is
  still checked against its own forward pass when it is loaded, as every model is.

| model type | class | outcome | note |
|---|---|---|---|
{table}
"""


def main(names: list[str]) -> int:
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    os.environ["CPU_CORES"] = "1"  # tiny products gain nothing from a second thread
    rows = []
    for name in names or CAUSAL:
        rows.append(verdict(name))
        print(f"{name}: {rows[-1].outcome} {rows[-1].why}", flush=True)
    if not names:
        PAGE.write_text(page(rows), encoding="utf-8")
    return int(any(row.outcome == "different" for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
