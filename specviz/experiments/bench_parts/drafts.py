"""Drafts on the comparison prompts, greedy: every lane in one race with standard decoding, repeated, no telemetry.

A race alternates its lanes by their clocks, so a machine that drifts favours none of them; a lane's place among the
others changes with each repeat.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import ContextError
from specviz.experiments.bench_report import PartResult, Table
from specviz.experiments.comparison import DraftComparison, split_into_races
from specviz.experiments.comparison_log import ComparisonLog, LaneRun, LoggedRace
from specviz.experiments.comparison_result import ComparisonResult
from specviz.experiments.comparison_tables import comparison_tables
from specviz.experiments.harness import Harness, Needs, Skipped
from specviz.experiments.json_form import inlined
from specviz.experiments.machine_facts import name_of
from specviz.experiments.prompt_set import COMPARISON, prompt_set
from specviz.experiments.repeat import Budget, rotated
from specviz.metrics import Summary, summarize
from specviz.races.lanes import make_lanes
from specviz.races.prompts import make_prompt
from specviz.races.racing import STANDARD, Lane, race

TITLE = "drafts on the comparison prompts"
NEEDS = Needs.TARGET
_WARM_TOKENS = 8


@dataclass(frozen=True, slots=True)
class DraftsResult(PartResult):
    """`repeats` that were begun, of replies of at most `longest` tokens."""

    dtype: str
    longest: int
    repeats: int
    comparison: ComparisonResult = inlined()

    def tables(self) -> Iterator[Table]:
        what = f"{self.repeats} repeats of at most {self.longest} tokens, greedy, {self.dtype}"
        return comparison_tables(self.comparison, what)

    def notes(self) -> Iterator[str]:
        return (f"{lane} failed: {message}" for lane, message in self.comparison.failed)


def measure(harness: Harness) -> DraftsResult:
    comparison = harness.plan.comparison
    if comparison is None:
        raise Skipped("Name the drafts to compare, as in --only drafts --draft prompt-lookup.")
    log = ComparisonLog(comparison.log, _facts(harness, comparison))
    _Comparing(harness, comparison, log).run()
    races = log.races_of([draft.spell() for draft in comparison.drafts], comparison.repeats)
    return DraftsResult(
        name_of(harness.target.dtype),
        comparison.settings.max_new_tokens,
        max((each.repeat + 1 for each in races), default=0),
        ComparisonResult.of(races, prompt_set(COMPARISON), comparison.drafts),
    )


class _Comparing:
    """The races of a comparison, added to its log."""

    def __init__(self, harness: Harness, comparison: DraftComparison, log: ComparisonLog) -> None:
        self._tell, self._comparison, self._log = harness.tell, comparison, log
        self._prompts = _prompts(harness)
        self._lanes = _lanes(harness, comparison)
        self._warm: set[DraftSpec] = set()

    def run(self) -> None:
        """Run every race that the log lacks, repeat by repeat, so that a shortened comparison covers every prompt."""
        budget, repeats = Budget(self._comparison.seconds), self._comparison.repeats
        for repeat, prompt, drafts in self._missing():
            if budget.spent:
                self._tell(f"the time is up in repeat {repeat + 1} of {repeats}")
                return
            ids = self._prompts[prompt]
            self._warm_up(drafts, ids)
            found = self._race(rotated(drafts, repeat), ids)
            self._log.add(LoggedRace(prompt, repeat, len(ids), LaneRun.of(found.pop(STANDARD)), _runs(found)))
            self._tell(f"{prompt} {repeat + 1}/{repeats}: {_speedups(found)}")

    def _missing(self) -> Iterator[tuple[int, str, tuple[DraftSpec, ...]]]:
        """(repeat, prompt, drafts) of every race that the log lacks."""
        for repeat in range(self._comparison.repeats):
            for prompt in self._prompts:
                done = self._log.lanes_of(prompt, repeat)
                missing = [draft for draft in self._comparison.drafts if draft.spell() not in done]
                yield from ((repeat, prompt, drafts) for drafts in split_into_races(missing))

    def _warm_up(self, drafts: Sequence[DraftSpec], ids: tuple[int, ...]) -> None:
        """A few tokens of each lane that has not run yet: a kernel's first call is nobody's speed."""
        fresh = [draft for draft in drafts if draft not in self._warm]
        if fresh:
            self._race(fresh, ids, max_new_tokens=_WARM_TOKENS)
            self._warm.update(fresh)

    def _race(self, drafts: Sequence[DraftSpec], ids: tuple[int, ...], **settings: int) -> dict[str, Summary]:
        lanes = (self._lanes[name] for name in (STANDARD, *(draft.spell() for draft in drafts)))
        running = [replace(lane, settings=replace(lane.settings, **settings)) for lane in lanes]
        return summarize(race(running, ids, calibrate=False))


def _lanes(harness: Harness, comparison: DraftComparison) -> dict[str, Lane]:
    """The standard lane and one per draft, by name; each draft model is loaded once."""
    lanes = make_lanes(harness.target, comparison.drafts, comparison.settings, harness.draft_of)
    return {lane.name: lane for lane in lanes}


def _prompts(harness: Harness) -> dict[str, tuple[int, ...]]:
    """Each prompt's ids. Raises Skipped where the target's context is too short for one of them."""
    try:
        return {each.name: make_prompt(harness.target, each.text).ids for each in prompt_set(COMPARISON).prompts}
    except ContextError as error:
        raise Skipped(f"The prompts do not fit into the target's context. {error}") from error


def _facts(harness: Harness, comparison: DraftComparison) -> dict[str, str | int]:
    """What races must share to be compared."""
    info = harness.target.info
    return {
        "target": f"{info.name} {info.revision or ''} {info.execution}".strip(),
        "dtype": name_of(harness.target.dtype),
        "device": str(harness.target.device),
        "tokens": comparison.settings.max_new_tokens,
        "prompts": prompt_set(COMPARISON).fingerprint,
    }


def _runs(found: Mapping[str, Summary]) -> dict[str, LaneRun]:
    return {name: LaneRun.of(summary) for name, summary in found.items()}


def _speedups(found: Mapping[str, Summary]) -> str:
    speeds = {name: summary.speedup for name, summary in found.items()}
    return ", ".join(f"{name} {'-' if speed is None else f'{speed:.2f}x'}" for name, speed in speeds.items())
