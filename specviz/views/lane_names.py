"""Short names of lanes: the strategy's label and k, with as much as tells alike lanes apart.

The race view's names.js gives the same names; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from specviz.metrics import branches
from specviz.traces import Event, LaneInfo, RaceStarted, RoundDone


def short_names(events: Iterable[Event]) -> dict[str, str]:
    """{lane's name: short name}; alike lanes are told apart by what differs, else by their whole names."""
    lanes: tuple[LaneInfo, ...] = ()
    trees: set[str] = set()
    for event in events:
        if isinstance(event, RaceStarted):
            lanes = event.header.lanes
            trees = {lane.name for lane in lanes if lane.tree}
        elif isinstance(event, RoundDone) and event.lane not in trees and branches(event.round):
            trees.add(event.lane)
    shared: dict[str, list[LaneInfo]] = {}
    for lane in lanes:
        shared.setdefault(_short(lane, lane.name in trees), []).append(lane)
    names = {lane.name: name for short, alike in shared.items() for lane, name in _told_apart(short, alike)}
    if len(set(names.values())) < len(names):  # a name that was made longer may be another's
        return {lane.name: lane.name for lane in lanes}
    return {lane.name: names[lane.name] for lane in lanes}


def _told_apart(short: str, lanes: Sequence[LaneInfo]) -> list[tuple[LaneInfo, str]]:
    if len(lanes) == 1:
        return [(lanes[0], short)]
    found = (detail(lanes) for detail in _DETAILS)
    details = next(words for words in found if len(set(words)) == len(lanes))
    return [(lane, f"{short}, {detail}" if detail else short) for lane, detail in zip(lanes, details, strict=True)]


def title(lane: LaneInfo) -> str:
    """The lane's name as a heading: its strategy's label."""
    label = lane.label or lane.name
    return label[:1].upper() + label[1:]


def source_label(lane: LaneInfo, source: str) -> str:
    """A source of the lane's drafts in words; one that its strategy does not describe, by its own name."""
    return next((one.label for one in lane.sources if one.name == source), source)


def _short(lane: LaneInfo, tree: bool) -> str:
    if lane.draft == "none":
        return title(lane)
    return f"{title(lane)}, {lane.settings.k} nodes" if tree else f"{title(lane)} k={lane.settings.k}"


def _models(lanes: Sequence[LaneInfo]) -> list[str]:
    return [lane.draft_model.name if lane.draft_model else "" for lane in lanes]


def _policies(lanes: Sequence[LaneInfo]) -> list[str]:
    return [lane.settings.k_policy for lane in lanes]


def _options(lanes: Sequence[LaneInfo]) -> list[str]:
    """For each lane, the options that differ between the lanes."""
    names = dict.fromkeys(name for lane in lanes for name in lane.options)
    differing = [name for name in names if len({_spelt(lane.options.get(name)) for lane in lanes}) > 1]
    spelt = ({name: _spelt(lane.options.get(name)) for name in differing} for lane in lanes)
    return [" ".join(f"{name}={value}" for name, value in values.items() if value) for values in spelt]


def _all_three(lanes: Sequence[LaneInfo]) -> list[str]:
    found = zip(_models(lanes), _options(lanes), _policies(lanes), strict=True)
    return [", ".join(filter(None, words)) for words in found]


def _names(lanes: Sequence[LaneInfo]) -> list[str]:
    return [lane.name for lane in lanes]


def _spelt(value: Any) -> str:
    """An option's value as people type it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "+".join(map(_spelt, value))
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# the last one always tells lanes apart: the names in a race differ
_DETAILS: tuple[Callable[[Sequence[LaneInfo]], list[str]], ...] = (_models, _options, _policies, _all_three, _names)
