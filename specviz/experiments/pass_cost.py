"""Seconds of a target pass over w tokens behind a prompt, and the bytes of weights that it reads."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from specviz.models import Context, LanguageModel
from specviz.models.stopwatch import synchronize

BEHIND = 128  # tokens read before, as in the middle of a short reply


def pass_samples(target: LanguageModel, widths: Sequence[int], repeats: int) -> dict[int, list[float]]:
    """`repeats` passes at each width, all widths in turn; a first round of them, which prepares kernels, is dropped."""
    behind = max(0, min(BEHIND, target.context_length - max(widths)))
    with target.open(behind + max(widths)) as context:
        context.prepare(max(widths))
        context.prefill([index % target.vocabulary for index in range(behind)])
        samples: dict[int, list[float]] = {width: [] for width in widths}
        for repeat in range(repeats + 1):
            for width in widths:
                seconds = _pass(context, width)
                if repeat:
                    samples[width].append(seconds)
    return samples


def weight_bytes_read(target: LanguageModel) -> int:
    """Bytes of weights that a pass reads; of an embedding that is only looked up it reads a few rows, not counted."""
    native = getattr(target.executor, "bytes_read", None)
    if native is not None:
        return native
    module = target.executor.module
    looked_up = module.get_input_embeddings().weight
    read_as_head = looked_up is module.get_output_embeddings().weight
    total = sum(parameter.nbytes for parameter in module.parameters())
    return total if read_as_head else total - looked_up.nbytes


def _pass(context: Context, width: int) -> float:
    device = context.model.device
    ids = torch.arange(width, device=device) % context.model.vocabulary
    synchronize(device)
    start = time.perf_counter()
    context.forward(ids)
    synchronize(device)
    seconds = time.perf_counter() - start
    context.rewind(width)
    return seconds
