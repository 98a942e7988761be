"""The state of a training on the disk: weights, the optimiser's moments and the place in the text, written whole.

A killed run resumes from it. A state made from another text, or with other options, is refused.
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
class TrainingState:
    """How far a training has come: reply `tokens` learnt from, `seconds` of all its runs, rows of its `curve`.

    `prepared` is the part of these seconds that went into training examples.
    """

    step: int = 0
    epoch: int = 0
    place: int = 0  # batches of this epoch that are done
    count: int = 0  # conversations of this epoch
    seconds: float = 0.0
    prepared: float = 0.0
    tokens: int = 0
    curve: list[dict[str, float]] = field(default_factory=list)


def save_checkpoint(job: Job, kind: str, tensors: Mapping[str, Tensor], state: TrainingState) -> None:
    """Replace the checkpoint of this job."""
    path = _path(job, kind)
    part, facts = path.with_suffix(".part"), {"state": asdict(state), "made_from": _made_from(job, kind)}
    save_file({name: one.contiguous() for name, one in tensors.items()}, part, {"specviz": json.dumps(facts)})
    os.replace(part, path)


def read_checkpoint(job: Job, kind: str) -> tuple[dict[str, Tensor], TrainingState] | None:
    """(tensors, state) of a killed run of this job, None where there is none. Raises InputError."""
    path = _path(job, kind)
    if not path.exists():
        return None
    try:
        with safe_open(path, "pt", device=str(job.teacher.module.device)) as file:
            facts = json.loads(file.metadata()["specviz"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        state, made_from = TrainingState(**facts["state"]), facts["made_from"]
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise damaged(job, kind) from error
    if made_from != json.loads(json.dumps(_made_from(job, kind))):
        raise InputError(
            f"The checkpoint {path} was made from another text or with other options; delete it, or choose another "
            "folder with --out."
        )
    return tensors, state


def damaged(job: Job, kind: str) -> InputError:
    """The error for a checkpoint that no run can resume from."""
    return InputError(f"The checkpoint {_path(job, kind)} is damaged; delete it to start again.")


@contextmanager
def exclusive(job: Job) -> Iterator[None]:
    """Keep other runs from writing to the job's checkpoint folder. Raises InputError where one already does."""
    job.checkpoint_folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(job.checkpoint_folder / "lock").acquire(blocking=False)
    except Timeout as error:
        raise InputError(
            f"Another run is training in {job.out}; wait for it, or choose another folder with --out."
        ) from error
    with lock:
        yield


def _path(job: Job, kind: str) -> Path:
    return job.checkpoint_folder / f"{kind}.safetensors"


def _made_from(job: Job, kind: str) -> dict[str, Any]:
    """What must be the same for a run to resume."""
    return {"kind": kind, "text": job.corpus.facts, "seed": job.seed, "vocabulary": job.vocabulary}
