"""What runs is the module that was given, with its attention, windows, adapters and end tokens; or it is refused."""

import pytest
import torch
from support.tiny import every_draft, module, standard_ids
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    BertConfig,
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    GenerationConfig,
    GPTNeoConfig,
    GptOssConfig,
    MistralConfig,
    MoshiConfig,
    MptConfig,
)

from specviz import LanguageModel, Settings, decode, make_draft
from specviz.core.errors import ContextError, LayoutError, LoadError
from specviz.models.end_tokens import EndTokens, read_end_tokens
from specviz.models.native_family import is_native
from specviz.models.reference import read_reference

pytestmark = pytest.mark.usefixtures("one_thread")

VOCABULARY = 64
PROMPT = [(7 * place * place + 3 * place) % 60 + 2 for place in range(30)]


def lively(model, seed=0):
    """Wide random weights in every part, biases and attention sinks too."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.copy_(1.5 * weight.shape[-1] ** -0.5 * noise if weight.dim() > 1 else weight + 0.2 * noise)
    return model.eval()


def generated(model, prompt, count):
    """What transformers' own greedy `generate` writes."""
    config = GenerationConfig(do_sample=False, max_new_tokens=count, pad_token_id=0)
    ids = torch.tensor([prompt])
    made = model.generate(ids, generation_config=config, attention_mask=torch.ones_like(ids))
    return made[0, len(prompt) :].tolist()


def written(model, prompt, count, draft="none", k=5):
    settings = Settings(k=k, max_new_tokens=count, telemetry=False)
    return [token.id for each in decode(model, make_draft(draft, model), prompt, settings) for token in each.kept]


def gpt_neo():
    config = GPTNeoConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_layers=4, num_heads=4, window_size=256,
        max_position_embeddings=2048, attention_types=[[["global", "local"], 2]], bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    return lively(AutoModelForCausalLM.from_config(config))


def gpt_oss():
    config = GptOssConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=32, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=8,
        max_position_embeddings=256, bos_token_id=None, eos_token_id=None, pad_token_id=None,
    )  # fmt: skip
    return lively(AutoModelForCausalLM.from_config(config))


def gemma3():
    text = {
        "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 4, "head_dim": 8,
        "num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": 8, "max_position_embeddings": 128,
        "layer_types": ["sliding_attention", "full_attention"] * 2, "bos_token_id": None, "eos_token_id": None,
        "tie_word_embeddings": False,
    }  # fmt: skip
    vision = {
        "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "image_size": 28, "patch_size": 14,
    }  # fmt: skip
    tokens = {"image_token_index": 61, "boi_token_index": 62, "eoi_token_index": 63, "mm_tokens_per_image": 4}
    config = Gemma3Config(text_config=text, vision_config=vision, tie_word_embeddings=False, **tokens)
    return lively(Gemma3ForConditionalGeneration(config))


@pytest.mark.parametrize(("length", "count"), [(100, 40), (250, 20), pytest.param(1910, 138, marks=pytest.mark.slow)])
def test_a_module_with_masks_of_its_own_is_never_shown_keys_beyond_them(length, count):
    """GPT-Neo cuts its masks out of a buffer by the number of keys: the cache's capacity must not show."""
    neo = gpt_neo()
    prompt = [(11 * place * place + place) % VOCABULARY for place in range(length)]
    model = LanguageModel(neo)
    expected = generated(neo, prompt, count)
    assert len(set(expected)) > 4
    assert written(model, prompt, count) == expected
    assert written(model, prompt, count, "prompt-lookup") == expected


def test_a_module_with_masks_of_its_own_refuses_a_tree_and_exits_early():
    model = LanguageModel(gpt_neo())
    assert model.info.execution == "plain, own masks"
    with model.open(16) as context, pytest.raises(ContextError, match="cannot read a tree .* writes a chain"):
        context.forward([1, 2], parents=[-1, -1])
    with model.open(16) as ours, model.first_layers(4).open(16) as whole, model.first_layers(2).open(16) as half:
        expected = ours.forward(PROMPT[:16])
        assert torch.equal(whole.forward(PROMPT[:16]), expected)
        assert not torch.allclose(half.forward(PROMPT[:16]), expected, atol=1e-2)


def test_a_table_of_positional_biases_is_never_asked_beyond_its_last_position():
    """MPT adds a bias from a buffer as long as its context; a cache has room for more."""
    config = MptConfig(d_model=32, n_heads=4, n_layers=2, max_seq_len=40, vocab_size=VOCABULARY, eos_token_id=None)
    mpt = lively(AutoModelForCausalLM.from_config(config))
    assert written(LanguageModel(mpt), PROMPT, 10) == generated(mpt, PROMPT, 10)


def test_attention_sinks_are_kept_with_every_draft():
    oss = gpt_oss()
    model = LanguageModel(oss)
    expected = generated(oss, PROMPT, 24)
    assert len(set(expected)) > 5
    for name, strategy in every_draft(model, {"same": model}):
        settings = Settings(k=4, max_new_tokens=24, telemetry=False)
        found = [token.id for each in decode(model, strategy, PROMPT, settings) for token in each.kept]
        assert found == expected, name
    with model.open(32) as ours, model.first_layers(4).open(32) as exits:
        assert torch.allclose(ours.forward(PROMPT), exits.forward(PROMPT), atol=1e-4)


def with_adapter_by_hand(model):
    """Low-rank terms beside two projections, as PEFT injects them: the names of the weights stay."""

    class Adapted(nn.Linear):
        def forward(self, rows):
            return super().forward(rows) + rows @ self.down.T @ self.up.T

    for layer in model.model.layers:
        for name in ("q_proj", "v_proj"):
            part = getattr(layer.self_attn, name)
            part.__class__ = Adapted
            part.down = nn.Parameter(0.5 * torch.randn(4, part.in_features).to(part.weight))
            part.up = nn.Parameter(0.5 * torch.randn(part.out_features, 4).to(part.weight))
    return model


def with_peft_adapter(model):
    peft = pytest.importorskip("peft")
    torch.manual_seed(3)
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    return peft.inject_adapter_in_model(config, model)


def in_peft_wrapper(model):
    peft = pytest.importorskip("peft")
    torch.manual_seed(3)
    return peft.get_peft_model(
        model, peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    )


def with_hook(model):
    model.model.layers[1].mlp.register_forward_hook(lambda part, given, made: made * 1.5)
    return model


def with_parametrisation(model):
    class Half(nn.Module):
        def forward(self, weight):
            return weight * 0.5

    nn.utils.parametrize.register_parametrization(model.model.layers[0].mlp.down_proj, "weight", Half())
    return model


def with_forward_of_its_own(model):
    part = model.model.layers[0].mlp
    plain = part.forward
    part.forward = lambda rows: plain(rows) * 0.5
    return model


CHANGES = [
    with_adapter_by_hand, with_peft_adapter, in_peft_wrapper, with_hook, with_parametrisation, with_forward_of_its_own,
]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_put_into_a_module_takes_part(change, dtype):
    bare = module().to(dtype)
    changed = change(module().to(dtype)).eval()
    with torch.inference_mode():
        expected = changed(input_ids=torch.tensor([PROMPT])).logits[0].float()
        before = bare(input_ids=torch.tensor([PROMPT])).logits[0].float()
    model = LanguageModel(changed)
    assert model.info.execution == "plain"
    with model.open(32) as context:
        found = context.forward(PROMPT).float()
    assert (found - expected).norm() < 0.05 * (before - expected).norm()
    with pytest.raises(LoadError, match="int4 weights are not built"):
        LanguageModel(changed, weights="int4")


def test_a_prompt_that_an_adapter_puts_before_the_text_is_refused():
    """Virtual tokens are not in the transformers model inside, so that model is another one."""
    peft = pytest.importorskip("peft")
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4)
    with pytest.raises(LoadError, match="its logits are .* off those of its"):
        LanguageModel(peft.get_peft_model(module(), config))


def test_only_exact_classes_are_native():
    assert is_native(module()) and is_native(module("qwen2")) and is_native(module("mistral, window 8"))
    assert not is_native(module("gpt2"))

    class Louder(type(module())):
        pass

    subclass = module()
    subclass.__class__ = Louder
    mixed = module()
    mixed.model.norm.to(torch.float64)
    scaled = module()
    scaled.model.layers[1].self_attn.scaling *= 2
    assert not any(is_native(each) for each in (subclass, mixed, scaled))


def test_a_scale_that_one_layer_has_alone_is_kept():
    changed = module()
    changed.model.layers[1].self_attn.scaling *= 2
    assert written(LanguageModel(changed), PROMPT, 20) == generated(changed, PROMPT, 20)


def test_a_multimodal_model_runs_its_text_part():
    gemma = gemma3()
    model = LanguageModel(gemma)
    assert (model.context_length, model.layers, model.vocabulary) == (128, 4, VOCABULARY)
    expected = generated(gemma, PROMPT, 30)
    assert len(set(expected)) > 5
    for draft in ("none", "prompt-lookup", "cascade"):
        assert written(model, PROMPT, 30, draft) == expected
    with model.open(32) as ours, model.first_layers(4).open(32) as exits:
        assert torch.allclose(ours.forward(PROMPT), exits.forward(PROMPT), atol=1e-4)


@pytest.mark.parametrize(("wrong", "window"), [(4, 8), (12, 8), (None, 8), (20, 40)])
def test_a_wrong_window_does_not_pass(wrong, window, monkeypatch):
    """The text is longer than the window, so a window that is too narrow, too wide or missing shows."""
    from specviz.models import native, plain

    for place in (native, plain):
        monkeypatch.setattr(place, "sliding_window", lambda config: wrong)
    given = module("mistral, window 8", sliding_window=window)
    model = LanguageModel(given)
    assert model.info.execution == "plain, own masks"  # where the module makes its masks itself
    assert written(model, PROMPT, 20) == generated(given, PROMPT, 20)
    with pytest.raises(LayoutError, match="cannot run natively"):
        LanguageModel(given, owned=True)


def test_a_window_too_long_to_be_read_is_named(monkeypatch):
    from specviz.models import reference

    given = module("mistral, window 8", sliding_window=100)
    assert LanguageModel(given).note is None
    monkeypatch.setattr(reference, "_WORK", {"cpu": 0})
    assert "24 tokens; its attention window of 100 tokens is longer" in LanguageModel(given).note


def test_the_reference_is_the_given_modules_own_and_leaves_it_as_it_was():
    given = module("gpt2", attn_pdrop=0.5).train()
    reference = read_reference(given, 256, "gpt2")
    assert all(part.training for part in given.modules())
    with torch.inference_mode():
        expected = given.eval()(input_ids=reference.ids[None]).logits[0, -len(reference.logits) :]
    assert torch.allclose(reference.logits, expected, atol=1e-4)
    assert reference.tolerance < 1e-3


def test_a_model_that_reads_both_ways_is_told_from_one_that_writes():
    facts = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 3}
    config = BertConfig(**facts, num_attention_heads=4, max_position_embeddings=128, pad_token_id=0)
    with pytest.raises(LoadError, match="reads a text in both directions.*is_decoder=True"):
        LanguageModel(lively(AutoModelForCausalLM.from_config(config)))
    config.is_decoder = True
    decoder = lively(AutoModelForCausalLM.from_config(config))
    assert written(LanguageModel(decoder), PROMPT, 20) == generated(decoder, PROMPT, 20)


def test_a_module_whose_generate_is_not_its_forward_pass_is_refused():
    """Moshi's forward pass ignores the window that transformers gives its cache."""
    config = MoshiConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, head_dim=8, ffn_dim=32,
        sliding_window=8, max_position_embeddings=128, audio_vocab_size=32,
    )  # fmt: skip
    with pytest.raises(LoadError, match="over its own cache its logits are"):
        LanguageModel(lively(AutoModelForCausalLM.from_config(config)))


def test_end_tokens_of_a_module_stop_where_generate_stops():
    given = module()
    free = generated(given, PROMPT, 40)
    ends = [free[9], next(token for token in range(VOCABULARY) if token not in free)]
    given.generation_config.eos_token_id = ends
    model = LanguageModel(given)
    stopped = given.generate(torch.tensor([PROMPT]), do_sample=False, max_new_tokens=40, pad_token_id=0)
    assert model.eos_ids == tuple(ends)
    for draft in ("none", "prompt-lookup"):
        assert written(model, PROMPT, 40, draft) == stopped[0, len(PROMPT) :].tolist()


@pytest.mark.parametrize(
    ("value", "ids", "ignored"),
    [
        (None, (), ()),
        (3, (3,), ()),
        ([3, 4, 3], (3, 4), ()),
        ("x", (), ("x",)),
        ([[1]], (), ([1],)),
        (True, (), (True,)),
        ({}, (), ({},)),
        (-1, (), (-1,)),
        (99999, (), (99999,)),
        ([3, 2.0, None], (3,), (2.0, None)),
    ],
)
def test_an_end_token_that_is_no_id_is_ignored_and_named(value, ids, ignored):
    assert read_end_tokens(value, VOCABULARY) == EndTokens(ids, ignored)
    given = module()
    given.generation_config.eos_token_id = value
    model = LanguageModel(given, note="Mine.")
    assert model.eos_ids == ids
    assert ("is ignored" in model.note) == bool(ignored)
    assert model.note.startswith("Mine.")
    assert all(repr(each) in model.note for each in ignored)


def test_layers_that_keep_more_than_keys_and_values_are_refused_in_words():
    from transformers import DeepseekV32Config

    facts = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2}
    config = DeepseekV32Config(**facts, max_position_embeddings=64)
    with torch.device("meta"):
        indexed = AutoModelForCausalLM.from_config(config)
    with pytest.raises(LoadError, match="more than keys and values"):
        LanguageModel(indexed)


def test_a_wide_window_costs_no_more_than_its_text():
    """The text is as long as it must be, and not longer."""
    given = AutoModelForCausalLM.from_config(
        MistralConfig(
            vocab_size=VOCABULARY, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, sliding_window=40, max_position_embeddings=512,
        )
    )  # fmt: skip
    assert len(read_reference(given, 512, "mistral").ids) == 64
    assert standard_ids(LanguageModel(given), PROMPT, max_new_tokens=30) == generated(given, PROMPT, 30)
