"""Evaluate a draft on prompts that it never saw: real races against standard decoding.

Numbers are those of `specviz.metrics` over all prompts: tau and alpha from pooled counts, the others medians.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import SpecvizError
from specviz.core.settings import Settings
from specviz.distil.corpus import Conversation
from specviz.distil.job import Trained
from specviz.drafting import make_draft
from specviz.experiments.aggregate import Distribution, medians
from specviz.metrics import Summary, summarize
from specviz.models import LanguageModel
from specviz.models.device import device_name
from specviz.races.racing import STANDARD, Lane, race
from specviz.sources import Progress
from specviz.traces import Reason

NEW_TOKENS = 128


@dataclass(frozen=True, slots=True)
class DraftResult:
    """A draft on held-out prompts, greedy; `specviz.metrics.Summary` defines the numbers.

    `identical` of `prompts` texts were those of the standard lane, token for token.
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
    target: LanguageModel, trained: Trained, conversations: Sequence[Conversation], progress: Progress
) -> tuple[DraftResult, ...]:
    """Race what was trained on the prompts of these conversations, all its drafts in one race per prompt.

    Raises SpecvizError where a draft cannot be made or fails in a race.
    """
    lanes = _lanes(target, trained)
    summaries: list[dict[str, Summary]] = []
    for number, each in enumerate(conversations):
        progress(number / len(conversations), f"Racing on held-out prompt {number + 1} of {len(conversations)}")
        summaries.append(summarize(race(lanes, each.prompt)))
        for name, summary in summaries[-1].items():
            if summary.finish_reason == Reason.ERROR:
                raise SpecvizError(f"The lane '{name}' failed on a held-out prompt: {summary.message}")
    return tuple(_result(lane.name, [each[lane.name] for each in summaries]) for lane in lanes[1:])


def rows(results: Iterable[DraftResult]) -> list[dict[str, Any]]:
    """The results as plain values for a card, numbers to four digits."""
    return [
        {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(result).items()}
        for result in results
    ]


def race_facts(target: LanguageModel, prompts: int) -> dict[str, Any]:
    """For a card: how the races were run."""
    return {
        "prompts": prompts,
        "new_tokens": NEW_TOKENS,
        "device": device_name(target.device),
        "dtype": str(target.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
    }


def _lanes(target: LanguageModel, trained: Trained) -> list[Lane]:
    """The standard lane, and one per draft."""
    shared = Settings(max_new_tokens=NEW_TOKENS, telemetry=False)
    lanes = [Lane(STANDARD, target, make_draft("none", target), replace(shared, k=0))]
    for spec in trained.drafts:
        strategy = make_draft(spec.strategy, target, **dict(spec.options))
        lanes.append(Lane(_label(spec, trained.files), target, strategy, spec.settings_in(shared)))
    return lanes


def _label(spec: DraftSpec, files: Sequence[Path]) -> str:
    """A draft's name on its card, without the paths of the files that it was read from."""
    options = [f"{name} {value}" for name, value in spec.options if value not in map(str, files)]
    return ", ".join([spec.strategy, f"k = {spec.k}", *options])


def _result(label: str, summaries: Sequence[Summary]) -> DraftResult:
    kept = sum(each.kept_tokens for each in summaries)
    speedups = Distribution.of(each.speedup for each in summaries).samples
    return DraftResult(
        draft=label,
        prompts=len(summaries),
        identical=sum(each.identical_to_standard is True for each in summaries),
        kept_tokens=kept,
        tau=_ratio(kept, sum(each.target_passes or 0 for each in summaries)),
        alpha=_ratio(sum(each.accepted for each in summaries), sum(each.tested for each in summaries)),
        worst_speedup=min(speedups, default=None),
        **medians(summaries, ("c", "predicted_speedup", "speedup")),
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
