"""A paired comparison: two writers timed in turn on the same prompts, and the ratios of neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from specviz.experiments.aggregate import Distribution
from specviz.experiments.bench_report import Table, median_cell, number_cell
from specviz.experiments.json_form import inlined
from specviz.experiments.repeat import Budget, repeats, take_turns
from specviz.experiments.writers import Reply, Writer

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Task:
    """A prompt of the benchmark as ids (n,), and how many tokens both sides write."""

    name: str
    ids: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Two replies to one task, written one directly after the other."""

    task: Task
    ours: Reply
    theirs: Reply

    @property
    def first_difference(self) -> int | None:
        """The first token, from 0, in which the replies differ; None where they do not."""
        both = zip(self.ours.ids, self.theirs.ids, strict=True)
        return next((index for index, (mine, other) in enumerate(both) if mine != other), None)


@dataclass(frozen=True, slots=True)
class SideSpeeds:
    """How fast one side was; the first two in tokens per second, of decoding alone and of whole calls."""

    tokens_per_second: Distribution
    whole_tokens_per_second: Distribution
    tau: Distribution

    @classmethod
    def of(cls, replies: Iterable[Reply]) -> SideSpeeds:
        replies = tuple(replies)
        return cls(
            Distribution.of(reply.tokens_per_second for reply in replies),
            Distribution.of(reply.whole_tokens_per_second for reply in replies),
            Distribution.of(reply.tau for reply in replies),
        )


@dataclass(frozen=True, slots=True)
class SpeedComparison:
    """How many times faster ours is, pair by pair: `ratio` of decoding alone, `whole_ratio` of whole calls.

    `ratio` is empty where a side does not show its decoding apart from its prefill.
    """

    ratio: Distribution
    whole_ratio: Distribution
    ours: SideSpeeds
    theirs: SideSpeeds

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> SpeedComparison:
        return cls(
            _ratios(pairs, lambda reply: reply.tokens_per_second),
            _ratios(pairs, lambda reply: reply.whole_tokens_per_second),
            SideSpeeds.of(pair.ours for pair in pairs),
            SideSpeeds.of(pair.theirs for pair in pairs),
        )


@dataclass(frozen=True, slots=True)
class PromptComparison:
    """Both sides on one prompt; `first_difference` is that of the first pair, from 0, None where the texts agree."""

    prompt_tokens: int
    tokens: int
    speeds: SpeedComparison = inlined()
    first_difference: int | None

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> PromptComparison:
        task = pairs[0].task
        return cls(len(task.ids), task.tokens, SpeedComparison.of(pairs), pairs[0].first_difference)


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """Both sides over all prompts, and on each by its name."""

    speeds: SpeedComparison = inlined()
    prompts: Mapping[str, PromptComparison]

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> PairedComparison:
        names = dict.fromkeys(pair.task.name for pair in pairs)
        prompts = {name: PromptComparison.of([pair for pair in pairs if pair.task.name == name]) for name in names}
        return cls(SpeedComparison.of(pairs), prompts)

    def table(self, title: str) -> Table:
        """Decoding alone, with the whole calls' ratio beside it."""
        head = ("prompt", "tokens", "ours, tokens/s", "theirs, tokens/s", "ratio", "with prefill", "tau", "theirs")
        return Table(title, head, tuple(_decoding_row(*row) for row in self._rows()))

    def whole_table(self, title: str) -> Table:
        """Whole calls alone, for a side that shows nothing else."""
        head = ("prompt", "tokens", "ours, tokens/s", "theirs, tokens/s", "ratio")
        return Table(title, head, tuple(_whole_row(*row) for row in self._rows()))

    def _rows(self) -> Iterator[tuple[str, str, SpeedComparison]]:
        for name, prompt in self.prompts.items():
            yield name, str(prompt.tokens), prompt.speeds
        yield "all", "", self.speeds


def compare_in_turn(
    ours: Writer, theirs: Writer, tasks: Sequence[Task], times: int, seconds: float, tell: Tell
) -> tuple[Pair, ...]:
    """`times` pairs of each task; the side that goes first changes with each repeat.

    Once `seconds` have passed no further repeat begins; the first is always made.
    """
    pairs: list[Pair] = []
    for repeat in repeats(times, Budget(seconds)):
        for task in tasks:
            pairs.append(_pair(ours, theirs, task, repeat))
            tell(f"{task.name} {repeat + 1}/{times}: {_speeds(SpeedComparison.of(pairs[-1:]))}")
    done = len(pairs) // len(tasks)
    if done < times:
        tell(f"the time is up after {done} of {times} repeats")
    return tuple(pairs)


def _pair(ours: Writer, theirs: Writer, task: Task, repeat: int) -> Pair:
    sides = {"ours": lambda: ours(task.ids, task.tokens), "theirs": lambda: theirs(task.ids, task.tokens)}
    return Pair(task, **take_turns(sides, repeat))


def _ratios(pairs: Sequence[Pair], speed: Callable[[Reply], float | None]) -> Distribution:
    return Distribution.of_ratios([speed(pair.ours) for pair in pairs], [speed(pair.theirs) for pair in pairs])


def _speeds(one: SpeedComparison) -> str:
    whole = not one.ratio.samples
    ratio = one.whole_ratio if whole else one.ratio
    ours, theirs = (
        side.whole_tokens_per_second if whole else side.tokens_per_second for side in (one.ours, one.theirs)
    )
    return f"{ours.median:.1f} against {theirs.median:.1f} tokens/s, {ratio.median:.2f}x"


def _decoding_row(name: str, tokens: str, one: SpeedComparison) -> tuple[str, ...]:
    return (
        name,
        tokens,
        median_cell(one.ours.tokens_per_second, ".1f"),
        median_cell(one.theirs.tokens_per_second, ".1f"),
        median_cell(one.ratio, ".2f", "x"),
        median_cell(one.whole_ratio, ".2f", "x"),
        number_cell(one.ours.tau.median, ".2f"),
        number_cell(one.theirs.tau.median, ".2f"),
    )


def _whole_row(name: str, tokens: str, one: SpeedComparison) -> tuple[str, ...]:
    ours, theirs = (median_cell(side.whole_tokens_per_second, ".1f") for side in (one.ours, one.theirs))
    return name, tokens, ours, theirs, median_cell(one.whole_ratio, ".2f", "x")
