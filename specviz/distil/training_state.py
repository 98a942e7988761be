"""A checkpoint of a training: weights, the optimiser's moments and the place in the text, written whole or not at all.

A run that was killed goes on from it; one that was made from another text, or with other options, is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from specviz.core.errors import InputError
from specviz.distil.job import Job


@dataclass
class State:
    """How far a training has come: `tokens` of replies, `seconds` of all its runs, the curve's rows so far.

    `prepared`: of these seconds, those that went into lessons.
    """

    step: int = 0
    epoch: int = 0
    place: int = 0  # batches done of the epoch
    count: int = 0  # conversations of the epoch
    seconds: float = 0.0
    prepared: float = 0.0
    tokens: int = 0
    curve: list[dict[str, float]] = field(default_factory=list)


def save_checkpoint(job: Job, kind: str, tensors: Mapping[str, Tensor], state: State) -> None:
    """Write the checkpoint of this job, in place of the one before."""
    path = checkpoint_path(job.out, kind)
    part, facts = path.with_suffix(".part"), {"state": asdict(state), "made_from": made_from(job, kind)}
    save_file({name: one.contiguous() for name, one in tensors.items()}, part, {"specviz": json.dumps(facts)})
    os.replace(part, path)


def made_from(job: Job, kind: str) -> dict[str, Any]:
    """What a checkpoint must have been made from, for a run to go on with it."""
    return {"kind": kind, "text": job.corpus.facts, "seed": job.seed, "vocabulary": job.vocabulary}


def checkpoint_path(out: Path, kind: str) -> Path:
    return out / "checkpoint" / f"{kind}.safetensors"


@contextmanager
def alone_in(job: Job) -> Iterator[None]:
    """While this lasts no other run writes lessons and checkpoints to the job's folder. Raises InputError in words."""
    folder = job.out / "checkpoint"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        held = FileLock(folder / "lock").acquire(blocking=False)
    except Timeout as error:
        raise InputError(f"Another run is training in {job.out}; wait for it or choose another --out.") from error
    with held:
        yield


def damaged(job: Job, kind: str) -> str:
    """What is said of a checkpoint that cannot be gone on with."""
    return f"The checkpoint {checkpoint_path(job.out, kind)} is damaged; delete it to begin anew."


def read_checkpoint(job: Job, kind: str) -> tuple[dict[str, Tensor], State] | None:
    """(tensors, state) of a killed run of this job, None where there is none. Raises InputError in words."""
    path = checkpoint_path(job.out, kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        return None
    try:
        with safe_open(path, "pt", device=str(job.teacher.module.device)) as file:
            facts = json.loads(file.metadata()["specviz"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        state, made = State(**facts["state"]), facts["made_from"]
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(damaged(job, kind)) from error
    if made != json.loads(json.dumps(made_from(job, kind))):
        raise InputError(
            f"The checkpoint {path} was made from another text or with other options; delete it, or take another --out."
        )
    return tensors, state
