"""From the races of a contest to its numbers: by prompt, by group, and the best k of each draft. No torch.

Of each prompt the median over its repeats counts; of a group the mean of its prompts and the worst of them. Speed-up is
decode seconds per kept token, standard over speculative, in one race.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from specviz.experiments.aggregate import described
from specviz.experiments.comparison import Entry
from specviz.experiments.prompt_set import GROUPS, TestPrompt

ALL = "all"
AVERAGED = ("tau", "alpha", "acceptance", "c", "coverage", "mean_drafted", "mean_depth")
EITHER, LOOKUP, MODEL = "lookup-else-model", "prompt-lookup", "draft-model"
_SHARE = 0.97

Numbers = dict[str, Any]


def standings(rows: Sequence[Numbers], prompts: Sequence[TestPrompt], entries: Sequence[Entry]) -> Numbers:
    """Every lane's numbers, each draft's best k by group, and combined drafts against their parts."""
    lanes = {entry.lane: _lane(entry.lane, rows, prompts) for entry in entries}
    drafts: dict[str, Numbers] = {}
    for entry in entries:
        if lanes[entry.lane]["prompts"]:
            drafts.setdefault(entry.draft, {"ks": {}})["ks"][str(entry.k)] = lanes[entry.lane]
    for draft in drafts.values():
        draft["best_k"] = {group: _best_k(draft["ks"], group) for group in (*GROUPS, ALL)}
    return {
        "prompts": {each.name: _prompt(each, rows) for each in prompts},
        "drafts": drafts,
        "against_parts": [against_parts(drafts, *trio) for trio in _combined(entries, drafts)],
        "failed": sorted(
            {(lane, one["message"] or "") for row in rows for lane, one in row["lanes"].items() if _failed(one)}
        ),
    }


def against_parts(drafts: dict[str, Numbers], combined: str, parts: Sequence[str], share: float = _SHARE) -> Numbers:
    """A draft made of others against the best of them on each prompt, each at its own best k over all prompts.

    `held`: the prompts on which it reaches `share` of the better part's speed-up.
    """
    best = {name: drafts[name]["ks"][str(drafts[name]["best_k"][ALL])]["prompts"] for name in (combined, *parts)}
    ratios = {}
    for prompt, own in best[combined].items():
        others = [best[part][prompt]["speedup"]["median"] for part in parts if prompt in best[part]]
        if len(others) == len(parts):
            ratios[prompt] = own["speedup"]["median"] / max(others)
    return {
        "draft": combined,
        "best_k": {name: drafts[name]["best_k"][ALL] for name in (combined, *parts)},
        "share": share,
        "ratio": ratios,
        "held": sum(ratio >= share for ratio in ratios.values()),
    }


def _lane(lane: str, rows: Sequence[Numbers], prompts: Sequence[TestPrompt]) -> Numbers:
    by_prompt = {each.name: _numbers(lane, each.name, rows) for each in prompts}
    by_prompt = {name: one for name, one in by_prompt.items() if one["speedup"]["samples"]}
    members = {group: [each.name for each in prompts if group in (each.group, ALL)] for group in (*GROUPS, ALL)}
    groups = {
        group: _group({name: by_prompt[name] for name in names if name in by_prompt})
        for group, names in members.items()
    }
    return {"prompts": by_prompt, "groups": groups}


def _numbers(lane: str, prompt: str, rows: Sequence[Numbers]) -> Numbers:
    """A lane's numbers on a prompt: the speed-up of every repeat, of all else the median."""
    own = [row["lanes"][lane] for row in rows if row["prompt"] == prompt and lane in row["lanes"]]
    own = [one for one in own if not _failed(one)]
    identical = [one["identical_to_standard"] for one in own]
    return {
        "speedup": described([one["speedup"] for one in own if one["speedup"] is not None]),
        "tokens": max((one["kept_tokens"] for one in own), default=0),
        **{name: _median(one[name] for one in own) for name in AVERAGED},
        "identical": None if None in identical else all(identical),
        "first_divergence": next((one["first_divergence"] for one in own if one["first_divergence"] is not None), None),
    }


def _group(by_prompt: dict[str, Numbers]) -> Numbers:
    """The mean over a group's prompts, the worst of them, and on how many the text was the standard lane's."""
    speedups = {name: one["speedup"]["median"] for name, one in by_prompt.items()}
    return {
        "of": len(by_prompt),
        "identical": sum(one["identical"] is True for one in by_prompt.values()),
        "speedup": _spread(speedups),
        **{name: _spread({prompt: one[name] for prompt, one in by_prompt.items()}) for name in AVERAGED},
    }


def _spread(values: dict[str, float | None]) -> Numbers:
    known = {name: value for name, value in values.items() if value is not None}
    worst = min(known, key=known.__getitem__, default=None)
    mean = statistics.fmean(known.values()) if known else None
    return {"mean": mean, "worst": known.get(worst), "worst_prompt": worst}


def _best_k(ks: dict[str, Numbers], group: str) -> int | None:
    means = {k: numbers["groups"][group]["speedup"]["mean"] for k, numbers in ks.items()}
    known = {k: mean for k, mean in means.items() if mean is not None}
    return int(max(known, key=known.__getitem__)) if known else None


def _combined(entries: Sequence[Entry], drafts: dict[str, Numbers]) -> Iterable[tuple[str, tuple[str, str]]]:
    """(lookup-else-model draft, its two parts): a lookup, and the same model on its own."""
    kinds = {
        entry.draft: (entry.argument.strategy, entry.argument.source) for entry in entries if entry.draft in drafts
    }
    lookups = [draft for draft, (kind, _) in kinds.items() if kind == LOOKUP]
    for draft, (kind, source) in kinds.items():
        models = [other for other, pair in kinds.items() if pair == (MODEL, source)]
        if kind == EITHER and lookups and models:
            yield draft, (lookups[0], models[0])


def _prompt(prompt: TestPrompt, rows: Sequence[Numbers]) -> Numbers:
    own = [row for row in rows if row["prompt"] == prompt.name]
    speeds = [row["standard"]["tokens_per_second"] for row in own]
    return {
        "group": prompt.group,
        "prompt_tokens": own[0]["prompt_tokens"] if own else None,
        "tokens": own[0]["standard"]["kept_tokens"] if own else None,
        "tokens_per_second": described([speed for speed in speeds if speed is not None]),
    }


def _failed(lane: Numbers) -> bool:
    return lane["finish_reason"] == "error"


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
