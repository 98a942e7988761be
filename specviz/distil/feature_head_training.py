"""A feature head in training: one layer on the target's last hidden states, under its embedding and head.

It learns to give the next hidden state and, through the target's head, the target's own distribution (EAGLE, Li et al.
2024). Inside a block the head reads its own guesses, so it is trained on them too: each depth goes on from the states
of the one before, and sees what it will see when it drafts (training-time test, EAGLE-3, Li et al. 2025).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import DynamicCache

from specviz.distil.files import draft_facts, write_draft
from specviz.distil.job import Job, Trained, Trial
from specviz.distil.lessons import Batch, Head
from specviz.distil.losses import NOTHING, Score, back_propagate, score
from specviz.distil.student_training import mixed
from specviz.distil.training import CURVE_NOTE, Pupil, Recipe, train_pupil
from specviz.distil.training_state import State
from specviz.drafting.feature_pass import FEATURE_NORM, FUSE, TOKEN_NORM, HeadShape
from specviz.drafts.feature_head import KIND
from specviz.models.native import rms_norm
from specviz.models.shallow import own_parameters, put

DEPTHS = 3
_FADING = 0.8  # what a depth weighs of the one before
_REGRESSION = 0.1  # what the distance of the hidden states weighs beside the cross-entropy
_BLOCKS = (2, 4)  # values of k that it is raced with


def train_feature_head(job: Job, recipe: Recipe | None = None) -> Trained:
    """Make `feature-head.safetensors` in the job's folder."""
    module = job.teacher.module
    torch.manual_seed(job.seed)  # for what the layer does not take from the target
    shape = HeadShape.of(module.config, Head(module, None).weight.shape[1], job.teacher.context_length)

    def write(pupil: Pupil, ids: Tensor | None, state: State) -> Path:
        return write_draft(job, KIND, pupil.weights, ids, state, {"shape": shape.facts})

    recipe = recipe or Recipe(steps=job.steps)
    pupil, ids, state = train_pupil(
        job, KIND, lambda ids: FeatureHead(module, shape, ids), recipe, True, lambda *made: write(*made)
    )
    path = write(pupil, ids, state)
    facts = draft_facts(pupil.weights, ids, state, recipe, path) | {"shape": shape.facts, "depths": DEPTHS}
    trials = tuple(Trial(KIND, {"weights": str(path)}, k) for k in _BLOCKS)
    return Trained((path,), facts, trials, tuple(state.curve), CURVE_NOTE)


class FeatureHead(Pupil):
    """One layer, float32, started from the target's first where that is of the same make."""

    kind = KIND

    def __init__(self, module: nn.Module, shape: HeadShape, ids: Tensor | None) -> None:
        self._shape, self._target, self._head = shape, module, Head(module, ids)
        layer = shape.module().to(module.device)
        self.weights = {name: nn.Parameter(weight) for name, weight in _start(module, layer, shape).items()}
        own = {name: weight for name, weight in self.weights.items() if name in own_parameters(layer)}
        self._layer = put(layer, own).model

    def learn(self, batch: Batch) -> float:
        """All depths at once: the sum of their losses, deeper ones weighing less."""
        loss, truth = torch.zeros((), device=batch.ids.device), self._rows(batch.features, batch)
        whole = 0.0
        for depth, states in enumerate(self._depths(batch)):
            states, weight = self._rows(states, batch), _FADING**depth
            gradient, total = back_propagate(states, self._head, batch.top_ids, batch.top_probs, weight / len(states))
            distance = functional.smooth_l1_loss(states.float(), truth)
            # the gradient of the cross-entropy is known; this gives it to what the states came from
            loss = loss + (states * gradient).sum() + weight * _REGRESSION * distance
            whole += weight * total / len(states)
        loss.backward()
        return whole

    @torch.no_grad()
    def examine(self, batch: Batch) -> Score:
        """Cross-entropy of the first depth, and first choices at each."""
        scores = [
            score(self._rows(states, batch), self._head, batch.top_ids, batch.top_probs)
            for states in self._depths(batch)
        ]
        if not scores[0].rows:
            return NOTHING
        return Score(scores[0].cross_entropy, tuple(one.matches[0] for one in scores), scores[0].rows)

    def _depths(self, batch: Batch) -> Iterator[Tensor]:
        """The states (b, t, width) of each depth; at depth d all of a row's last d features are the head's own."""
        length = batch.ids.shape[1]
        places = torch.arange(length, device=batch.ids.device)[None]
        tokens = self._normed(self._target.get_input_embeddings()(batch.ids), TOKEN_NORM)
        before, cache = _shifted(batch.features), DynamicCache()
        for depth in range(DEPTHS):
            with mixed(self._target):
                rows = functional.linear(
                    torch.cat([self._normed(before, FEATURE_NORM), tokens], -1), self.weights[FUSE]
                )
                states = self._layer(
                    inputs_embeds=rows,
                    attention_mask=visible(length, depth).to(rows.device),
                    position_ids=places,
                    cache=cache,
                    use_cache=True,
                ).last_hidden_state
            yield states
            before = _shifted(states)

    def _normed(self, states: Tensor, name: str) -> Tensor:
        return rms_norm(states.float(), self.weights[name], self._shape.epsilon)

    @staticmethod
    def _rows(states: Tensor, batch: Batch) -> Tensor:
        return states.flatten(0, 1)[batch.rows].float()


def visible(length: int, depth: int) -> Tensor:
    """(1, 1, t, (depth + 1) * t) bool: what row t sees of the keys of each depth so far, one after the other.

    Of depth 0, where features are the target's, the rows up to t - depth; of depth i the one row t - depth + i: what
    lies in the cache when the head has drafted `depth` tokens.
    """
    rows, columns = torch.arange(length)[:, None], torch.arange(length)[None]
    first = columns <= rows - depth
    later = [columns == rows - depth + step for step in range(1, depth + 1)]
    return torch.cat([first, *later], -1)[None, None]


def _shifted(states: Tensor) -> Tensor:
    """The states before each position, zeros before the first: (b, t, width)."""
    return functional.pad(states[:, :-1], (0, 0, 1, 0))


def _start(module: nn.Module, layer: nn.Module, shape: HeadShape) -> dict[str, Tensor]:
    """float32 weights to begin with: the target's first layer and final norm where they fit, else random ones.

    Both inputs begin as large as the embeddings that the first layer knows.
    """
    known, start = own_parameters(module), {}
    for name, weight in own_parameters(layer).items():
        theirs = known.get(name)
        fits = theirs is not None and theirs.shape == weight.shape
        start[name] = (theirs if fits else weight).detach().float().clone()
    size = module.get_input_embeddings().weight.float().square().mean().sqrt()
    norms = {name: size * torch.ones(shape.width, device=module.device) for name in (TOKEN_NORM, FEATURE_NORM)}
    eye = torch.eye(shape.width, device=module.device)
    return {**start, FUSE: torch.cat([eye, eye], -1), **norms}
