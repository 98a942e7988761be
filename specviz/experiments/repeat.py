"""Repeat measurements, alternate the order of what is compared, and keep to a time budget. Standard library only.

A machine drifts: it warms up, and others use it. So what is compared is measured in turn, one directly after the other,
and each side goes first as often as any other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Side = TypeVar("Side", bound=Hashable)
Result = TypeVar("Result")


class Budget:
    """`seconds` of time from now on."""

    def __init__(self, seconds: float = math.inf) -> None:
        self._end = time.monotonic() + seconds

    @property
    def spent(self) -> bool:
        return time.monotonic() > self._end


def repeats(count: int, budget: Budget | None = None) -> Iterator[int]:
    """The indices of up to `count` repeats. None begins once the budget is spent, except the first."""
    for repeat in range(count):
        if repeat and budget is not None and budget.spent:
            return
        yield repeat


def rotated(items: Sequence[Item], repeat: int) -> tuple[Item, ...]:
    """The items in the order of this repeat: each repeat begins with the next one."""
    first = repeat % len(items)
    return (*items[first:], *items[:first])


def take_turns(sides: Mapping[Side, Callable[[], Result]], repeat: int) -> dict[Side, Result]:
    """Measure each side once, in the order of this repeat. The results are in the order of `sides`."""
    measured = {side: sides[side]() for side in rotated(tuple(sides), repeat)}
    return {side: measured[side] for side in sides}


def measure_in_turn(
    sides: Mapping[Side, Callable[[], Result]], count: int, warm_ups: int = 0
) -> dict[Side, tuple[Result, ...]]:
    """`count` measurements of each side, all sides in turn. `warm_ups` turns before them are measured and dropped."""
    for _ in range(warm_ups):
        take_turns(sides, 0)
    turns = [take_turns(sides, repeat) for repeat in repeats(count)]
    return {side: tuple(turn[side] for turn in turns) for side in sides}
