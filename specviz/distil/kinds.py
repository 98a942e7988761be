"""The kinds of draft that `distil` makes, each with the share of the time that goes into writing text.

A new kind is a module with a function from a `Job` to a `Trained`, and an entry here. Each module is imported when its
kind is made, so that reading this list loads no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specviz.core.errors import InputError

if TYPE_CHECKING:
    from specviz.distil.job import Job, Trained


@dataclass(frozen=True, slots=True)
class Kind:
    """`train` makes the draft of a job, resuming a killed run of the same job; `help` is a sentence."""

    name: str
    help: str
    text_share: float
    train: Callable[[Job], Trained]


def kind_named(name: str) -> Kind:
    """The kind of that name. Raises InputError."""
    for kind in KINDS:
        if kind.name == name:
            return kind
    raise InputError(f"There is no kind '{name}'; choose one of: {', '.join(kind.name for kind in KINDS)}.")


def _feature_head(job: Job) -> Trained:
    from specviz.distil.feature_head_training import train_feature_head

    return train_feature_head(job)


def _ngram(job: Job) -> Trained:
    from specviz.distil.table_counting import make_table

    return make_table(job)


def _student(job: Job) -> Trained:
    from specviz.distil.student_training import train_student

    return train_student(job)


KINDS = (
    Kind("feature-head", "One layer trained on the target's last hidden states (EAGLE).", 0.3, _feature_head),
    Kind("ngram", "A table of n-grams of the target's own text, for cascade and ngram-table.", 0.85, _ngram),
    Kind("student", "A few layers trained to predict what the target predicts.", 0.3, _student),
)
