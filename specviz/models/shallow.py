"""Cut a causal LM to a few layers, and give it layers of its own under the shared embedding and head.

Knows transformers' modules and configs; nothing of passes, devices or files.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from specviz.models.config_facts import depth


def truncate(module: nn.Module, count: int) -> nn.Module:
    """Cut the decoder's list of layers, wherever the architecture keeps it, and update every config."""
    total = depth(module.config)
    for owner in module.modules():
        for name, child in owner.named_children():
            if _is_stack(child, total):
                setattr(owner, name, child[:count])
        config = getattr(owner, "config", None)
        if config is not None and getattr(config, "num_hidden_layers", None) == total:
            _cut(config, count)
    return module


def skeleton(config: Any, count: int) -> nn.Module:
    """A module of this architecture with `count` layers on the meta device: its weights take no memory."""
    shallow = copy.deepcopy(config)
    _cut(shallow, count)
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(shallow)


def own_parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """The weights of the layers and the final norm by name: all but the embeddings and the head."""
    total = depth(module.config)
    stacks = [part for part in module.modules() if _is_stack(part, total)]
    inside = {id(weight) for stack in stacks for weight in stack.parameters()}
    head = {id(weight) for weight in module.get_output_embeddings().parameters()}
    return {
        name: weight
        for name, weight in module.named_parameters()
        if id(weight) in inside or (weight.dim() == 1 and id(weight) not in head)
    }


def put(module: nn.Module, weights: Mapping[str, Tensor]) -> nn.Module:
    """Replace the module's parameters of these names by these tensors; the old ones stay unchanged."""
    for name, weight in weights.items():
        owner, _, leaf = name.rpartition(".")
        part = weight if isinstance(weight, nn.Parameter) else nn.Parameter(weight, requires_grad=False)
        setattr(module.get_submodule(owner), leaf, part)
    return module


def _is_stack(part: nn.Module, total: int) -> bool:
    return isinstance(part, nn.ModuleList) and len(part) == total


def _cut(config: Any, count: int) -> None:
    config.num_hidden_layers = count
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:count]
