"""The training loop of a neural draft: steps over training examples, saved so that a kill loses a minute at most.

The draft learns the target's own distribution at each token of a reply (soft targets, Hinton et al. 2015), since its
acceptance depends on it. The order of the batches depends on the seed and the epoch alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from specviz.distil.job import Job
from specviz.distil.losses import EMPTY_SCORE, Score
from specviz.distil.training_examples import TrainingBatch, TrainingExamples, batches
from specviz.distil.training_state import TrainingState, damaged, save_checkpoint

_SAVE_SECONDS = 60.0
_CURVE_STEP = 0.05  # of the whole training, between two points of the curve
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


@dataclass(frozen=True, slots=True)
class TrainingRecipe:
    """How a draft is trained. The learning rate warms up, then falls to 0 as half a cosine.

    `steps` None: as many as the time allows. `warm_up` is a share of the training, `decay` the weight decay, `clip` the
    largest norm of a gradient.
    """

    batch_tokens: int = 2048
    learning_rate: float = 2e-3
    warm_up: float = 0.02
    decay: float = 0.01
    clip: float = 1.0
    steps: int | None = None


class TrainableDraft(Protocol):
    """A draft in training."""

    kind: str
    weights: dict[str, nn.Parameter]  # float32; what the optimiser changes

    def learn(self, batch: TrainingBatch) -> float:
        """Add the gradients of a batch; returns its mean loss."""

    def examine(self, batch: TrainingBatch) -> Score:
        """Compare the draft's predictions with the target's."""


class Trainer:
    """Trains a draft on `examples` and examines it on `held_out`. Its checkpoints keep the `fixed` tensors too."""

    def __init__(
        self,
        draft: TrainableDraft,
        examples: TrainingExamples,
        held_out: TrainingExamples,
        job: Job,
        recipe: TrainingRecipe,
        fixed: Mapping[str, Tensor],
    ) -> None:
        self._draft, self._examples, self._held_out, self._job, self._recipe = draft, examples, held_out, job, recipe
        self._fixed = fixed
        self._optimiser = torch.optim.AdamW(
            draft.weights.values(), lr=recipe.learning_rate, betas=(0.9, 0.95), weight_decay=recipe.decay
        )
        self.state = TrainingState(count=len(examples))
        self._began = time.monotonic()
        self._key: tuple[int, ...] = ()
        self._order: list[list[int]] = []

    def resume(self, tensors: Mapping[str, Tensor], state: TrainingState) -> None:
        """Continue from the checkpoint of a killed run. Raises InputError where it lacks a weight."""
        if not all(_is_complete(name, weight, tensors) for name, weight in self._draft.weights.items()):
            raise damaged(self._job, self._draft.kind)
        self.state = state
        if state.count > len(self._examples):  # examples that are gone
            self.state.place, self.state.count = 0, len(self._examples)
        with torch.no_grad():
            for name, weight in self._draft.weights.items():
                weight.copy_(tensors[f"weight/{name}"])
                if f"exp_avg/{name}" in tensors:
                    self._optimiser.state[weight] = {part: tensors[f"{part}/{name}"] for part in _MOMENTS}

    def count_preparation(self, seconds: float) -> None:
        """Charge the time that the training examples took to the job."""
        self.state.prepared += seconds
        self.state.seconds += seconds

    def run(self, on_save: Callable[[TrainingState], None]) -> TrainingState:
        """Train until the steps are done or the time is over; Ctrl-C saves first. `on_save` follows every save."""
        last = time.monotonic()
        self._began = last - self.state.seconds
        try:
            while self._fraction < 1.0:
                self._examine_if_due()
                self._step()
                if time.monotonic() - last > _SAVE_SECONDS:
                    self._save(on_save)
                    last = time.monotonic()
            self._examine()
        finally:
            self._save(on_save)
        return self.state

    @property
    def _fraction(self) -> float:
        return self._fraction_at(self.state.step, self.state.seconds)

    def _fraction_at(self, steps: float, seconds: float) -> float:
        """The share of the training that these steps are, or these seconds where no number of steps is asked for."""
        if self._recipe.steps:
            return steps / self._recipe.steps
        prepared = self.state.prepared
        return max(0.0, seconds - prepared) / max(1e-9, self._job.seconds - prepared)

    def _step(self) -> None:
        state = self.state
        batch = self._examples.batch(self._batches()[state.place])
        for group in self._optimiser.param_groups:
            group["lr"] = self._recipe.learning_rate * _schedule(self._fraction, self._recipe.warm_up)
        self._optimiser.zero_grad()
        self._draft.learn(batch)
        nn.utils.clip_grad_norm_(self._draft.weights.values(), self._recipe.clip)
        self._optimiser.step()
        state.step, state.place, state.tokens = state.step + 1, state.place + 1, state.tokens + len(batch.rows)
        if state.place == len(self._batches()):
            state.epoch, state.place, state.count = state.epoch + 1, 0, len(self._examples)
        state.seconds = time.monotonic() - self._began

    def _batches(self) -> list[list[int]]:
        """The batches of this epoch, in an order that the seed, the epoch and the number of texts fix."""
        key = (self._job.seed, self.state.epoch, self.state.count)
        if self._key != key:
            self._key = key
            self._order = batches(self._examples.lengths[: key[2]], key[:2], self._recipe.batch_tokens)
        return self._order

    def _examine_if_due(self) -> None:
        curve = self.state.curve
        # measured anew for each row: a longer training may resume a shorter one
        if not curve or self._fraction >= self._fraction_at(curve[-1]["steps"], curve[-1]["seconds"]) + _CURVE_STEP:
            self._examine()

    def _examine(self) -> None:
        """Add a row to the curve, and report it."""
        total = EMPTY_SCORE
        for picked in batches(self._held_out.lengths, None, self._recipe.batch_tokens):
            total += self._draft.examine(self._held_out.batch(picked))
        state, rows = self.state, max(1, total.rows)
        row = {
            "steps": state.step,
            "seconds": round(state.seconds, 1),
            "trained_tokens": state.tokens,
            "cross_entropy": round(total.cross_entropy / rows, 4),
            **{f"alpha_{depth}": round(count / rows, 4) for depth, count in enumerate(total.matches, 1)},
        }
        if not state.curve or state.curve[-1]["trained_tokens"] != state.tokens:
            state.curve.append(row)
        self._job.progress(
            min(1.0, self._fraction),
            f"Training the {self._draft.kind}: {state.tokens:,} tokens, held-out cross-entropy "
            f"{row['cross_entropy']:.3f}, first choice right {row.get('alpha_1', 0.0):.1%}",
        )

    def _save(self, on_save: Callable[[TrainingState], None]) -> None:
        moments = self._optimiser.state
        tensors = {f"fixed/{name}": value for name, value in self._fixed.items()}
        for name, weight in self._draft.weights.items():
            tensors[f"weight/{name}"] = weight.detach()
            if weight in moments:
                tensors |= {f"{part}/{name}": moments[weight][part] for part in _MOMENTS}
        save_checkpoint(self._job, self._draft.kind, tensors, self.state)
        on_save(self.state)


def _is_complete(name: str, weight: Tensor, tensors: Mapping[str, Tensor]) -> bool:
    """Whether a checkpoint holds this weight, and either all of its moments or none."""
    shapes = {f"weight/{name}": weight.shape}
    moments = {f"{part}/{name}": torch.Size() if part == "step" else weight.shape for part in _MOMENTS}
    if moments.keys() & tensors.keys():
        shapes |= moments
    return all(one in tensors and tensors[one].shape == shape for one, shape in shapes.items())


def _schedule(fraction: float, warm_up: float) -> float:
    """The share of the learning rate at this fraction of the training."""
    rising = (fraction + 1e-3) / warm_up if warm_up else 1.0
    return min(1.0, rising, 0.5 + 0.5 * math.cos(math.pi * min(1.0, fraction)))
