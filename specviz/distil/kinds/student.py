"""A few layers trained to say what the target says, under its own embedding and head."""

from __future__ import annotations

from specviz.distil.job import Job, Trained

TEXT_SHARE = 0.3


def train(job: Job) -> Trained:
    """Make `student.safetensors`, for the draft of that name."""
    from specviz.distil.student_training import train_student

    return train_student(job)
