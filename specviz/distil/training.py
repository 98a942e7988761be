"""Training a neural draft: steps over a corpus' lessons until the time is over, kept so that a kill loses a minute.

What is trained is a `Pupil`; what it learns is the target's own distribution at each token of a reply (soft targets,
Hinton et al. 2015), which is what a draft's acceptance hangs on. The order of the batches depends on the seed and the
epoch alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy
import torch
from torch import Tensor, nn

from specviz.core.errors import InputError
from specviz.distil.job import NO_REPLIES, Job
from specviz.distil.lessons import Batch, Lessons
from specviz.distil.losses import NOTHING, Score
from specviz.distil.training_state import State, alone_in, damaged, read_checkpoint, save_checkpoint
from specviz.drafting.draft_weights import IDS

_LOTS = 64  # batches that are sorted by length among themselves
_SAVE_SECONDS = 60.0
_CURVE = 0.05  # of the whole, between two points of the curve
CURVE_NOTE = (
    "On held-out replies: the cross-entropy in nats against the target's distribution; alpha i, how often the draft's "
    "i-th token of a block, those before it being the target's, is the target's own first choice."
)
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a draft is trained. `steps` None: as many as the time allows; the learning rate falls to 0 as a cosine."""

    batch_tokens: int = 2048
    learning_rate: float = 2e-3
    warm_up: float = 0.02
    decay: float = 0.01
    clip: float = 1.0
    steps: int | None = None


class Pupil(Protocol):
    """A draft in training."""

    kind: str
    weights: dict[str, nn.Parameter]  # float32; what the optimiser changes

    def learn(self, batch: Batch) -> float:
        """Add up the gradients of a batch; returns its mean loss."""

    def examine(self, batch: Batch) -> Score:
        """How well it guesses what the target says."""


def train_pupil(
    job: Job, kind: str, make: Callable[[Tensor | None], Pupil], recipe: Recipe, features: bool = False,
    saved: Callable[[Pupil, Tensor | None, State], None] = lambda *_: None,
) -> tuple[Pupil, Tensor | None, State]:  # fmt: skip
    """Train the draft that `make` builds for the ids (n,) that it may say, None for all; go on where a kill ended it.

    The job's seconds are for all its runs together; half of what is left goes into lessons at most, unless a number of
    steps says how long the training is. `saved` is called after every checkpoint. Returns the pupil, its ids, and how
    far it came. Raises InputError where there is nothing to learn from, or another run trains in the same folder.
    """
    with alone_in(job):
        began, found = time.monotonic(), read_checkpoint(job, kind)
        left = job.seconds - (found[1].seconds if found else 0.0)
        module, folder = job.teacher.module, job.out / "checkpoint" / f"lessons-{_text_key(job)}"
        lessons = Lessons(folder / "training", module, job.corpus.training(), features)
        held_out = Lessons(folder / "held-out", module, job.corpus.held_out(), features)
        held_out.prepare(math.inf)
        lessons.prepare(math.inf if recipe.steps else began + left / 2, job.progress)
        if not lessons.tokens:
            raise InputError(NO_REPLIES)
        ids = found[0].get(f"fixed/{IDS}") if found else frequent_ids(lessons, job)
        pupil = make(ids)
        training = Training(pupil, lessons, held_out, job, recipe, {} if ids is None else {IDS: ids})
        if found:
            training.resume(*found)
        training.count_preparation(time.monotonic() - began)
        return pupil, ids, training.run(lambda: saved(pupil, ids, training.state))


def frequent_ids(lessons: Lessons, job: Job) -> Tensor | None:
    """The ids (n,) that a draft of a reduced vocabulary says: those that replies hold most often, and all that end one.

    None where every id is wanted; more than were asked for where the special ones alone are more.
    """
    size = job.teacher.vocabulary
    if job.vocabulary is None or job.vocabulary >= size:
        return None
    counts = lessons.frequencies()
    kept = {token for token in (*job.teacher.tokenizer.all_special_ids, *job.teacher.eos_ids) if token < size}
    counts[list(kept)] = counts.sum() + 1
    chosen = numpy.argsort(-counts, kind="stable")[: max(job.vocabulary, len(kept))]
    return torch.from_numpy(numpy.sort(chosen)).to(job.teacher.module.device)


class Training:
    """Train a pupil on `lessons`, examining it on `held_out`. `fixed` tensors are kept in its checkpoint."""

    def __init__(
        self, pupil: Pupil, lessons: Lessons, held_out: Lessons, job: Job, recipe: Recipe, fixed: Mapping[str, Tensor]
    ) -> None:
        self._pupil, self._lessons, self._held_out, self._job, self._recipe = pupil, lessons, held_out, job, recipe
        self._fixed = fixed
        self._optimiser = torch.optim.AdamW(
            pupil.weights.values(), lr=recipe.learning_rate, betas=(0.9, 0.95), weight_decay=recipe.decay
        )
        self.state = State(count=len(lessons))
        self._began = time.monotonic()
        self._key: tuple[int, ...] = ()
        self._order: list[list[int]] = []

    def resume(self, tensors: Mapping[str, Tensor], state: State) -> None:
        """Take over what a killed run left. Raises InputError where a weight of it is missing."""
        if not all(_is_kept(name, weight, tensors) for name, weight in self._pupil.weights.items()):
            raise InputError(damaged(self._job, self._pupil.kind))
        self.state = state
        if state.count > len(self._lessons):  # text that is not there any more
            self.state.place, self.state.count = 0, len(self._lessons)
        with torch.no_grad():
            for name, weight in self._pupil.weights.items():
                weight.copy_(tensors[f"weight/{name}"])
                if f"exp_avg/{name}" in tensors:
                    self._optimiser.state[weight] = {part: tensors[f"{part}/{name}"] for part in _MOMENTS}

    def count_preparation(self, seconds: float) -> None:
        """Of the job's time so much went into lessons."""
        self.state.prepared += seconds
        self.state.seconds += seconds

    def run(self, saved: Callable[[], None]) -> State:
        """Train until the steps are done, or the time is over; what is done when a Ctrl-C comes is kept."""
        last = time.monotonic()
        self._began = last - self.state.seconds
        try:
            while self._fraction < 1.0:
                self._examine_if_due()
                self._step()
                if time.monotonic() - last > _SAVE_SECONDS:
                    self._save()
                    saved()
                    last = time.monotonic()
            self._examine()
        finally:
            self._save()
            saved()
        return self.state

    @property
    def _fraction(self) -> float:
        return self._share(self.state.step, self.state.seconds)

    def _share(self, steps: float, seconds: float) -> float:
        """How much of the whole so many steps are, or seconds where the number of steps is not fixed."""
        if self._recipe.steps:
            return steps / self._recipe.steps
        prepared = self.state.prepared
        return max(0.0, seconds - prepared) / max(1e-9, self._job.seconds - prepared)

    def _step(self) -> None:
        done = self.state
        picked = self._batches()[done.place]
        batch = self._lessons.batch(picked)
        for group in self._optimiser.param_groups:
            group["lr"] = self._recipe.learning_rate * _schedule(self._fraction, self._recipe.warm_up)
        self._optimiser.zero_grad()
        self._pupil.learn(batch)
        nn.utils.clip_grad_norm_(self._pupil.weights.values(), self._recipe.clip)
        self._optimiser.step()
        done.step, done.place, done.tokens = done.step + 1, done.place + 1, done.tokens + len(batch.rows)
        if done.place == len(self._batches()):
            done.epoch, done.place, done.count = done.epoch + 1, 0, len(self._lessons)
        done.seconds = time.monotonic() - self._began

    def _batches(self) -> list[list[int]]:
        """The epoch's batches, each of like lengths, in an order that seed, epoch and number of texts fix."""
        key = (self._job.seed, self.state.epoch, self.state.count)
        if self._key != key:
            self._key, self._order = key, batches(self._lessons.lengths[: key[2]], key[:2], self._recipe.batch_tokens)
        return self._order

    def _examine_if_due(self) -> None:
        curve = self.state.curve
        # a longer training may go on from a shorter one, whose shares were of less
        if not curve or self._fraction >= self._share(curve[-1]["steps"], curve[-1]["seconds"]) + _CURVE:
            self._examine()

    def _examine(self) -> None:
        """Add a row to the curve, and say how things stand."""
        total = NOTHING
        for picked in batches(self._held_out.lengths, None, self._recipe.batch_tokens):
            total += self._pupil.examine(self._held_out.batch(picked))
        done, rows = self.state, max(1, total.rows)
        row = {
            "steps": done.step,
            "seconds": round(done.seconds, 1),
            "trained_tokens": done.tokens,
            "cross_entropy": round(total.cross_entropy / rows, 4),
            **{f"alpha_{depth}": round(count / rows, 4) for depth, count in enumerate(total.matches, 1)},
        }
        if not done.curve or done.curve[-1]["trained_tokens"] != done.tokens:
            done.curve.append(row)
        self._job.progress(
            min(1.0, self._fraction),
            f"Training the {self._pupil.kind}: {done.tokens:,} tokens, held-out cross-entropy "
            f"{row['cross_entropy']:.3f}, first choice right {row.get('alpha_1', 0.0):.1%}",
        )

    def _save(self) -> None:
        moments = self._optimiser.state
        tensors = {f"fixed/{name}": value for name, value in self._fixed.items()}
        for name, weight in self._pupil.weights.items():
            tensors[f"weight/{name}"] = weight.detach()
            if weight in moments:
                tensors |= {f"{part}/{name}": moments[weight][part] for part in _MOMENTS}
        save_checkpoint(self._job, self._pupil.kind, tensors, self.state)


def _is_kept(name: str, weight: Tensor, tensors: Mapping[str, Tensor]) -> bool:
    """Whether a checkpoint holds this weight, and all of its moments or none."""
    shapes = {f"weight/{name}": weight.shape}
    moments = {f"{part}/{name}": torch.Size() if part == "step" else weight.shape for part in _MOMENTS}
    if moments.keys() & tensors.keys():
        shapes |= moments
    return all(one in tensors and tensors[one].shape == shape for one, shape in shapes.items())


def batches(lengths: list[int], key: tuple[int, int] | None, tokens: int) -> list[list[int]]:
    """Numbers of texts in batches of at most `tokens` tokens, padding counted; shuffled by `key`, None in order.

    Within a lot of batches texts are sorted by length, so that little is padded.
    """
    order = numpy.arange(len(lengths))
    generator = None if key is None else numpy.random.default_rng(key)
    if generator is not None:
        generator.shuffle(order)
    lot = max(1, _LOTS * tokens // max(1, int(numpy.mean(lengths)) if lengths else 1))
    made = [batch for start in range(0, len(order), lot) for batch in _lot(order[start : start + lot], lengths, tokens)]
    if generator is not None:
        generator.shuffle(made)
    return made


def _lot(order: Any, lengths: list[int], tokens: int) -> Iterator[list[int]]:
    batch: list[int] = []
    for one in sorted((int(one) for one in order), key=lengths.__getitem__):
        if batch and lengths[one] * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


def _schedule(fraction: float, warm_up: float) -> float:
    """The share of the learning rate: rising over the warm-up, then falling to 0 as half a cosine."""
    rising = (fraction + 1e-3) / warm_up if warm_up else 1.0
    return min(1.0, rising, 0.5 + 0.5 * math.cos(math.pi * min(1.0, fraction)))


def _text_key(job: Job) -> str:
    """Lessons of one text by one target are not mixed with another's."""
    facts = {"text": job.corpus.facts, "vocabulary": job.teacher.vocabulary, "parameters": job.teacher.parameters}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8]
