"""Two sides timed in turn on the same prompts: A B, then B A, so that a machine that drifts favours neither."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from specviz.experiments.aggregate import described
from specviz.experiments.reply import Reply, Writer

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Task:
    """A prompt of the benchmark as ids (n,), and how many tokens both sides write."""

    name: str
    ids: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Two replies to one task, one directly after the other."""

    task: Task
    ours: Reply
    theirs: Reply

    @property
    def ratio(self) -> float | None:
        """How many times faster ours decodes; None where a side shows no decoding apart from its prompt."""
        ours, theirs = self.ours.tokens_per_second, self.theirs.tokens_per_second
        return None if ours is None or theirs is None else ours / theirs

    @property
    def whole_ratio(self) -> float:
        return self.ours.whole_tokens_per_second / self.theirs.whole_tokens_per_second

    @property
    def first_difference(self) -> int | None:
        """The first token, from 0, in which the replies differ; None where they do not."""
        both = zip(self.ours.ids, self.theirs.ids, strict=True)
        return next((index for index, (mine, other) in enumerate(both) if mine != other), None)


def duel(
    ours: Writer, theirs: Writer, tasks: Sequence[Task], repeats: int, seconds: float, tell: Tell
) -> tuple[Pair, ...]:
    """`repeats` pairs of each task; after each repeat the side that was second goes first.

    Once `seconds` have passed no further repeat begins; the first is always made.
    """
    pairs: list[Pair] = []
    end = time.monotonic() + seconds
    for repeat in range(repeats):
        if pairs and time.monotonic() > end:
            tell(f"the time is up after {repeat} of {repeats} repeats")
            break
        for task in tasks:
            replies = {}
            for side in (ours, theirs) if repeat % 2 == 0 else (theirs, ours):
                replies[side] = side(task.ids, task.tokens)
            pair = Pair(task, replies[ours], replies[theirs])
            pairs.append(pair)
            tell(f"{task.name} {repeat + 1}/{repeats}: {_times(pair)}")
    return tuple(pairs)


def judged(pairs: Sequence[Pair]) -> dict[str, Any]:
    """What the pairs say: the ratio over all, both sides' speeds, and each prompt on its own."""
    tasks = tuple(dict.fromkeys(pair.task for pair in pairs))
    by_task = {task.name: [pair for pair in pairs if pair.task == task] for task in tasks}
    return {
        **_ratios(pairs),
        "ours": _side(pair.ours for pair in pairs),
        "theirs": _side(pair.theirs for pair in pairs),
        "prompts": {name: _prompt(own) for name, own in by_task.items()},
    }


def _prompt(pairs: Sequence[Pair]) -> dict[str, Any]:
    task = pairs[0].task
    return {
        "prompt_tokens": len(task.ids),
        "tokens": task.tokens,
        **_ratios(pairs),
        "ours": _side(pair.ours for pair in pairs),
        "theirs": _side(pair.theirs for pair in pairs),
        "first_difference": pairs[0].first_difference,
    }


def _ratios(pairs: Sequence[Pair]) -> dict[str, Any]:
    return {
        "ratio": described([pair.ratio for pair in pairs if pair.ratio is not None]),
        "whole_ratio": described([pair.whole_ratio for pair in pairs]),
    }


def _side(replies: Iterable[Reply]) -> dict[str, Any]:
    replies = tuple(replies)
    return {
        "tokens_per_second": described([r.tokens_per_second for r in replies if r.tokens_per_second is not None]),
        "whole_tokens_per_second": described([reply.whole_tokens_per_second for reply in replies]),
        "tau": described([reply.tau for reply in replies if reply.tau is not None]),
    }


def _times(pair: Pair) -> str:
    if pair.ratio is None:
        ours, theirs, ratio = pair.ours.whole_tokens_per_second, pair.theirs.whole_tokens_per_second, pair.whole_ratio
    else:
        ours, theirs, ratio = pair.ours.tokens_per_second, pair.theirs.tokens_per_second, pair.ratio
    return f"{ours:.1f} against {theirs:.1f} tokens/s, {ratio:.2f}x"
