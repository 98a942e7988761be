"""A student: a few layers of the target's own kind, trained under the target's embedding and head, which stay frozen.

It starts from the target's first and last layers (Zhou et al. 2024 for distillation, Elhoushi et al. 2024 for what
layers can do alone) and its final norm, and learns the target's own distribution on the tokens of replies.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from specviz.distil.files import draft_facts, write_draft
from specviz.distil.job import Job, Trained, Trial
from specviz.distil.lessons import Batch, Head
from specviz.distil.losses import Score, back_propagate, score
from specviz.distil.training import CURVE_NOTE, Pupil, Recipe, train_pupil
from specviz.distil.training_state import State
from specviz.drafts.student import KIND
from specviz.models.plain import twin_of
from specviz.models.shallow import own_parameters, put, truncate

LAYERS = 2
_BLOCKS = (2, 4)  # values of k that it is raced with


def train_student(job: Job, recipe: Recipe | None = None) -> Trained:
    """Make `student.safetensors` in the job's folder."""
    module = job.teacher.module
    layers = min(LAYERS, int(module.config.num_hidden_layers))

    def write(pupil: Pupil, ids: Tensor | None, state: State) -> Path:
        return write_draft(job, KIND, pupil.weights, ids, state, {"layers": layers})

    recipe = recipe or Recipe(steps=job.steps)
    pupil, ids, state = train_pupil(
        job, KIND, lambda ids: Student(module, layers, ids), recipe, saved=lambda *made: write(*made)
    )
    path = write(pupil, ids, state)
    facts = draft_facts(pupil.weights, ids, state, recipe, path) | {"layers": layers}
    trials = tuple(Trial(KIND, {"weights": str(path)}, k) for k in _BLOCKS)
    return Trained((path,), facts, trials, tuple(state.curve), CURVE_NOTE)


class Student(Pupil):
    """`layers` layers of a target's module and a final norm, float32, and what is shared with the target."""

    kind = KIND

    def __init__(self, module: nn.Module, layers: int, ids: Tensor | None) -> None:
        self.weights = {name: nn.Parameter(weight) for name, weight in start_weights(module, layers).items()}
        self._module = put(truncate(twin_of(module), layers), self.weights)
        self._head = Head(module, ids)

    def learn(self, batch: Batch) -> float:
        states = self._states(batch)
        gradient, total = back_propagate(states, self._head, batch.top_ids, batch.top_probs, 1 / len(states))
        states.backward(gradient)
        return total / len(states)

    @torch.no_grad()
    def examine(self, batch: Batch) -> Score:
        return score(self._states(batch), self._head, batch.top_ids, batch.top_probs)

    def _states(self, batch: Batch) -> Tensor:
        """The last hidden states of the rows that are learnt from: (m, width)."""
        with mixed(self._module):
            states = self._module.base_model(input_ids=batch.ids, use_cache=False).last_hidden_state
        return states.flatten(0, 1)[batch.rows]


def start_weights(module: nn.Module, layers: int) -> dict[str, Tensor]:
    """float32 copies of a module's final norm and of `layers` of its layers, from the first to the last."""
    total = int(module.config.num_hidden_layers)
    places = [round(index * (total - 1) / max(1, layers - 1)) for index in range(layers)]
    known = own_parameters(module)
    names = own_parameters(truncate(twin_of(module), layers))
    return {name: known[_moved(name, places)].detach().float().clone() for name in names}


def mixed(module: nn.Module) -> Any:
    """Products in bfloat16 over float32 weights, where the target runs in it."""
    half = module.get_input_embeddings().weight.dtype is torch.bfloat16
    return torch.autocast(module.device.type, torch.bfloat16, enabled=half)


def _moved(name: str, places: list[int]) -> str:
    """The name of the same weight in the layer of the target that this layer starts from."""
    return re.sub(r"\.(\d+)\.", lambda found: f".{places[int(found[1])]}.", name, count=1)
