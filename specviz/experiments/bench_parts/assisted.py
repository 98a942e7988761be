"""Lanes that draft against transformers' assisted generation and prompt lookup: the same weights, k and dtype.

Each side looks n-grams up as it does by default: we match up to 3 tokens, transformers up to 2.
"""

from __future__ import annotations

from typing import Any

from specviz.drafting import make_draft
from specviz.experiments.bench_context import Bed, name_of
from specviz.experiments.lane_writer import lane_writer
from specviz.experiments.reply import Writer
from specviz.experiments.transformers_generate import generate_writer

TITLE = "drafting lanes against transformers' assisted generation and prompt lookup"
_SHARE = 0.25


def measure(bed: Bed) -> dict[str, Any]:
    share = _SHARE if bed.plan.draft is None else _SHARE / 2
    compared = {"prompt-lookup": bed.compare(share, our_lookup(bed), _their_lookup(bed))}
    if bed.plan.draft is not None:
        compared["draft-model"] = bed.compare(share, our_draft_model(bed), _their_draft_model(bed))
    return {"k": bed.plan.k, "dtype": name_of(bed.target.dtype), "compared": compared}


def our_lookup(bed: Bed) -> Writer:
    return lane_writer(bed.target, make_draft("prompt-lookup", bed.target), bed.plan.k)


def our_draft_model(bed: Bed) -> Writer:
    strategy = make_draft("draft-model", bed.target, draft_model=bed.draft)
    return lane_writer(bed.target, strategy, bed.plan.k)


def _their_lookup(bed: Bed) -> Writer:
    return generate_writer(bed.module(bed.plan.target, bed.target.dtype), lookup=bed.plan.k)


def _their_draft_model(bed: Bed) -> Writer:
    target = bed.module(bed.plan.target, bed.target.dtype)
    return generate_writer(target, assistant=bed.module(bed.plan.draft, bed.draft.dtype), k=bed.plan.k)
