"""Train a feature head: one layer on the target's last hidden states, under the target's embedding and head.

It learns to predict the next hidden state and, through the target's head, the target's own distribution (EAGLE, Li et
al. 2024). Inside a block the head reads its own predictions, so it is trained on them too: each depth continues from
the states of the one before, and sees what it will see when it drafts (training-time test, EAGLE-3, Li et al. 2025).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import DynamicCache

from specviz.distil.job import Job, Trained
from specviz.distil.losses import EMPTY_SCORE, OutputHead, Score, back_propagate, score
from specviz.distil.student_training import mixed_precision
from specviz.distil.trainer import TrainableDraft, TrainingRecipe
from specviz.distil.training import train_draft
from specviz.distil.training_examples import TrainingBatch
from specviz.drafting.feature_pass import FEATURE_NORM, FUSE, TOKEN_NORM, HeadShape
from specviz.drafts.feature_head import KIND
from specviz.models.native import rms_norm
from specviz.models.shallow import own_parameters, put

DEPTHS = 3
_DEPTH_DECAY = 0.8  # weight of a depth relative to the one before
_REGRESSION_WEIGHT = 0.1  # of the distance between hidden states, relative to the cross-entropy


def train_feature_head(job: Job, recipe: TrainingRecipe | None = None) -> Trained:
    """Make `feature-head.safetensors` in the job's folder."""
    module = job.teacher.module
    torch.manual_seed(job.seed)  # for weights that do not start from the target's
    shape = HeadShape.of(module.config, OutputHead(module, None).weight.shape[1], job.teacher.context_length)

    def build(ids: Tensor | None) -> TrainableFeatureHead:
        return TrainableFeatureHead(module, shape, ids)

    recipe = recipe or TrainingRecipe(steps=job.steps)
    trained = train_draft(job, KIND, build, recipe, {"shape": shape.facts}, features=True)
    return replace(trained, facts={**trained.facts, "depths": DEPTHS})


class TrainableFeatureHead(TrainableDraft):
    """One layer in float32, started from the target's first layer where the weights fit."""

    kind = KIND

    def __init__(self, module: nn.Module, shape: HeadShape, ids: Tensor | None) -> None:
        self._shape, self._target, self._head = shape, module, OutputHead(module, ids)
        layer = shape.module().to(module.device)
        self.weights = {name: nn.Parameter(weight) for name, weight in _start_weights(module, layer, shape).items()}
        own = {name: weight for name, weight in self.weights.items() if name in own_parameters(layer)}
        self._layer = put(layer, own).model

    def learn(self, batch: TrainingBatch) -> float:
        """Learn all depths at once: the sum of their losses, deeper ones weighing less."""
        loss, truth = torch.zeros((), device=batch.ids.device), self._rows(batch.features, batch)
        mean = 0.0
        for depth, states in enumerate(self._depths(batch)):
            states, weight = self._rows(states, batch), _DEPTH_DECAY**depth
            gradient, total = back_propagate(states, self._head, batch.top_ids, batch.top_probs, weight / len(states))
            distance = functional.smooth_l1_loss(states.float(), truth)
            # (states * gradient) has the known gradient of the cross-entropy, and passes it on to what made the states
            loss = loss + (states * gradient).sum() + weight * _REGRESSION_WEIGHT * distance
            mean += weight * total / len(states)
        loss.backward()
        return mean

    @torch.no_grad()
    def examine(self, batch: TrainingBatch) -> Score:
        """The cross-entropy of the first depth, and the first choices at each depth."""
        scores = [
            score(self._rows(states, batch), self._head, batch.top_ids, batch.top_probs)
            for states in self._depths(batch)
        ]
        if not scores[0].rows:
            return EMPTY_SCORE
        return Score(scores[0].cross_entropy, tuple(one.matches[0] for one in scores), scores[0].rows)

    def _depths(self, batch: TrainingBatch) -> Iterator[Tensor]:
        """The states (b, t, width) of each depth; at depth d the last d features of a row are the head's own."""
        length = batch.ids.shape[1]
        positions = torch.arange(length, device=batch.ids.device)[None]
        tokens = self._normed(self._target.get_input_embeddings()(batch.ids), TOKEN_NORM)
        before, cache = _shifted(batch.features), DynamicCache()
        for depth in range(DEPTHS):
            with mixed_precision(self._target):
                rows = functional.linear(
                    torch.cat([self._normed(before, FEATURE_NORM), tokens], -1), self.weights[FUSE]
                )
                states = self._layer(
                    inputs_embeds=rows,
                    attention_mask=visible(length, depth).to(rows.device),
                    position_ids=positions,
                    cache=cache,
                    use_cache=True,
                ).last_hidden_state
            yield states
            before = _shifted(states)

    def _normed(self, states: Tensor, name: str) -> Tensor:
        return rms_norm(states.float(), self.weights[name], self._shape.epsilon)

    @staticmethod
    def _rows(states: Tensor, batch: TrainingBatch) -> Tensor:
        return states.flatten(0, 1)[batch.rows].float()


def visible(length: int, depth: int) -> Tensor:
    """(1, 1, t, (depth + 1) * t) bool: which keys of depths 0 to `depth`, in this order, row t sees.

    Of depth 0, whose features are the target's, the rows up to t - depth; of depth i the row t - depth + i alone. That
    is what the cache holds once the head has drafted `depth` tokens.
    """
    rows, columns = torch.arange(length)[:, None], torch.arange(length)[None]
    first = columns <= rows - depth
    later = [columns == rows - depth + step for step in range(1, depth + 1)]
    return torch.cat([first, *later], -1)[None, None]


def _shifted(states: Tensor) -> Tensor:
    """(b, t, width): the state before each position, zeros before the first."""
    return functional.pad(states[:, :-1], (0, 0, 1, 0))


def _start_weights(module: nn.Module, layer: nn.Module, shape: HeadShape) -> dict[str, Tensor]:
    """Initial float32 weights: the target's first layer and final norm where they fit, else random ones.

    The norms scale both inputs to the size of the embeddings that the first layer was trained on.
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
