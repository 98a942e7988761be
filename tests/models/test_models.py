"""A model and its contexts: pieces equal the whole, what is dropped leaves no trace, what cannot be used is refused."""

import copy
import hashlib

import pytest
import torch
from support.tiny import ARCHITECTURES, byte_level_tokenizer, module, target
from transformers import (
    AutoModelForCausalLM,
    BertConfig,
    BertModel,
    GenerationConfig,
    JambaConfig,
    LlamaConfig,
    MambaConfig,
    Qwen3NextConfig,
    T5Config,
    T5ForConditionalGeneration,
)

from specviz import LanguageModel, load
from specviz.core.errors import ContextError, InputError, LoadError
from specviz.models.device import available_cores, pick_device

pytestmark = pytest.mark.usefixtures("one_thread")

IDS = (5, 9, 2, 41, 7, 7, 30, 12, 55, 3, 18, 29, 4, 60)


@torch.inference_mode()
def read_whole(model, ids):
    return model(torch.tensor([ids]), use_cache=False).logits[0]


def close(found, expected):
    return torch.allclose(found, expected, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_text_read_in_pieces_has_the_logits_of_the_whole(architecture):
    expected = read_whole(module(architecture), IDS)
    with target(architecture).open(64) as context:
        context.prefill(IDS[:3])
        found = [context.forward(IDS[3:4]), context.forward(IDS[4:9]), context.forward(IDS[9:])]
        assert context.length == len(IDS)
    assert close(torch.cat(found), expected[3:])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_rows_that_are_dropped_leave_no_trace(architecture):
    expected = read_whole(module(architecture), IDS)
    with target(architecture).open(64) as context:
        context.prefill(IDS[:6])
        context.forward([1, 2, 3, 4, 5, 6, 8, 9, 10, 11])
        context.keep(0)
        context.forward((*IDS[6:8], 44, 45))
        context.keep(2)
        context.forward([50, 51, 52])
        context.rewind(3)
        assert context.length == 8
        assert close(context.forward(IDS[8:]), expected[8:])


@pytest.mark.parametrize("architecture", ("llama", "gpt2"))
def test_chosen_rows_are_moved_together(architecture):
    """Keys are stored with their position, so rows are compared through what stood at those very slots."""
    with target(architecture).open(64) as context:
        context.prefill(IDS[:4])
        context.forward([11, 12, 13, 14])
        context.keep([0, 1, 2])
        moved = context.forward([9])
        assert context.length == 8
    assert close(moved, read_whole(module(architecture), (*IDS[:4], 11, 12, 13, 9))[-1:])


def test_a_copied_context_says_the_same_and_goes_its_own_way():
    expected = read_whole(module(), IDS)
    with target().open(64) as shared, target().open(32) as one:
        shared.prefill(IDS[:9])
        one.copy_from(shared)
        shared.forward([1, 2, 3])
        assert one.length == 9
        assert close(one.forward(IDS[9:]), expected[9:])


def test_a_copy_needs_the_same_model_and_room():
    with target().open(16) as context, target("gpt2").open(16) as other, target().open(4) as small:
        context.prefill(IDS[:8])
        for wrong in (other, small):
            with pytest.raises(ContextError, match="same model that fits"):
                wrong.copy_from(context)


def test_a_cache_that_was_used_before_is_as_good_as_new():
    model = LanguageModel(module(), None)
    with model.open(64) as context:
        context.forward(list(range(60)))
    with model.open(64) as context:
        assert close(context.forward(IDS), read_whole(module(), IDS))


def test_hidden_states_are_those_of_the_last_layer():
    with torch.inference_mode():
        expected = module()(torch.tensor([IDS]), output_hidden_states=True, use_cache=False).hidden_states[-1][0]
    with target().open(64) as context:
        logits, states = context.forward(IDS, hidden=True)
    assert close(states, expected) and close(logits, read_whole(module(), IDS))


def test_a_long_prompt_is_read_in_chunks_like_a_short_one():
    model = module(max_position_embeddings=1200)
    ids = [(i * 7 + i // 9) % 64 for i in range(1100)]
    lm = LanguageModel(model, None)
    with lm.open(1200) as context:
        context.prefill(ids[:-1])
        assert close(context.forward(ids[-1:]), read_whole(model, ids)[-1:])


def test_a_context_says_when_it_is_full_closed_or_asked_too_much():
    lm = target()
    with pytest.raises(ContextError, match="at most 256 tokens; 257"):
        lm.open(257)
    context = lm.open(8)
    with pytest.raises(ContextError, match="8 tokens"):
        context.forward(list(range(9)))
    context.rewind(context.length)
    with pytest.raises(ContextError, match="cannot be rewound"):
        context.rewind(1)
    with pytest.raises(InputError, match="must follow an earlier token"):
        context.forward([1, 2], parents=[-1, 1])
    with pytest.raises(InputError, match="A pass over 2 tokens"):
        context.forward([1, 2], parents=[-1])
    context.close()
    context.close()
    with pytest.raises(ContextError, match="closed"):
        context.forward([1])


def test_a_full_context_can_still_be_used_up_to_its_last_entry():
    with target().open(256) as context:
        context.prefill([1] * 255)
        assert context.forward([2]).shape == (1, 64)
        with pytest.raises(ContextError):
            context.forward([3])


def snapshot(model):
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode() + tensor.contiguous().numpy().tobytes())
    modes = [part.training for part in model.modules()]
    hooks = [len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules()]
    addresses = [parameter.data_ptr() for parameter in model.parameters()]
    attention = model.config._attn_implementation
    configs = (copy.deepcopy(model.config.to_dict()), copy.deepcopy(model.generation_config.to_dict()))
    return (
        digest.hexdigest(),
        modes,
        hooks,
        addresses,
        attention,
        configs,
        [p.requires_grad for p in model.parameters()],
    )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("training", [True, False])
def test_a_users_module_is_never_changed(architecture, training):
    from specviz import Settings, decode, make_draft

    model = module(architecture).train(training)
    before = snapshot(model)
    lm = LanguageModel(model, None)
    for name in ("none", "early-exit", "draft-model"):
        draft = make_draft(name, lm, draft_model=lm if name == "draft-model" else None)
        list(decode(lm, draft, IDS, Settings(k=3, max_new_tokens=6, temperature=0.8, repetition_penalty=1.2)))
    assert snapshot(model) == before


def test_dropout_of_a_module_in_training_plays_no_part():
    noisy = module("gpt2", attn_pdrop=0.5, resid_pdrop=0.5, embd_pdrop=0.5).train()
    with LanguageModel(noisy, None).open(32) as context:
        assert close(context.forward(IDS), read_whole(module("gpt2"), IDS))


def test_changes_of_a_users_weights_are_not_copied_in_halves():
    """The twin shares the parameters or has copied them all; never one and not the other."""
    model = module("gpt2")
    lm = LanguageModel(model, None)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)
    with lm.open(32) as context:
        found = context.forward(IDS)
    assert close(found, read_whole(model, IDS)) or close(found, read_whole(module("gpt2"), IDS))


def test_early_exit_is_the_first_layers_under_the_same_norm_and_head():
    for architecture in ("llama", "gpt2", "gemma3, window 8", "mistral, window 8"):
        whole = module(architecture)
        short = module(architecture, num_hidden_layers=3)
        layers = short.transformer.h if architecture == "gpt2" else short.model.layers
        del layers[1:]
        short.config.num_hidden_layers = 1
        if getattr(short.config, "layer_types", None):
            short.config.layer_types = short.config.layer_types[:1]
        lm = LanguageModel(whole, None)
        with lm.first_layers(1).open(32) as context:
            assert close(context.forward(IDS), read_whole(short, IDS)), architecture
        with lm.first_layers(3).open(32) as context:
            assert close(context.forward(IDS), read_whole(whole, IDS)), architecture
        for count in (0, 4):
            with pytest.raises(LoadError, match="3 layers"):
                lm.first_layers(count)


_SMALL = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "bos_token_id": None, "eos_token_id": None}
_ATTENTION = {"intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}


def mamba():
    return AutoModelForCausalLM.from_config(MambaConfig(**_SMALL, state_size=4))


def qwen3_next():
    experts = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16}
    linear = {"linear_num_value_heads": 2, "linear_num_key_heads": 2, "linear_key_head_dim": 8}
    facts = {**_SMALL, **_ATTENTION, **experts, **linear, "shared_expert_intermediate_size": 16}
    layers = ["linear_attention", "full_attention"]
    return AutoModelForCausalLM.from_config(
        Qwen3NextConfig(**facts, linear_value_head_dim=8, head_dim=8, layer_types=layers)
    )


def jamba():
    facts = {**_SMALL, **_ATTENTION, "attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 1}
    return AutoModelForCausalLM.from_config(
        JambaConfig(**facts, mamba_d_state=4, use_mamba_kernels=False, pad_token_id=0)
    )


@pytest.mark.parametrize("make", [mamba, qwen3_next, jamba])
def test_a_model_with_a_recurrent_state_is_refused_in_words(make):
    with pytest.raises(LoadError, match="recurrent state .* cannot be rewound"):
        LanguageModel(make(), None)


def test_models_that_are_no_causal_decoders_are_refused_in_words():
    heads = {"num_attention_heads": 2, "num_hidden_layers": 1, "vocab_size": 64}
    with pytest.raises(LoadError, match="causal"):
        LanguageModel(BertModel(BertConfig(hidden_size=16, intermediate_size=16, **heads)), None)
    with pytest.raises(LoadError, match="encoder-decoder"):
        LanguageModel(
            T5ForConditionalGeneration(T5Config(vocab_size=64, d_model=16, d_kv=8, d_ff=16, num_layers=1)), None
        )
    with pytest.raises(LoadError, match="not a transformers causal"):
        LanguageModel(torch.nn.Linear(2, 2), None)


def test_a_short_context_is_no_reason_to_refuse_a_model():
    lm = LanguageModel(module(max_position_embeddings=16), None)
    assert lm.context_length == 16


def test_eos_is_the_tokenizers_and_what_the_generation_config_lists(tmp_path):
    tokenizer = byte_level_tokenizer()
    model = module(vocab_size=len(tokenizer))
    model.generation_config = GenerationConfig(
        eos_token_id=[3, 4], temperature=0.7, top_k=20, top_p=0.8, do_sample=True, repetition_penalty=1.1
    )
    assert LanguageModel(model).eos_ids == (3, 4)
    assert LanguageModel(model, tokenizer).eos_ids == (tokenizer.eos_token_id, 3, 4)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = load(f"path:{tmp_path}", device="cpu", dtype="float32")
    assert loaded.eos_ids == (tokenizer.eos_token_id, 3, 4)
    with loaded.open(32) as context:
        assert close(context.forward(IDS), read_whole(model, IDS))


def test_facts_of_a_model_are_those_of_its_module():
    model = module(tie_word_embeddings=True)
    lm = LanguageModel(model, None, name="mine", revision="r1")
    assert lm.vocabulary == 64 and lm.context_length == 256 and lm.dtype is torch.float32
    assert lm.info.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert (lm.info.name, lm.info.revision, lm.info.architecture, lm.info.role) == ("mine", "r1", "llama", "target")


def test_rotary_scaling_that_changes_with_length_is_not_stretched():
    rope = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0, "original_max_position_embeddings": 64}
    config = LlamaConfig(**_SMALL, **_ATTENTION, max_position_embeddings=256, rope_parameters=rope)
    assert LanguageModel(AutoModelForCausalLM.from_config(config), None).context_length == 64


def test_a_device_that_is_not_there_is_refused_in_words(monkeypatch):
    assert pick_device("cpu").type == "cpu"
    for name in ("tpu", "meta"):
        with pytest.raises(LoadError, match="auto, cuda, mps or cpu"):
            pick_device(name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(LoadError, match="no usable 'cuda' device"):
        pick_device("cuda")


def test_cores_are_those_that_the_container_grants(monkeypatch):
    monkeypatch.setenv("CPU_CORES", "1")
    assert available_cores() == 1
    monkeypatch.setenv("CPU_CORES", "100000")
    assert 1 <= available_cores() < 100000


def test_bfloat16_says_the_same_alone_and_in_a_block():
    """In bfloat16 a row is rounded the same whatever its company, so a verify pass says what a standard step said."""
    lm = LanguageModel(module("llama").to(torch.bfloat16), None)
    with lm.open(64) as context:
        block = context.forward(IDS)
    with lm.open(64) as context:
        single = torch.cat([context.forward([token]) for token in IDS])
    same = (block == single).all(-1)
    assert float((block.float() - single.float()).abs().max()) < 0.25
    assert bool(same.any())
