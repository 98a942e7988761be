"""Evaluate a draft on prompts that it never saw: real races against standard decoding.

Numbers are those of `specviz.metrics` over all prompts: tau and alpha from pooled counts, the others medians.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from specviz.core.errors import SpecvizError
from specviz.core.settings import Settings
from specviz.distil.corpus import Conversation
from specviz.distil.job import Trial
from specviz.drafting import Strategy, make_draft
from specviz.metrics import Summary, summarize
from specviz.models import LanguageModel
from specviz.models.device import device_name
from specviz.races.racing import STANDARD, Lane, race
from specviz.sources import Progress
from specviz.traces import Reason

NEW_TOKENS = 128


@dataclass(frozen=True, slots=True)
class Worth:
    """A draft on held-out prompts, greedy: see `specviz.metrics.Summary` for what each number is.

    `identical` of `prompts` texts were the standard lane's own, token for token.
    """

    draft: str
    prompts: int
    identical: int
    kept_tokens: int
    tau: float | None
    alpha: float | None
    c: float | None
    predicted_speedup: float | None
    speedup: float | None
    worst_speedup: float | None


def evaluate(
    target: LanguageModel, trials: Sequence[Trial], conversations: Sequence[Conversation], progress: Progress
) -> tuple[Worth, ...]:
    """Race each trial's draft on the prompts of these conversations, all of them in one race a prompt.

    Raises SpecvizError where a draft cannot be made or fails in a race.
    """
    strategies = [make_draft(trial.draft, target, **trial.options) for trial in trials]
    prompts = [each.prompt for each in conversations]
    summaries: list[dict[str, Summary]] = []
    for number, prompt in enumerate(prompts):
        progress(number / len(prompts), f"Racing the draft on held-out prompt {number + 1} of {len(prompts)}")
        summaries.append(summarize(race(_lanes(target, trials, strategies), prompt)))
        for name, summary in summaries[-1].items():
            if summary.finish_reason == Reason.ERROR:
                raise SpecvizError(f"The lane '{name}' failed on a held-out prompt: {summary.message}")
    return tuple(_worth(trial.label, [each[trial.label] for each in summaries]) for trial in trials)


def _lanes(target: LanguageModel, trials: Sequence[Trial], strategies: Sequence[Strategy]) -> list[Lane]:
    lanes = [
        Lane(STANDARD, target, make_draft("none", target), Settings(k=0, max_new_tokens=NEW_TOKENS, telemetry=False))
    ]
    for trial, strategy in zip(trials, strategies, strict=True):
        settings = Settings(k=trial.k, max_new_tokens=NEW_TOKENS, telemetry=False)
        lanes.append(Lane(trial.label, target, strategy, settings))
    return lanes


def _worth(label: str, summaries: Sequence[Summary]) -> Worth:
    kept = sum(each.kept_tokens for each in summaries)
    speedups = [each.speedup for each in summaries if each.speedup is not None]
    return Worth(
        draft=label,
        prompts=len(summaries),
        identical=sum(each.identical_to_standard is True for each in summaries),
        kept_tokens=kept,
        tau=_ratio(kept, sum(each.target_passes or 0 for each in summaries)),
        alpha=_ratio(sum(each.accepted for each in summaries), sum(each.tested for each in summaries)),
        c=_median(each.c for each in summaries),
        predicted_speedup=_median(each.predicted_speedup for each in summaries),
        speedup=_median(speedups),
        worst_speedup=min(speedups, default=None),
    )


def rows(worths: Iterable[Worth]) -> list[dict[str, object]]:
    """The records as plain values, numbers to four digits, for a card."""
    return [
        {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(worth).items()}
        for worth in worths
    ]


def race_facts(target: LanguageModel, prompts: int) -> dict[str, Any]:
    """For the card: how the races were run."""
    return {
        "prompts": prompts,
        "new_tokens": NEW_TOKENS,
        "device": device_name(target.device),
        "dtype": str(target.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
    }


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
