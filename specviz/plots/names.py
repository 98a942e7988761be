"""Names of lanes for a legend, short as in the race view: the strategy's label and k, not the argument as typed.

Knows the header of a trace and nothing of figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from specviz.traces import Event, LaneInfo, RaceStarted


def short_names(events: Iterable[Event]) -> dict[str, str]:
    """{lane's name: short name}; two that would be alike are told apart by draft model, options or the whole name."""
    header = next((event.header for event in events if isinstance(event, RaceStarted)), None)
    lanes = header.lanes if header else ()
    shared: dict[str, list[LaneInfo]] = {}
    for lane in lanes:
        shared.setdefault(_short(lane), []).append(lane)
    names = {lane.name: name for short, alike in shared.items() for lane, name in _told_apart(short, alike)}
    return {lane.name: names[lane.name] for lane in lanes}


def _told_apart(short: str, lanes: Sequence[LaneInfo]) -> list[tuple[LaneInfo, str]]:
    if len(lanes) == 1:
        return [(lanes[0], short)]
    details = next(
        words for words in (list(map(detail, lanes)) for detail in _DETAILS) if len(set(words)) == len(lanes)
    )
    return [(lane, f"{short}, {detail}" if detail else short) for lane, detail in zip(lanes, details, strict=True)]


def _short(lane: LaneInfo) -> str:
    label = lane.label or lane.name
    title = label[:1].upper() + label[1:]
    return title if lane.draft == "none" else f"{title} k={lane.settings.k}"


def _model(lane: LaneInfo) -> str:
    return lane.draft_model.name if lane.draft_model else ""


def _options(lane: LaneInfo) -> str:
    return " ".join(f"{name}={value}" for name, value in lane.options.items())


def _name(lane: LaneInfo) -> str:
    return lane.name


# the last one always tells lanes apart: a race's names differ
_DETAILS: tuple[Callable[[LaneInfo], str], ...] = (_model, _options, _name)
