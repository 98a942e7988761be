"""Models of GGUF files: equal to the model that was written into the file, or refused by name."""

import math

import numpy as np
import pytest
import torch
from gguf import GGUFWriter
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor, get_gguf_hf_weights_map

from specviz.core.errors import LoadError
from specviz.sources import load_checkpoint, resolve

TOKENS = ["a", "b", "ab", *(f"t{number}" for number in range(27))]
SIZES = {
    "vocab_size": len(TOKENS),
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 256,
    "bos_token_id": None,
    "eos_token_id": 1,
    "pad_token_id": None,
}
MODELS = {
    "llama": (LlamaForCausalLM, LlamaConfig, {}),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, {}),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, {"head_dim": 8}),
    "gemma2": (Gemma2ForCausalLM, Gemma2Config, {"head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 12}),
    "gemma3": (Gemma3ForCausalLM, Gemma3TextConfig, {"head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 12}),
    "phi3": (Phi3ForCausalLM, Phi3Config, {}),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))


def make(architecture, **changes):
    torch.manual_seed(0)
    model_class, config_class, own = MODELS[architecture]
    config = config_class(**{**SIZES, **own, **changes})
    model = model_class._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    return model


def stored(architecture, model):
    """GGUF's tensors of a model: its names, Llama's rows in pairs, Gemma's norms with their one added."""
    processor = TENSOR_PROCESSORS.get(architecture, TensorProcessor)(config=model.config.to_dict())
    weights, config = model.state_dict(), model.config
    for name, own in get_gguf_hf_weights_map(model, processor).items():
        if own == "lm_head.weight" and config.tie_word_embeddings:
            continue
        value = weights[own].float().numpy()
        if architecture == "llama" and (".attn_q." in name or ".attn_k." in name):
            heads = config.num_attention_heads if ".attn_q." in name else config.num_key_value_heads
            halves = value.reshape(heads, 2, value.shape[0] // heads // 2, *value.shape[1:])
            value = halves.swapaxes(1, 2).reshape(value.shape)
        if architecture.startswith("gemma") and "norm.weight" in name:
            value = value + 1
        yield name, np.ascontiguousarray(value)


def write(path, architecture, model, keys=(), tensors=(), **options):
    """A GGUF file of `model`, with further `keys` of its architecture; `options` are those of GGUFWriter."""
    config, writer = model.config, GGUFWriter(path, architecture, **options)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    parameters = config.rope_parameters
    writer.add_rope_freq_base(float(parameters.get("full_attention", parameters)["rope_theta"]))
    if (head := getattr(config, "head_dim", None)) is not None:
        writer.add_key_length(head)
        writer.add_value_length(head)
    if architecture.startswith("gemma"):
        writer.add_sliding_window(config.sliding_window)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([1] * len(TOKENS))
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(1)
    for key, value in dict(keys).items():
        add = {bool: writer.add_bool, str: writer.add_string, int: writer.add_uint32, float: writer.add_float32}
        add.get(type(value), writer.add_array)(f"{architecture}.{key}", value)
    for name, value in [*stored(architecture, model), *dict(tensors).items()]:
        writer.add_tensor(name, value)
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def converted(path):
    return load_checkpoint(resolve(f"gguf:{path}"), "float32")[0]


def assert_equal(path, model):
    """The logits over a text longer than every window and original context of these models."""
    ids = torch.arange(120).remainder(len(TOKENS))[None]
    other = converted(path)
    other.set_attn_implementation("eager")
    with torch.no_grad():
        torch.testing.assert_close(other(ids).logits, model(ids).logits, rtol=1e-4, atol=1e-4)


ORIGINAL = {"original_max_position_embeddings": 32}
CASES = {
    "no scaling": ({}, {"rope.scaling.type": "none"}),
    "linear": (
        {"rope_type": "linear", "factor": 4.0},
        {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
    ),
    "linear, old key": ({"rope_type": "linear", "factor": 4.0}, {"rope.scale_linear": 4.0}),
    "yarn": (
        {"rope_type": "yarn", "factor": 4.0, **ORIGINAL},
        {
            "rope.scaling.type": "yarn",
            "rope.scaling.factor": 4.0,
            "rope.scaling.original_context_length": 32,
            "rope.scaling.finetuned": True,
        },
    ),
    "yarn with its own slopes and factor": (
        {
            "rope_type": "yarn",
            "factor": 8.0,
            "beta_fast": 16.0,
            "beta_slow": 2.0,
            "attention_factor": 1.5 * (0.1 * math.log(8) + 1),
            **ORIGINAL,
        },
        {
            "rope.scaling.type": "yarn",
            "rope.scaling.factor": 8.0,
            "rope.scaling.original_context_length": 32,
            "rope.scaling.yarn_beta_fast": 16.0,
            "rope.scaling.yarn_beta_slow": 2.0,
            "rope.scaling.yarn_attn_factor": 1.5,
        },
    ),
}


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3", "gemma2", "gemma3"])
@pytest.mark.parametrize("case", CASES)
def test_the_rope_is_scaled_as_the_file_says(tmp_path, architecture, case):
    scaling, keys = CASES[case]
    model = make(architecture, **({"rope_scaling": scaling} if scaling else {}))
    assert_equal(write(tmp_path / "m.gguf", architecture, model, keys), model)


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("original, low", [(64, 1.0), (8192, 1.0), (64, 2.0)])
def test_the_factors_of_llama_3_are_applied(tmp_path, architecture, original, low):
    scaling = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": low,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": original,
        "rope_theta": 10000.0,
    }
    model, plain = make(architecture, rope_scaling=scaling), make(architecture)
    frequencies = plain.model.rotary_emb.inv_freq / model.model.rotary_emb.inv_freq
    tensors = {"rope_freqs.weight": frequencies.numpy()}
    assert_equal(write(tmp_path / "m.gguf", architecture, model, tensors=tensors), model)


def test_the_long_and_short_factors_of_phi3_are_applied(tmp_path):
    long, short = [1.0 + number for number in range(8)], [1.0 + number / 8 for number in range(8)]
    scaling = {"rope_type": "longrope", "long_factor": long, "short_factor": short, **ORIGINAL}
    model = make("phi3", rope_scaling=scaling, original_max_position_embeddings=32)
    factor = math.sqrt(1 + math.log(256 / 32) / math.log(32))
    keys = {"rope.scaling.attn_factor": factor, "rope.scaling.original_context_length": 32}
    values = {"long": long, "short": short}
    tensors = {f"rope_factors_{name}.weight": np.array(value, np.float32) for name, value in values.items()}
    assert_equal(write(tmp_path / "m.gguf", "phi3", model, keys, tensors), model)


@pytest.mark.parametrize(
    "architecture, changes, keys",
    [
        (
            "gemma2",
            {"attn_logit_softcapping": 3.0, "final_logit_softcapping": 2.0},
            {"attn_logit_softcapping": 3.0, "final_logit_softcapping": 2.0},
        ),
        ("gemma3", {"final_logit_softcapping": 2.0}, {"final_logit_softcapping": 2.0}),
        ("gemma3", {"rope_local_base_freq": 500.0}, {"rope.freq_base_swa": 500.0}),
        ("gemma2", {"query_pre_attn_scalar": 64}, {"attention.scale": 0.125}),
        ("qwen2", {"head_dim": 8}, {}),
        ("llama", {"head_dim": 8}, {}),
        ("llama", {"attention_bias": True, "mlp_bias": True}, {}),
        ("phi3", {"partial_rotary_factor": 0.5}, {"rope.dimension_count": 8}),
        ("phi3", {"sliding_window": 16}, {"attention.sliding_window": 16}),
        (
            "gemma3",
            {"layer_types": ["full_attention", "sliding_attention"]},
            {"attention.sliding_window_pattern": [False, True]},
        ),
        ("gemma3", {"layer_types": ["sliding_attention", "full_attention"]}, {"attention.sliding_window_pattern": 2}),
    ],
)
def test_what_else_the_file_says_of_the_model_is_applied(tmp_path, architecture, changes, keys):
    model = make(architecture, **changes)
    assert_equal(write(tmp_path / "m.gguf", architecture, model, keys), model)


@pytest.mark.parametrize(
    "architecture, keys, words",
    [
        ("llama", {"rope.scaling.type": "dynamic", "rope.scaling.factor": 2.0}, "rope scaling 'dynamic'"),
        ("qwen2", {"rope.scaling.type": "longrope"}, "factors of the frequencies are missing"),
        ("llama", {"attention.sliding_window": 16}, "sliding window"),
        ("qwen2", {"attention.sliding_window": 16}, "sliding window"),
        ("llama", {"rope.dimension_count": 8}, "rotates 8 of the 16"),
        ("llama", {"expert_count": 4}, "llama.expert_count' = 4"),
        ("llama", {"logit_scale": 0.5}, "llama.logit_scale"),
        ("qwen2", {"attn_logit_softcapping": 30.0}, "qwen2.attn_logit_softcapping"),
        ("qwen2", {"attention.causal": False}, "attention.causal"),
        ("llama", {"rope.scaling.yarn_log_multiplier": 0.1}, "yarn_log_multiplier"),
        ("phi3", {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, "got linear"),
        ("qwen3", {"key.of.next.year": 1}, "qwen3.key.of.next.year"),
    ],
)
def test_what_is_not_applied_is_refused_by_name(tmp_path, architecture, keys, words):
    path = write(tmp_path / "m.gguf", architecture, make(architecture), keys)
    with pytest.raises(LoadError) as caught:
        resolve(f"gguf:{path}")
    assert words in str(caught.value) and "damaged" not in str(caught.value)


def test_keys_that_change_nothing_are_no_reason_to_refuse(tmp_path):
    keys = {"attention.sliding_window": 256, "logit_scale": 1.0, "expert_count": 0, "attention.causal": True}
    model = make("qwen2")
    assert_equal(write(tmp_path / "m.gguf", "qwen2", model, keys), model)


def test_a_tensor_that_the_model_has_no_place_for_is_refused_by_name(tmp_path):
    tensors = {"blk.0.attn_sinks.weight": np.ones(2, np.float32)}
    path = write(tmp_path / "m.gguf", "qwen2", make("qwen2"), tensors=tensors)
    with pytest.raises(LoadError, match=r"no place for its tensor blk\.0\.attn_sinks\.weight"):
        resolve(f"gguf:{path}")


# ---- split files


@pytest.fixture
def split(tmp_path):
    """(the first part, the model): its own output head lies in the last part, which transformers does not see."""
    model = make("qwen2", tie_word_embeddings=False)
    write(tmp_path / "m.gguf", "qwen2", model, split_max_tensors=9)
    parts = sorted(tmp_path.glob("m-*.gguf"))
    assert len(parts) > 2 and not (tmp_path / "m.gguf").exists()
    return parts, model


def test_a_split_file_is_read_from_its_first_part(split):
    assert_equal(split[0][0], split[1])


def test_a_part_of_a_split_file_says_which_it_is_and_what_to_do(split):
    parts, count = split[0], len(split[0])
    with pytest.raises(LoadError, match=f"part 2 of {count} of a split GGUF; give the first part, {parts[0].name}"):
        resolve(f"gguf:{parts[1]}")
    parts[-1].unlink()
    with pytest.raises(LoadError, match=f"part 1 of {count} .*{parts[-1].name} is missing"):
        resolve(f"gguf:{parts[0]}")
    renamed = parts[0].rename(parts[0].with_name("renamed.gguf"))
    with pytest.raises(LoadError, match="one part of a split GGUF"):
        resolve(f"gguf:{renamed}")
