"""A table of n-grams of the target's own text, and what the target favours after each token alone."""

from __future__ import annotations

from specviz.distil.job import Job, Trained

TEXT_SHARE = 0.85


def train(job: Job) -> Trained:
    """Make `ngrams.npz`, for the drafts `cascade` and `ngram-table`."""
    from specviz.distil.counting import make_table

    return make_table(job)
