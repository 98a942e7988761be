"""The standard lane against transformers' `generate`, greedy, in whichever dtype it is faster in."""

from __future__ import annotations

from typing import Any

import torch

from specviz.core.errors import LoadError
from specviz.experiments.bench_context import Bed, name_of
from specviz.experiments.transformers_generate import generate_writer

TITLE = "standard decoding against transformers' generate"
_SHARE = 0.18
_TRIALS, _TRIAL_TOKENS = 3, 16


def measure(bed: Bed) -> dict[str, Any]:
    trials = _trials(bed)
    dtype = max(trials, key=lambda kind: max(trials[kind]))
    ours, theirs = bed.standard_writer(), generate_writer(bed.module(bed.plan.target, dtype))
    return {
        "our_dtype": name_of(bed.target.dtype),
        "their_dtype": name_of(dtype),
        "their_dtype_trials": {name_of(kind): speeds for kind, speeds in trials.items()},
        **bed.compare(_SHARE, ours, theirs),
    }


def _trials(bed: Bed) -> dict[torch.dtype, list[float]]:
    """generate's tokens a second in each dtype that fits, on one prompt; the first reply warms up and is dropped."""
    ids = next(iter(bed.prompts.values()))
    speeds = {}
    for dtype in _dtypes(bed):
        try:
            write = generate_writer(bed.module(bed.plan.target, dtype))
        except LoadError as error:
            bed.tell(f"transformers in {name_of(dtype)}: {error}")
            continue
        replies = [write(ids, _TRIAL_TOKENS) for _ in range(1 + _TRIALS)][1:]
        speeds[dtype] = [reply.tokens_per_second for reply in replies]
        bed.release_modules()  # two copies at once are more than many machines hold
        bed.tell(f"transformers in {name_of(dtype)}: {max(speeds[dtype]):.1f} tokens/s")
    if not speeds:
        raise LoadError("transformers' copy of the weights does not fit into memory; choose a smaller target.")
    return speeds


def _dtypes(bed: Bed) -> tuple[torch.dtype, ...]:
    half = torch.float16 if bed.target.dtype is torch.float16 else torch.bfloat16
    return half, torch.float32
