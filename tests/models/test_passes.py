"""Every way of running a pass gives the same tokens: native, plain, fixed widths, int4 against itself, strict."""

import pytest
import torch
import transformers
from support.tiny import WIDE, every_draft, fixed, ids_of, module, perturbed, rounds_of, standard_ids, target
from torch import nn

from specviz import LanguageModel, make_draft
from specviz.core.errors import LoadError
from specviz.models.fixed_width import WIDTHS, next_width
from specviz.models.kv_cache import KVCache
from specviz.models.linear import Int4Linear, PlainLinear, ReorderedLinear, quantise
from specviz.models.strict import same_bits_everywhere

PROMPT = [5, 9, 7, 5, 9, 3]
NEW = 24


@pytest.fixture(scope="module")
def fixed_models():
    return (fixed(LanguageModel(module(), None)), fixed(LanguageModel(perturbed(module()), None)))


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "mistral, window 8"])
def test_native_and_plain_passes_agree(architecture):
    native, plain = target(architecture), LanguageModel(module(architecture), None, weights="plain")
    assert (native.executor.path, plain.executor.path) == ("native", "plain")
    ids = list(range(1, 30))
    with native.open(64) as ours, plain.open(64) as theirs:
        assert torch.allclose(ours.forward(ids), theirs.forward(ids), atol=1e-3)
    assert native.parameters == plain.parameters == sum(p.numel() for p in module(architecture).parameters())


def test_qwen3_norms_of_queries_and_keys_are_native():
    config = transformers.Qwen3Config(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=128, initializer_range=0.4,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for layer in model.model.layers:
        nn.init.normal_(layer.self_attn.q_norm.weight)
    ours = LanguageModel(model, None)
    expected = model.generate(torch.tensor([PROMPT]), max_new_tokens=NEW, do_sample=False, pad_token_id=0)
    assert ours.executor.path == "native"
    assert standard_ids(ours, PROMPT, max_new_tokens=NEW) == expected[0, len(PROMPT) :].tolist()


def test_an_unknown_architecture_runs_plain_and_says_so():
    assert target("gpt2").info.execution == "plain"
    assert target("llama").info.execution == "native"


def test_a_module_given_away_is_emptied_and_one_that_is_not_stays_whole():
    kept, given = module(), module()
    before = {name: weight.clone() for name, weight in kept.named_parameters()}
    LanguageModel(kept, None)
    assert all(torch.equal(weight, before[name]) for name, weight in kept.named_parameters())
    ours = LanguageModel(given, None, owned=True)
    assert given.model.layers[0].mlp.down_proj.weight is None
    assert standard_ids(ours, PROMPT, max_new_tokens=NEW) == standard_ids(target(), PROMPT, max_new_tokens=NEW)


def test_widths_are_padded_to_the_next():
    assert [next_width(rows) for rows in (1, 2, 4, 6, 9, 10, 64, 65, 66)] == [1, 2, 5, 9, 9, 17, 65, 65, None]


@pytest.mark.parametrize("k", [1, 2, 5, 16, 40])
def test_fixed_widths_change_no_token(fixed_models, k):
    model, draft = fixed_models
    new = NEW if k < 16 else 10  # a round costs as much as its k
    expected = standard_ids(target(), PROMPT, max_new_tokens=new)
    for name, strategy in every_draft(model, {"perturbed": draft, "same": model}):
        rounds = rounds_of(model, strategy, PROMPT, k=k, max_new_tokens=new, telemetry=False)
        assert ids_of(rounds) == expected, name


def test_fixed_widths_are_prepared_before_the_clock_and_survive_a_run(fixed_models):
    model, _ = fixed_models
    with model.open(40) as context:
        context.prepare(4)
        cache = context._live()
        assert set(cache.passes) >= {width for width in WIDTHS if width <= 5}
        prepared = dict(cache.passes)
    with model.open(40) as again:
        assert again._live().passes.items() >= prepared.items()


def test_a_captured_buffer_is_never_handed_out_twice(fixed_models):
    """Two passes of one width must not share their logits: the first would change under its reader."""
    model, _ = fixed_models
    with model.open(40) as context:
        first = context.forward([3])
        copy = first.clone()
        context.forward([4])
        assert torch.equal(first, copy)


def test_drafting_never_waits_for_the_device(fixed_models, monkeypatch):
    """On an accelerator each of these would stop the host until the device is idle."""
    model, draft = fixed_models
    strategy = make_draft("draft-model", model, draft_model=draft)
    for settings in ({"temperature": 0.0}, {"temperature": 0.8, "repetition_penalty": 1.2, "top_k": 9}):
        _forbid_reads_while_drafting(monkeypatch)
        rounds = rounds_of(model, strategy, PROMPT, k=5, max_new_tokens=NEW, **settings)
        assert all(each.draft_passes == each.drafted for each in rounds)
        monkeypatch.undo()


def _forbid_reads_while_drafting(monkeypatch):
    from specviz.drafting.model_drafter import ModelDrafter

    propose, reads = ModelDrafter.propose, ("item", "tolist", "__bool__", "__int__", "__float__", "__index__", "numpy")

    def watched(self, k):
        with pytest.MonkeyPatch.context() as patch:
            for name in reads:
                patch.setattr(torch.Tensor, name, _refuse(name))
            return propose(self, k)

    monkeypatch.setattr(ModelDrafter, "propose", watched)


def _refuse(name):
    def read(*_, **__):
        raise AssertionError(f"Tensor.{name} was called while drafting")

    return read


def test_reordered_weights_give_the_same_product():
    weight, bias, rows = torch.randn(96, 64), torch.randn(96), torch.randn(5, 64)
    assert torch.allclose(ReorderedLinear(weight, bias)(rows), PlainLinear(weight, bias)(rows), atol=1e-4)


def restored(codes, scales):
    """The weight that codes and scales stand for, and the size of one step of it: (out, in) each."""
    scale, zero = (part.transpose(0, 1)[..., None] for part in scales.float().unbind(-1))
    groups = codes.unflatten(-1, (-1, 32))
    return ((groups - 8) * scale + zero).flatten(-2), scale.expand(groups.shape).flatten(-2)


def test_int4_codes_are_within_half_a_step_of_the_weight():
    weight = torch.randn(64, 96, generator=torch.Generator().manual_seed(0))
    codes, scales = quantise(weight)
    assert codes.min() == 0 and codes.max() == 15 and scales.shape == (3, 64, 2)
    rounded, step = restored(codes, scales)
    # half a step, and what bfloat16 takes from scale and zero
    assert ((rounded - weight).abs() <= 0.6 * step).all()


def test_int4_product_is_that_of_the_rounded_weight():
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(128, 64, generator=generator)
    rows = torch.randn(5, 64, generator=generator).bfloat16()
    expected = rows.float() @ restored(*quantise(weight))[0].T
    found = Int4Linear(weight, None)(rows).float()
    assert (found - expected).norm() / expected.norm() < 0.01


def test_int4_lanes_agree_and_the_model_says_what_it_is():
    model = LanguageModel(module(**WIDE).bfloat16(), None, weights="int4")
    assert model.info.execution == "native int4"
    assert model.info.bytes < LanguageModel(module(**WIDE).bfloat16(), None).info.bytes
    assert len(model.pad(torch.zeros(1, dtype=torch.long))) == 1  # an int4 pass is never padded to two rows


@pytest.mark.parametrize(
    ("model", "says"), [(module("gpt2"), "not built for 'gpt2'"), (module(), "do not suit torch's int4 kernel")]
)
def test_int4_is_refused_in_words_where_it_cannot_be_had(model, says):
    with pytest.raises(LoadError, match=says):
        LanguageModel(model, None, weights="int4")


def test_strict_passes_have_one_width_and_change_no_token(monkeypatch):
    widths = set()
    model = LanguageModel(module(**WIDE).bfloat16(), None, strict=True)
    run = model.executor.run
    monkeypatch.setattr(model.executor, "run", lambda ids, *rest: (widths.add(len(ids)), run(ids, *rest))[1])
    expected = standard_ids(model, [5], max_new_tokens=NEW)
    for k in (1, 5, 12):
        strategy = make_draft("prompt-lookup", model)
        assert ids_of(rounds_of(model, strategy, [5], k=k, max_new_tokens=NEW)) == expected
    assert widths == {model.strict_width}
    assert f"every pass runs {model.strict_width} rows" in model.info.note


def test_the_strict_self_test_fails_where_a_row_depends_on_its_place():
    model = LanguageModel(module(), None)
    run = model.executor.run

    def uneven(ids, start, cache, rows=0, hidden=False):
        logits = run(ids, start, cache, rows, hidden)
        return logits + 1e-6 * torch.arange(len(logits))[:, None]

    model.executor.run = uneven
    model.strict_width = 8
    assert not same_bits_everywhere(model, 8)
    model.executor.run = run
    with pytest.raises(LoadError, match="Strict numerics are not possible"):
        _always_uneven(module())


def _always_uneven(given):
    from specviz.models import strict

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict, "same_bits_everywhere", lambda *_: False)
        LanguageModel(given, None, strict=True)


def test_bfloat16_steps_and_verify_passes_have_the_same_bits():
    """On a CPU, at even widths: the standard lane's logits are those of any verify pass."""
    model = LanguageModel(module(**WIDE).bfloat16(), None)
    ids = torch.arange(60) * 7 % 64
    with model.open(64) as context:
        steps = torch.cat([context.forward(token[None]) for token in ids])
        for width in (2, 3, 5, 9, 12):
            context.rewind(context.length)
            wide = torch.cat([context.forward(part) for part in ids.split(width)])
            assert torch.equal(wide, steps), width


def test_a_cache_that_no_pass_has_filled_holds_zeros_only():
    cache = KVCache(1, 8)
    ones = torch.ones(1, 2, 1, 4)
    keys, _ = cache.write(0, ones, ones, torch.tensor([3]))
    assert keys.sum() == 8 and torch.equal(keys[:, :, 3], ones[:, :, 0])
