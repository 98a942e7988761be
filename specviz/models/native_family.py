"""Whether a module is exactly what the native passes stand for, part by part.

A subclass, an adapter, a hook, a parametrisation or a quantised layer may compute something else under the same names,
so any of them makes a module run by transformers' own forward instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from torch import nn
from torch.nn.modules.activation import SiLU
from transformers.activations import SiLUActivation
from transformers.models.llama import modeling_llama as llama
from transformers.models.mistral import modeling_mistral as mistral
from transformers.models.qwen2 import modeling_qwen2 as qwen2
from transformers.models.qwen3 import modeling_qwen3 as qwen3

_CAUSAL = (llama.LlamaForCausalLM, mistral.MistralForCausalLM, qwen2.Qwen2ForCausalLM, qwen3.Qwen3ForCausalLM)
_ACTIVATIONS = (SiLU, SiLUActivation)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")


def is_native(module: nn.Module) -> bool:
    """Whether every part is exactly the class that the native passes write out, untouched, in one dtype and place."""
    if type(module) not in _CAUSAL:
        return False
    known = {*_classes(type(module)), nn.Linear, nn.Embedding, nn.ModuleList, *_ACTIVATIONS}
    parts = list(module.modules())
    return (
        all(type(part) in known and _is_untouched(part) for part in parts)
        and len({(weight.dtype, weight.device) for weight in module.parameters()}) == 1
        and all(type(weight) is nn.Parameter for weight in module.parameters())
        and _layers_are_alike(module)
    )


def _classes(causal: type[nn.Module]) -> Iterator[type[nn.Module]]:
    """The module classes of the architecture's own file."""
    home = inspect.getmodule(causal)
    return (kind for kind in vars(home).values() if inspect.isclass(kind) and kind.__module__ == home.__name__)


def _is_untouched(part: nn.Module) -> bool:
    """Whether a part runs its class's own forward, with nothing hooked to it and no weight of another kind."""
    forward = inspect.unwrap(type(part).forward)
    return (
        "forward" not in vars(part)
        and forward.__module__ in {kind.__module__ for kind in type(part).__mro__}
        and not any(getattr(part, hooks) for hooks in _HOOKS)
        and not (isinstance(part, nn.Embedding) and part.max_norm is not None)
    )


def _layers_are_alike(module: nn.Module) -> bool:
    """Whether what the native passes read once (scales, widths, epsilons) is the same in every layer, and SiLU."""
    layers, final = module.model.layers, module.model.norm
    return (
        len({(layer.self_attn.head_dim, layer.self_attn.scaling) for layer in layers}) == 1
        and {part.variance_epsilon for part in module.modules() if hasattr(part, "variance_epsilon")}
        == {final.variance_epsilon}
        and all(type(layer.mlp.act_fn) in _ACTIVATIONS for layer in layers)
    )
