"""Train a student: a few layers of the target's own kind, under the target's embedding and head, which stay frozen.

It starts from the target's first and last layers (Zhou et al. 2024 for distillation, Elhoushi et al. 2024 for what
layers can do alone) and its final norm, and learns the target's own distribution on the tokens of replies.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from specviz.distil.job import Job, Trained
from specviz.distil.losses import OutputHead, Score, back_propagate, score
from specviz.distil.trainer import TrainableDraft, TrainingRecipe
from specviz.distil.training import train_draft
from specviz.distil.training_examples import TrainingBatch
from specviz.drafts.student import KIND
from specviz.models.plain import twin_of
from specviz.models.shallow import own_parameters, put, truncate

LAYERS = 2


def train_student(job: Job, recipe: TrainingRecipe | None = None) -> Trained:
    """Make `student.safetensors` in the job's folder."""
    module = job.teacher.module
    layers = min(LAYERS, int(module.config.num_hidden_layers))

    def build(ids: Tensor | None) -> TrainableStudent:
        return TrainableStudent(module, layers, ids)

    return train_draft(job, KIND, build, recipe or TrainingRecipe(steps=job.steps), {"layers": layers})


class TrainableStudent(TrainableDraft):
    """`layers` layers and a final norm in float32, and what it shares with the target's `module`."""

    kind = KIND

    def __init__(self, module: nn.Module, layers: int, ids: Tensor | None) -> None:
        self.weights = {name: nn.Parameter(weight) for name, weight in start_weights(module, layers).items()}
        self._module = put(truncate(twin_of(module), layers), self.weights)
        self._head = OutputHead(module, ids)

    def learn(self, batch: TrainingBatch) -> float:
        states = self._states(batch)
        gradient, total = back_propagate(states, self._head, batch.top_ids, batch.top_probs, 1 / len(states))
        states.backward(gradient)
        return total / len(states)

    @torch.no_grad()
    def examine(self, batch: TrainingBatch) -> Score:
        return score(self._states(batch), self._head, batch.top_ids, batch.top_probs)

    def _states(self, batch: TrainingBatch) -> Tensor:
        """(m, width): the last hidden states at the batch's rows."""
        with mixed_precision(self._module):
            states = self._module.base_model(input_ids=batch.ids, use_cache=False).last_hidden_state
        return states.flatten(0, 1)[batch.rows]


def start_weights(module: nn.Module, layers: int) -> dict[str, Tensor]:
    """float32 copies of a module's final norm and of `layers` of its layers, evenly spaced from first to last."""
    total = int(module.config.num_hidden_layers)
    origins = [round(index * (total - 1) / max(1, layers - 1)) for index in range(layers)]
    known = own_parameters(module)
    names = own_parameters(truncate(twin_of(module), layers))
    return {name: known[_origin_name(name, origins)].detach().float().clone() for name in names}


def mixed_precision(module: nn.Module) -> AbstractContextManager:
    """Run products in bfloat16 over float32 weights if the target runs in bfloat16."""
    half = module.get_input_embeddings().weight.dtype is torch.bfloat16
    return torch.autocast(module.device.type, torch.bfloat16, enabled=half)


def _origin_name(name: str, origins: list[int]) -> str:
    """The name of the same weight in the target's layer that this layer starts from."""
    return re.sub(r"\.(\d+)\.", lambda found: f".{origins[int(found[1])]}.", name, count=1)
