"""Drafts on the twelve prompts, greedy: every lane in one race with standard decoding, repeated, no telemetry.

A race alternates its lanes by their clocks, so a machine that drifts favours none of them; a lane's place among the
others changes with each repeat.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from specviz.core.errors import ContextError
from specviz.experiments.bench_context import Bed, Skipped, name_of
from specviz.experiments.comparison import Contest, Entry, heats
from specviz.experiments.comparison_log import ContestLog
from specviz.experiments.comparison_numbers import standings
from specviz.experiments.prompt_set import TestPrompt, fingerprint, twelve
from specviz.metrics import Summary, summarize
from specviz.races.lanes import make_lanes
from specviz.races.prompts import make_prompt
from specviz.races.racing import STANDARD, Lane, race

TITLE = "drafts on the twelve prompts"
_WARM_TOKENS = 8
_KEPT = (
    "kept_tokens", "finish_reason", "message", "speedup", "seconds", "tokens_per_second", "one_token_pass_seconds",
    "draft_prefill_seconds", "tau", "alpha", "acceptance", "c", "coverage", "mean_drafted", "mean_depth",
    "identical_to_standard", "first_divergence",
)  # fmt: skip


def measure(bed: Bed) -> dict[str, Any]:
    contest = bed.plan.contest
    if contest is None:
        raise Skipped("Name the drafts to compare, as in --only drafts --draft prompt-lookup.")
    log = ContestLog(contest.log, _facts(bed, contest))
    prompts = _prompts(bed)
    lanes = _lanes(bed, contest)
    _run(bed, contest, log, prompts, lanes)
    rows = log.of([entry.lane for entry in contest.entries], contest.repeats)
    facts = {"dtype": name_of(bed.target.dtype), "longest": contest.settings.max_new_tokens}
    repeats = max((row["repeat"] + 1 for row in rows), default=0)
    return {**facts, "repeats": repeats, **standings(rows, tuple(prompts), contest.entries)}


def _run(
    bed: Bed, contest: Contest, log: ContestLog, prompts: dict[TestPrompt, tuple[int, ...]], lanes: dict[str, Lane]
) -> None:
    """Every race that the log lacks, repeat by repeat, so that a contest cut short has as much of each prompt."""
    end, warm = time.monotonic() + contest.seconds, set()
    for repeat in range(contest.repeats):
        for prompt, ids in prompts.items():
            done = log.done(prompt.name, repeat)
            missing = [entry for entry in contest.entries if entry.lane not in done]
            for heat in heats(missing):
                if time.monotonic() > end:
                    bed.tell(f"the time is up in repeat {repeat + 1} of {contest.repeats}")
                    return
                _warm(heat, lanes, ids, warm)
                numbers = _race(_turned(heat, repeat), lanes, ids)
                log.add({"prompt": prompt.name, "repeat": repeat, "prompt_tokens": len(ids), **numbers})
                bed.tell(f"{prompt.name} {repeat + 1}/{contest.repeats}: {_words(numbers)}")


def _race(heat: Sequence[Entry], lanes: dict[str, Lane], ids: tuple[int, ...]) -> dict[str, Any]:
    running = [lanes[name] for name in (STANDARD, *(entry.lane for entry in heat))]
    found = {name: _numbers(summary) for name, summary in summarize(race(running, ids, calibrate=False)).items()}
    return {"standard": found.pop(STANDARD), "lanes": found}


def _warm(heat: Sequence[Entry], lanes: dict[str, Lane], ids: tuple[int, ...], warm: set[str]) -> None:
    """A few tokens of each lane that has not run yet: a kernel's first call is nobody's speed."""
    fresh = [entry for entry in heat if entry.lane not in warm]
    if fresh:
        short = {
            name: replace(lane, settings=replace(lane.settings, max_new_tokens=_WARM_TOKENS))
            for name, lane in lanes.items()
        }
        _race(fresh, short, ids)
        warm.update(entry.lane for entry in fresh)


def _turned(heat: tuple[Entry, ...], repeat: int) -> tuple[Entry, ...]:
    turn = repeat % len(heat)
    return heat[turn:] + heat[:turn]


def _lanes(bed: Bed, contest: Contest) -> dict[str, Lane]:
    """The standard lane and one a draft, by name; each draft model is loaded once."""
    drafts = [entry.argument for entry in contest.entries]
    return {lane.name: lane for lane in make_lanes(bed.target, drafts, contest.settings, bed.draft_of)}


def _prompts(bed: Bed) -> dict[TestPrompt, tuple[int, ...]]:
    """Each prompt's ids. Raises Skipped where the target's context is too short for one of them."""
    try:
        return {each: make_prompt(bed.target, each.prompt).ids for each in twelve()}
    except ContextError as error:
        raise Skipped(f"The prompts do not fit into the target's context. {error}") from error


def _facts(bed: Bed, contest: Contest) -> dict[str, Any]:
    """What results must share to be put together."""
    info = bed.target.info
    return {
        "target": f"{info.name} {info.revision or ''} {info.execution}".strip(),
        "dtype": name_of(bed.target.dtype),
        "device": str(bed.target.device),
        "tokens": contest.settings.max_new_tokens,
        "prompts": fingerprint(),
    }


def _numbers(summary: Summary) -> dict[str, Any]:
    return {name: getattr(summary, name) for name in _KEPT}


def _words(numbers: dict[str, Any]) -> str:
    speeds = {lane: one["speedup"] for lane, one in numbers["lanes"].items()}
    return ", ".join(f"{lane} {'-' if speed is None else f'{speed:.2f}x'}" for lane, speed in speeds.items())
