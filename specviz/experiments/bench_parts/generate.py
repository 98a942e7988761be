"""The standard lane against transformers' `generate`, greedy, which runs in whichever dtype suits it better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from specviz.core.errors import LoadError
from specviz.experiments.bench_report import PartResult, Table
from specviz.experiments.harness import Harness, Needs
from specviz.experiments.json_form import inlined
from specviz.experiments.machine_facts import name_of
from specviz.experiments.paired import PairedComparison
from specviz.experiments.repeat import measure_in_turn
from specviz.experiments.writers import generate_writer

TITLE = "standard decoding against transformers' generate"
NEEDS = Needs.MODULES
_SHARE = 0.18
_TRIALS, _TRIAL_TOKENS = 3, 16


@dataclass(frozen=True, slots=True)
class GenerateResult(PartResult):
    """`their_dtype_trials`: tokens per second of generate, by dtype."""

    our_dtype: str
    their_dtype: str
    their_dtype_trials: Mapping[str, tuple[float, ...]]
    compared: PairedComparison = inlined()

    def tables(self) -> Iterator[Table]:
        yield self.compared.table(
            f"standard lane ({self.our_dtype}) against transformers' generate ({self.their_dtype}), greedy"
        )


def measure(harness: Harness) -> GenerateResult:
    trials = _trials(harness)
    dtype = max(trials, key=lambda kind: max(trials[kind]))
    theirs = generate_writer(harness.module(harness.plan.target, dtype))
    return GenerateResult(
        name_of(harness.target.dtype),
        name_of(dtype),
        {name_of(kind): speeds for kind, speeds in trials.items()},
        harness.compare(_SHARE, harness.standard_writer(), theirs),
    )


def _trials(harness: Harness) -> dict[torch.dtype, tuple[float, ...]]:
    """generate's tokens per second on one prompt, in each dtype that fits into memory."""
    speeds = {}
    for dtype in _dtypes(harness):
        try:
            speeds[dtype] = _trial(harness, dtype)
        except LoadError as error:
            harness.tell(f"transformers in {name_of(dtype)}: {error}")
            continue
        harness.release_modules()  # two copies at once are more than many machines hold
        harness.tell(f"transformers in {name_of(dtype)}: {max(speeds[dtype]):.1f} tokens/s")
    if not speeds:
        raise LoadError("transformers' copy of the weights does not fit into memory; choose a smaller target.")
    return speeds


def _trial(harness: Harness, dtype: torch.dtype) -> tuple[float, ...]:
    ids = next(iter(harness.prompts.values()))
    write = generate_writer(harness.module(harness.plan.target, dtype))
    replies = measure_in_turn({"theirs": lambda: write(ids, _TRIAL_TOKENS)}, _TRIALS, warm_ups=1)["theirs"]
    return tuple(reply.tokens_per_second for reply in replies)


def _dtypes(harness: Harness) -> tuple[torch.dtype, ...]:
    half = torch.float16 if harness.target.dtype is torch.float16 else torch.bfloat16
    return half, torch.float32
