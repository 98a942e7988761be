"""What a trained draft leaves: its file, and the facts of its card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specviz.distil.job import Job
from specviz.distil.teacher import Teacher
from specviz.distil.training import Recipe
from specviz.distil.training_state import State
from specviz.drafting.draft_weights import IDS, save_weights
from specviz.drafting.token_table import fingerprint


def write_draft(
    job: Job, kind: str, weights: Mapping[str, Tensor], ids: Tensor | None, state: State, facts: dict[str, Any]
) -> Path:
    """Write the draft's own weights in bfloat16, and what the strategy of its kind must know of it."""
    path = job.out / f"{kind}.safetensors"
    tensors = {name: weight.detach().to(torch.bfloat16) for name, weight in weights.items()}
    said = {
        "kind": kind,
        "target": teacher_facts(job.teacher),
        "seed": job.seed,
        "steps": state.step,
        "trained_tokens": state.tokens,
        "licence": job.teacher.checkpoint.licence,
    }
    save_weights(path, tensors if ids is None else {**tensors, IDS: ids.int()}, {**said, **facts})
    return path


def teacher_facts(teacher: Teacher) -> dict[str, Any]:
    """What a draft's file says of its target, as `target_facts` of the loaded model would."""
    return {
        "name": teacher.name,
        "parameters": teacher.parameters,
        "layers": int(teacher.module.config.num_hidden_layers),
        "width": int(teacher.module.config.hidden_size),
        "fingerprint": fingerprint(teacher.tokenizer, teacher.vocabulary),
    }


def draft_facts(
    weights: Mapping[str, Tensor], ids: Tensor | None, state: State, recipe: Recipe, path: Path
) -> dict[str, Any]:
    """For the card: sizes, how long and how it was trained, and where the curve ended."""
    last = state.curve[-1] if state.curve else {}
    return {
        "own_parameters": sum(weight.numel() for weight in weights.values()),
        "file_bytes": path.stat().st_size,
        "vocabulary": None if ids is None else len(ids),
        "steps": state.step,
        "trained_tokens": state.tokens,
        "training_seconds": round(state.seconds),
        "recipe": asdict(recipe),
        **{f"held_out_{name}": value for name, value in last.items() if name.startswith(("cross", "alpha"))},
    }
