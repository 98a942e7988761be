"""One trained layer that reads the target's last hidden states and guesses on from them (EAGLE)."""

from __future__ import annotations

from specviz.distil.job import Job, Trained

TEXT_SHARE = 0.3


def train(job: Job) -> Trained:
    """Make `feature-head.safetensors`, for the draft of that name."""
    from specviz.distil.feature_head_training import train_feature_head

    return train_feature_head(job)
