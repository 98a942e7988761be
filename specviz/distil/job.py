"""What a kind of draft is given and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specviz.distil.corpus import Corpus
from specviz.distil.teacher import Teacher
from specviz.sources import Progress

NO_REPLIES = "There are no replies to learn from; let the target write more text."


@dataclass(frozen=True, slots=True)
class Job:
    """Make a draft for `teacher` from `corpus`, in the folder `out`, in about `seconds` from now.

    `corpus.training()` is the text to learn from; `corpus.held_out()` may be measured on, never learnt from. `seed`
    fixes every draw. A neural draft says the `vocabulary` most frequent ids, None for every id, and is trained for so
    many `steps`, None for as many as fit; `megabytes` (decimal) is the most that an n-gram table's file may take.
    `progress` takes a fraction and a sentence. What a killed run needs to go on lies in `out / "checkpoint"`.
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


@dataclass(frozen=True, slots=True)
class Trial:
    """A draft to be raced on held-out prompts: a strategy by its name, its options, and k."""

    draft: str
    options: Mapping[str, Any]
    k: int

    @property
    def label(self) -> str:
        """A name for the card: options that are paths are left out."""
        words = ", ".join(f"{name} {value}" for name, value in self.options.items() if not _is_path(value))
        return f"{self.draft}, k = {self.k}" + (f", {words}" if words else "")


@dataclass(frozen=True, slots=True)
class Trained:
    """What was made: `files` in the job's folder, `facts` for the card (plain JSON values), drafts to be raced.

    `curve` are rows of numbers by name, such as trained tokens and held-out cross-entropy, drawn as a table, and
    `curve_note` says in a sentence what they are.
    """

    files: tuple[Path, ...]
    facts: dict[str, Any]
    trials: tuple[Trial, ...]
    curve: tuple[dict[str, float], ...] = field(default=())
    curve_note: str = ""


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and "/" in value
