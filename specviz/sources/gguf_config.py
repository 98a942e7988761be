"""What a GGUF file's metadata says of the model, completed from what transformers reads of it.

transformers leaves out rope scaling, softcaps, widths of heads and more, and lets the defaults of the config's class
stand in their place. Here every key of the architecture is applied, is on a list of keys that change nothing, or is
refused by name. The meaning of a key is llama.cpp's (`llama-model.cpp`, `convert_hf_to_gguf.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from specviz.core.errors import LoadError

# tensors that are metadata: the factors of the rope's frequencies
ROPE_TENSORS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
# sizes that the shapes of the weights prove, and facts about the file
_HARMLESS = frozenset(
    "vocab_size context_length tensor_data_layout rope.scaling.finetuned expert_shared_count "
    "attention.relative_buckets_count use_parallel_residual".split()
)
# keys that change nothing while they have one of these values
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "attention.causal": (True,),
    "attention.clamp_kqv": (0.0,),
    "attention.max_alibi_bias": (0.0,),
    "attn_logit_softcapping": (0.0,),
    "final_logit_softcapping": (0.0,),
    "router_logit_softcapping": (0.0,),
    "logit_scale": (0.0, 1.0),
    "residual_scale": (0.0, 1.0),
    "embedding_scale": (0.0, 1.0),
    "attention.scale": (0.0,),
    "attention.output_scale": (0.0, 1.0),
    "attention.temperature_scale": (0.0,),
    "attention.shared_kv_layers": (0,),
    "rope.scaling.yarn_ext_factor": (1.0, -1.0),
    "rope.scaling.yarn_log_multiplier": (0.0,),
    "rope.scaling.attn_factor": (1.0,),
    "rope.scaling.yarn_attn_factor": (1.0,),
    "rope.scaling.alpha": (0.0,),
    "expert_count": (0,),
    "expert_used_count": (0,),
    "expert_weights_scale": (0.0, 1.0),
    "expert_gating_func": (0, 1),
    "expert_group_count": (0, 1),
    "expert_group_used_count": (0, 1),
    "nextn_predict_layers": (0,),
    "leading_dense_block_count": (0,),
}
# keys that transformers does not read, and the config's own name for them
_RENAMED = {
    "gemma2": {
        "attn_logit_softcapping": "attn_logit_softcapping",
        "final_logit_softcapping": "final_logit_softcapping",
    },
    "gemma3": {"final_logit_softcapping": "final_logit_softcapping", "rope.freq_base_swa": "rope_local_base_freq"},
    "qwen2moe": {
        "expert_feed_forward_length": "moe_intermediate_size",
        "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
        "expert_weights_norm": "norm_topk_prob",
    },
    "qwen3moe": {"expert_feed_forward_length": "moe_intermediate_size", "expert_weights_norm": "norm_topk_prob"},
    "stablelm": {"rope.freq_base": "rope_theta"},
    "starcoder2": {"rope.freq_base": "rope_theta"},
    "gpt2": {"context_length": "n_positions", "feed_forward_length": "n_inner"},
    "bloom": {},
    "falcon": {"attention.layer_norm_epsilon": "layer_norm_epsilon"},
    "nemotron": {"attention.layer_norm_epsilon": "norm_eps"},
}
_PARTIAL_ROTARY = ("phi3", "stablelm", "nemotron")
_WINDOWED = ("gemma2", "gemma3", "phi3", "starcoder2", "gpt-oss")
_OWN_FREQUENCIES = ("llama", "qwen2", "qwen3", "qwen2moe", "qwen3moe")
# Gemma's 27B models divide by the width per head, the others by the head's own (llama.cpp: f_attention_scale)
_LAYERS_OF_27B = {"gemma2": 46, "gemma3": 62}


def complete_config(
    name: str, fields: dict[str, Any], tensors: dict[str, Any], parsed: dict[str, Any]
) -> dict[str, Any]:
    """`parsed`, transformers' config of the file, with everything applied that it leaves out.

    `fields` is the metadata; `tensors` holds the values of `ROPE_TENSORS` and None for every other tensor of the file.
    Raises LoadError, by name, for a key that is not known and could change what the model writes.
    """
    return _Completion(name, fields, tensors, parsed).config()


@dataclass(slots=True)
class _Reading:
    """The keys of one architecture; `take` notes which of them were applied."""

    fields: dict[str, Any]
    taken: set[str]

    def take(self, key: str, usual: Any = None) -> Any:
        self.taken.add(key)
        return self.fields.get(key, usual)


class _Completion:
    def __init__(self, name: str, fields: dict[str, Any], tensors: dict[str, Any], parsed: dict[str, Any]) -> None:
        self._name, self._tensors = name, tensors
        self._architecture = str(fields["general.architecture"])
        prefix = f"{self._architecture}."
        own = {key.removeprefix(prefix): value for key, value in fields.items() if key.startswith(prefix)}
        self._keys = _Reading(own, set())
        # the class's own ids are those of one checkpoint
        self._config = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None, **parsed}

    def config(self) -> dict[str, Any]:
        self._take_what_transformers_reads()
        for key, name in _RENAMED.get(self._architecture, {}).items():
            if (value := self._keys.take(key)) is not None:
                self._config[name] = value
        self._apply_heads()
        self._apply_window()
        self._apply_bias()
        self._apply_rope()
        self._check_rest()
        return self._config

    def _refuse(self, what: str) -> LoadError:
        return LoadError(f"{self._name} cannot be converted: {what}; give the original model as hub:ID or path:FOLDER.")

    def _take_what_transformers_reads(self) -> None:
        from transformers.integrations.ggml import GGUF_CONFIG_MAPPING

        own = GGUF_CONFIG_MAPPING.get(self._config.get("model_type", ""), {})
        own = own or GGUF_CONFIG_MAPPING.get(self._architecture, {})
        if self._architecture == "gemma3":
            own = GGUF_CONFIG_MAPPING["gemma3"]
        for key, name in own.items():
            if name is not None:
                self._keys.take(key)

    def _apply_heads(self) -> None:
        keys, config = self._keys, self._config
        heads, width = keys.take("attention.head_count"), keys.fields.get("embedding_length")
        if not isinstance(heads, int) or not isinstance(width, int) or heads < 1:
            return  # the layers differ, or there is no attention; the weights' shapes prove the rest
        size = keys.take("attention.key_length", width // heads)
        if keys.take("attention.value_length", size) != size:
            raise self._refuse("its keys and values differ in length")
        rotary = keys.take("rope.dimension_count", size)
        if self._architecture in _PARTIAL_ROTARY:
            config["partial_rotary_factor"] = rotary / size
        elif rotary != size:
            raise self._refuse(f"it rotates {rotary} of the {size} dimensions of a head")
        if size != width // heads or self._architecture in ("llama", "qwen3", "qwen3moe"):
            config["head_dim"] = size
        if self._architecture in _LAYERS_OF_27B:
            whole = config.get("num_hidden_layers") == _LAYERS_OF_27B[self._architecture]
            scale = keys.take("attention.scale") or 0.0
            config["query_pre_attn_scalar"] = round(scale**-2) if scale else (width // heads if whole else size)

    def _apply_window(self) -> None:
        keys, config = self._keys, self._config
        window = keys.take("attention.sliding_window", 0)
        if self._architecture in _WINDOWED:
            config["sliding_window"] = window or config.get("sliding_window")
        elif window and (not isinstance(window, int) or window < keys.fields.get("context_length", 0)):
            raise self._refuse("it has a sliding window, which its kind of model has not in transformers")
        pattern = keys.take("attention.sliding_window_pattern")
        if pattern is None:
            return
        layers = config.get("num_hidden_layers", 0)
        if isinstance(pattern, int) and pattern > 0:
            pattern = [(layer + 1) % pattern != 0 for layer in range(layers)]
        if self._architecture not in _WINDOWED or not isinstance(pattern, list) or len(pattern) < layers:
            raise self._refuse("its layers alternate in a pattern of sliding windows that specviz does not apply")
        config["layer_types"] = ["sliding_attention" if slides else "full_attention" for slides in pattern[:layers]]

    def _apply_bias(self) -> None:
        if self._architecture == "llama":
            self._config["attention_bias"] = "blk.0.attn_q.bias" in self._tensors
            self._config["mlp_bias"] = "blk.0.ffn_up.bias" in self._tensors

    def _apply_rope(self) -> None:
        scaling = _rope_scaling(self._keys, self._config)
        if scaling is None:
            raise self._refuse(f"its rope scaling '{self._keys.fields.get('rope.scaling.type')}' is not known")
        long, short = (self._tensors.get(f"rope_factors_{length}.weight") for length in ("long", "short"))
        if long is not None and short is not None:
            scaling = self._longrope(long, short)
        elif scaling.get("rope_type") == "longrope":
            raise self._refuse("its rope scaling is 'longrope', and the factors of the frequencies are missing")
        factors = self._tensors.get("rope_freqs.weight")
        if factors is not None and any(factor != 1 for factor in factors):
            if scaling or self._architecture not in _OWN_FREQUENCIES:
                raise self._refuse("it changes the frequencies of the rope in two ways, or in one unknown for its kind")
            scaling = _frequency_factors([float(factor) for factor in factors], self._config)
        if scaling:
            self._config["rope_scaling"] = scaling

    def _longrope(self, long: Any, short: Any) -> dict[str, Any]:
        if self._architecture != "phi3":
            raise self._refuse("it has long and short factors of the rope, which its kind of model does not apply")
        whole = self._config["max_position_embeddings"]
        original = self._keys.take("rope.scaling.original_context_length", whole)
        self._config["original_max_position_embeddings"] = original
        scaling = {"rope_type": "longrope", "long_factor": [*map(float, long)], "short_factor": [*map(float, short)]}
        if factor := self._keys.take("rope.scaling.attn_factor"):
            scaling["attention_factor"] = factor
        return {**scaling, "factor": whole / original, "original_max_position_embeddings": original}

    def _check_rest(self) -> None:
        for key, value in self._keys.fields.items():
            if key in self._keys.taken or key in _HARMLESS or value in _NEUTRAL.get(key, ()):
                continue
            shown = "" if isinstance(value, list) else f" = {value}"
            raise self._refuse(f"its key '{self._architecture}.{key}'{shown} is one that specviz does not apply")


def _rope_scaling(keys: _Reading, config: dict[str, Any]) -> dict[str, Any] | None:
    """transformers' rope scaling of the file's keys: {} for none, None for a type that is not known."""
    factor = keys.take("rope.scaling.factor", keys.take("rope.scale_linear", 0.0))
    kind = keys.take("rope.scaling.type", "linear" if factor else "none")
    if kind == "none" or (kind in ("linear", "yarn") and factor in (0.0, 1.0)):
        keys.take("rope.scaling.original_context_length")
        return {}
    if kind == "linear":
        keys.take("rope.scaling.original_context_length")
        return {"rope_type": "linear", "factor": factor}
    if kind in ("longrope", "su"):
        return {"rope_type": "longrope"}
    return _yarn(keys, config, factor) if kind == "yarn" else None


def _yarn(keys: _Reading, config: dict[str, Any], factor: float) -> dict[str, Any]:
    """YaRN (Peng et al. 2023): llama.cpp multiplies the usual attention factor 0.1 ln(factor) + 1 by the file's own."""
    original = keys.take("rope.scaling.original_context_length", config.get("max_position_embeddings"))
    scaling = {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": original}
    for key in ("beta_fast", "beta_slow"):
        if (value := keys.take(f"rope.scaling.yarn_{key}", keys.take(f"rope.scaling.{key}"))) is not None:
            scaling[key] = value
    own = keys.take("rope.scaling.attn_factor", 1.0) * keys.take("rope.scaling.yarn_attn_factor", 1.0)
    if own != 1.0:
        scaling["attention_factor"] = own * (0.1 * math.log(factor) + 1.0)
    return scaling


def _frequency_factors(factors: list[float], config: dict[str, Any]) -> dict[str, Any]:
    """The rope scaling whose frequencies are the usual ones, each divided by its factor.

    Llama 3's converter writes the factors and not the parameters that they come from; where the usual parameters give
    these factors, those are taken, else longrope with the same factors for every length is the same function.
    """
    theta, size = config.get("rope_theta", 10000.0), 2 * len(factors)
    for original in (8192, *(2**power for power in range(4, 18))):
        usual = {"factor": max(factors), "low_freq_factor": 1.0, "high_freq_factor": 4.0}
        if _close(factors, [_llama3_factor(theta ** (2 * i / size), original, usual) for i in range(len(factors))]):
            return {"rope_type": "llama3", **usual, "original_max_position_embeddings": original}
    longrope = {"rope_type": "longrope", "long_factor": factors, "short_factor": factors, "attention_factor": 1.0}
    return {**longrope, "factor": 1.0, "original_max_position_embeddings": config["max_position_embeddings"]}


def _llama3_factor(period: float, original: int, usual: dict[str, float]) -> float:
    """The divisor of a frequency 1/`period` (radians per token) in Llama 3.1's scaling."""
    low, high, factor = usual["low_freq_factor"], usual["high_freq_factor"], usual["factor"]
    turns = original / (2 * math.pi * period)
    smooth = min(1.0, max(0.0, (turns - low) / (high - low)))
    return 1 / ((1 - smooth) / factor + smooth)


def _close(first: list[float], second: list[float]) -> bool:
    return all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(first, second, strict=True))
