"""Train a neural draft from a job: prepare its examples, run the trainer, write the draft's file."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError
from specviz.distil.job import NO_REPLIES, Job, Trained
from specviz.distil.trainer import TrainableDraft, Trainer, TrainingRecipe
from specviz.distil.training_examples import TrainingExamples
from specviz.distil.training_state import TrainingState, exclusive, read_checkpoint
from specviz.drafting.draft_weights import IDS, save_weights

_RACED_K = (2, 4)
_CURVE_NOTE = (
    "On held-out replies. Cross entropy: in nats, against the target's distribution. Alpha i: how often the draft's "
    "i-th token of a block is the target's own first choice, given that the tokens before it are the target's."
)


def train_draft(
    job: Job,
    kind: str,
    build: Callable[[Tensor | None], TrainableDraft],
    recipe: TrainingRecipe,
    file_facts: Mapping[str, Any],
    features: bool = False,
) -> Trained:
    """Train the draft that `build` makes for the ids (n,) that it predicts, None for all; resume a killed run.

    Writes `kind`.safetensors, which carries `file_facts`. The job's seconds are for all its runs together; examples
    take at most half of what is left, unless the recipe fixes the number of steps. Raises InputError where there is
    nothing to learn from, or where another run trains in the same folder.
    """
    path = job.out / f"{kind}.safetensors"
    with exclusive(job):
        began, found = time.monotonic(), read_checkpoint(job, kind)
        left = job.seconds - (found[1].seconds if found else 0.0)
        examples, held_out = _examples(job, features, math.inf if recipe.steps else began + left / 2)
        ids = found[0].get(f"fixed/{IDS}") if found else frequent_ids(examples, job)
        draft = build(ids)
        trainer = Trainer(draft, examples, held_out, job, recipe, {} if ids is None else {IDS: ids})
        if found:
            trainer.resume(*found)
        trainer.count_preparation(time.monotonic() - began)
        state = trainer.run(lambda state: _write(path, job, draft, ids, state, file_facts))
    drafts = tuple(DraftSpec(kind, options={"weights": str(path)}, settings={"k": k}) for k in _RACED_K)
    facts = {**_card_facts(path, draft, ids, state, recipe), **file_facts}
    return Trained((path,), facts, drafts, tuple(state.curve), _CURVE_NOTE)


def frequent_ids(examples: TrainingExamples, job: Job) -> Tensor | None:
    """The ids (n,) that a draft with a reduced vocabulary predicts: the most frequent, and all that end a text.

    None where every id is wanted; more than asked for where the special tokens alone are more.
    """
    size = job.teacher.vocabulary
    if job.vocabulary is None or job.vocabulary >= size:
        return None
    counts = examples.frequencies()
    kept = {token for token in (*job.teacher.tokenizer.all_special_ids, *job.teacher.eos_ids) if token < size}
    counts[list(kept)] = counts.sum() + 1
    chosen = numpy.argsort(-counts, kind="stable")[: max(job.vocabulary, len(kept))]
    return torch.from_numpy(numpy.sort(chosen)).to(job.teacher.module.device)


def _examples(job: Job, features: bool, deadline: float) -> tuple[TrainingExamples, TrainingExamples]:
    """(examples to train on, examples held out), both prepared. Raises InputError where there are none."""
    module, folder = job.teacher.module, job.checkpoint_folder / f"examples-{_text_key(job)}"
    examples = TrainingExamples(folder / "training", module, job.corpus.training(), features)
    held_out = TrainingExamples(folder / "held-out", module, job.corpus.held_out(), features)
    held_out.prepare(math.inf)
    examples.prepare(deadline, job.progress)
    if not examples.tokens:
        raise InputError(NO_REPLIES)
    return examples, held_out


def _text_key(job: Job) -> str:
    """Keeps the examples of one text and target apart from another's."""
    facts = {"text": job.corpus.facts, "vocabulary": job.teacher.vocabulary, "parameters": job.teacher.parameters}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8]


def _write(
    path: Path,
    job: Job,
    draft: TrainableDraft,
    ids: Tensor | None,
    state: TrainingState,
    file_facts: Mapping[str, Any],
) -> None:
    """Write the draft's own weights in bfloat16, with the facts that its strategy needs."""
    tensors = {name: weight.detach().to(torch.bfloat16) for name, weight in draft.weights.items()}
    facts = {
        "kind": draft.kind,
        "target": job.teacher.facts,
        "seed": job.seed,
        "steps": state.step,
        "trained_tokens": state.tokens,
        "licence": job.teacher.checkpoint.licence,
    }
    save_weights(path, tensors if ids is None else {**tensors, IDS: ids.int()}, {**facts, **file_facts})


def _card_facts(
    path: Path, draft: TrainableDraft, ids: Tensor | None, state: TrainingState, recipe: TrainingRecipe
) -> dict[str, Any]:
    """For the card: sizes, how the draft was trained, and where its curve ended."""
    last = state.curve[-1] if state.curve else {}
    return {
        "own_parameters": sum(weight.numel() for weight in draft.weights.values()),
        "file_bytes": path.stat().st_size,
        "vocabulary": None if ids is None else len(ids),
        "steps": state.step,
        "trained_tokens": state.tokens,
        "training_seconds": round(state.seconds),
        "recipe": asdict(recipe),
        **{f"held_out_{name}": value for name, value in last.items() if name.startswith(("cross", "alpha"))},
    }
