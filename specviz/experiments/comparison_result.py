"""The result of a comparison of drafts: by prompt, by group, the best k of each draft, combined drafts against parts.

Of each prompt the median over its repeats counts; of a group the mean of its prompts and the worst of them. Speed-up is
decode seconds per kept token, standard over speculative, in one race.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from specviz.core.draft_spec import DraftSpec
from specviz.drafting import strategy_of
from specviz.experiments.aggregate import Distribution, MeanAndWorst, Number, median
from specviz.experiments.comparison_log import LaneRun, LoggedRace
from specviz.experiments.json_form import inlined
from specviz.experiments.prompt_set import FixedPrompt, PromptSet
from specviz.metrics.definitions import Group, Place, shown_in

ALL = "all"  # the group of every prompt
# averaged over prompts: rates and costs that the bench shows
AVERAGED = tuple(one.field for one in shown_in(Place.BENCH) if one.group in (Group.RATES, Group.COSTS))
_SHARE = 0.97


@dataclass(frozen=True, slots=True)
class PromptFacts:
    """A prompt as the standard lane decoded it."""

    group: str
    prompt_tokens: int | None
    tokens: int | None
    tokens_per_second: Distribution

    @classmethod
    def of(cls, prompt: FixedPrompt, races: Sequence[LoggedRace]) -> PromptFacts:
        own = [race for race in races if race.prompt == prompt.name]
        speeds = Distribution.of(race.standard.numbers["tokens_per_second"] for race in own)
        first = own[0] if own else None
        return cls(prompt.group, first and first.prompt_tokens, first and first.standard.kept_tokens, speeds)


@dataclass(frozen=True, slots=True)
class PromptNumbers:
    """A lane on one prompt: the speed-up of every repeat, and the medians of the other numbers by name.

    `identical`: whether every repeat wrote the standard lane's text, None where that is not defined.
    """

    speedup: Distribution
    tokens: int
    medians: Mapping[str, Number] = inlined()
    identical: bool | None
    first_divergence: int | None

    @classmethod
    def of(cls, runs: Sequence[LaneRun]) -> PromptNumbers:
        identical = [run.identical_to_standard for run in runs]
        divergences = (run.first_divergence for run in runs)
        return cls(
            Distribution.of(run.numbers["speedup"] for run in runs),
            max((run.kept_tokens for run in runs), default=0),
            {name: median(run.numbers[name] for run in runs) for name in AVERAGED},
            None if None in identical else all(identical),
            next((index for index in divergences if index is not None), None),
        )


@dataclass(frozen=True, slots=True)
class GroupNumbers:
    """A lane on the prompts of a group, of which it was measured on `of`; on `identical` the text was standard's."""

    of: int
    identical: int
    speedup: MeanAndWorst
    means: Mapping[str, MeanAndWorst] = inlined()

    @classmethod
    def over(cls, prompts: Mapping[str, PromptNumbers]) -> GroupNumbers:
        return cls(
            len(prompts),
            sum(one.identical is True for one in prompts.values()),
            MeanAndWorst.of({name: one.speedup.median for name, one in prompts.items()}),
            {
                number: MeanAndWorst.of({name: one.medians[number] for name, one in prompts.items()})
                for number in AVERAGED
            },
        )


@dataclass(frozen=True, slots=True)
class LaneNumbers:
    """A draft at one k; `prompts` are those on which it did not fail."""

    prompts: Mapping[str, PromptNumbers]
    groups: Mapping[str, GroupNumbers]

    @classmethod
    def of(cls, lane: str, races: Sequence[LoggedRace], prompts: PromptSet) -> LaneNumbers:
        runs = [(race.prompt, race.lanes[lane]) for race in races if lane in race.lanes]
        by_prompt = {
            prompt.name: PromptNumbers.of([run for name, run in runs if name == prompt.name and not run.failed()])
            for prompt in prompts.prompts
        }
        measured = {name: one for name, one in by_prompt.items() if one.speedup.samples}
        members = {group: prompts.names_in(group) for group in prompts.groups} | {ALL: tuple(measured)}
        groups = {
            group: GroupNumbers.over({name: measured[name] for name in names if name in measured})
            for group, names in members.items()
        }
        return cls(measured, groups)


@dataclass(frozen=True, slots=True)
class DraftNumbers:
    """A draft at each k that was compared."""

    ks: Mapping[int, LaneNumbers]

    @property
    def best_k(self) -> dict[str, int | None]:
        """By group, the k of the best mean speed-up."""
        groups = next(iter(self.ks.values())).groups
        return {group: self._best_k(group) for group in groups}

    def at_best_k(self) -> LaneNumbers:
        """At the k that is best over all prompts."""
        return self.ks[self.best_k[ALL]]

    def _best_k(self, group: str) -> int | None:
        means = {k: lane.groups[group].speedup.mean for k, lane in self.ks.items()}
        known = {k: mean for k, mean in means.items() if mean is not None}
        return max(known, key=known.__getitem__, default=None)


@dataclass(frozen=True, slots=True)
class AgainstParts:
    """A draft made of others against the best of them on each prompt, each at its own best k over all prompts."""

    draft: str
    best_k: Mapping[str, int]
    share: float
    ratio: Mapping[str, float]

    @classmethod
    def of(
        cls, drafts: Mapping[str, DraftNumbers], combined: str, parts: Sequence[str], share: float = _SHARE
    ) -> AgainstParts:
        best = {name: drafts[name].at_best_k().prompts for name in (combined, *parts)}
        ratio = {
            prompt: own.speedup.median / max(best[part][prompt].speedup.median for part in parts)
            for prompt, own in best[combined].items()
            if all(prompt in best[part] for part in parts)
        }
        return cls(combined, {name: drafts[name].best_k[ALL] for name in best}, share, ratio)

    @property
    def held(self) -> int:
        """The prompts on which it reaches `share` of the best part's speed-up."""
        return sum(ratio >= self.share for ratio in self.ratio.values())


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """`drafts` by their spelling without k; `failed`: (lane, message) of every lane that failed in a race."""

    prompts: Mapping[str, PromptFacts]
    drafts: Mapping[str, DraftNumbers]
    against_parts: tuple[AgainstParts, ...]
    failed: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, races: Sequence[LoggedRace], prompts: PromptSet, drafts: Sequence[DraftSpec]) -> ComparisonResult:
        numbers = _by_draft(races, prompts, drafts)
        measured = [draft.without_k for draft in drafts if draft.without_k.spell() in numbers]
        failed = {(lane, run.message or "") for race in races for lane, run in race.lanes.items() if run.failed()}
        return cls(
            {prompt.name: PromptFacts.of(prompt, races) for prompt in prompts.prompts},
            numbers,
            tuple(AgainstParts.of(numbers, combined, parts) for combined, parts in _combined(measured)),
            tuple(sorted(failed)),
        )


def _by_draft(races: Sequence[LoggedRace], prompts: PromptSet, drafts: Sequence[DraftSpec]) -> dict[str, DraftNumbers]:
    """The drafts that were measured, in the order in which they were named."""
    ks: dict[str, dict[int, LaneNumbers]] = {}
    for draft in drafts:
        lane = LaneNumbers.of(draft.spell(), races, prompts)
        if lane.prompts:
            ks.setdefault(draft.without_k.spell(), {})[draft.k] = lane
    return {name: DraftNumbers(own) for name, own in ks.items()}


def _combined(drafts: Sequence[DraftSpec]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(combined draft, its parts), for each draft all of whose parts were measured, with the same model."""
    for draft in dict.fromkeys(drafts):
        parts = [_measured_part(name, draft.source, drafts) for name in strategy_of(draft.strategy).parts]
        if parts and None not in parts:
            yield draft.spell(), tuple(part.spell() for part in parts)


def _measured_part(strategy: str, source: str | None, drafts: Sequence[DraftSpec]) -> DraftSpec | None:
    """The first draft of this strategy, with this source where it takes a model."""
    model = source if strategy_of(strategy).takes_model else None
    return next((draft for draft in drafts if (draft.strategy, draft.source) == (strategy, model)), None)
