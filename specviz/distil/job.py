"""What a kind of draft is made from, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specviz.core.draft_spec import DraftSpec
from specviz.distil.corpus import Corpus
from specviz.distil.teacher import Teacher
from specviz.sources import Progress

NO_REPLIES = "There are no replies to learn from; let the target write more text."


@dataclass(frozen=True, slots=True)
class Job:
    """Make a draft for `teacher` from `corpus`, in the folder `out`, in about `seconds` from now.

    Learn from `corpus.training()`; measure on `corpus.held_out()`, and never learn from it. `seed` fixes every draw. A
    neural draft predicts the `vocabulary` most frequent ids (None: every id) and trains for `steps` steps (None: as
    many as fit). An n-gram table's file takes at most `megabytes` (decimal). `progress` takes a fraction and a
    sentence.
    """

    teacher: Teacher
    corpus: Corpus
    out: Path
    seconds: float
    seed: int
    progress: Progress
    vocabulary: int | None = None
    megabytes: float = 8.0
    steps: int | None = None

    @property
    def checkpoint_folder(self) -> Path:
        """The folder of what a killed run needs to resume."""
        return self.out / "checkpoint"


@dataclass(frozen=True, slots=True)
class Trained:
    """What a job made: `files`, `facts` for the card (plain JSON values), and the `drafts` to race, each with its k.

    `curve` holds rows of numbers by name, such as trained tokens and held-out cross-entropy; `curve_note` explains them
    in a sentence.
    """

    files: tuple[Path, ...]
    facts: dict[str, Any]
    drafts: tuple[DraftSpec, ...]
    curve: tuple[dict[str, float], ...] = ()
    curve_note: str = ""
