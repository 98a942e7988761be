"""The numbers behind each figure, as a long table: one row per mark, units in the column's name."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from specviz.metrics import MAX_SEARCHED_K, Summary, accepted_length_law, summarize
from specviz.traces import Event, RaceStarted, RoundDone


def acceptance_by_position_table(events: Iterable[Event]) -> pd.DataFrame:
    """lane, position (from 1), reached (rounds), conditional, vllm (shares; NaN where nothing reached)."""
    rows = [
        (summary.name, position, *numbers)
        for summary in summarize(events).values()
        for position, numbers in enumerate(
            zip(
                summary.reached_per_position,
                summary.accepted_per_position,
                summary.accepted_per_position_vllm,
                strict=True,
            ),
            start=1,
        )
    ]
    return _table(rows, "lane", "position", "reached", "conditional", "vllm")


def accepted_lengths_table(events: Iterable[Event]) -> pd.DataFrame:
    """lane, accepted (tokens), rounds (of those that drafted), geometric: rounds that a constant alpha would give."""
    rows = [
        (summary.name, length, rounds, predicted)
        for summary in summarize(events).values()
        for length, (rounds, predicted) in enumerate(_lengths(summary))
    ]
    return _table(rows, "lane", "accepted", "rounds", "geometric")


def drafts_by_source_table(events: Iterable[Event]) -> pd.DataFrame:
    """lane, source, drafted, accepted, acceptance (accepted / drafted), share (of the lane's accepted ones).

    Only lanes whose draft says which of its sources proposed a token have rows.
    """
    rows = [
        (summary.name, one.source, one.drafted, one.accepted, one.acceptance, _of(one.accepted, summary.accepted))
        for summary in summarize(events).values()
        for one in summary.sources
    ]
    return _table(rows, "lane", "source", "drafted", "accepted", "acceptance", "share")


def speedup_by_k_table(events: Iterable[Event]) -> pd.DataFrame:
    """lane, kind ("predicted" for each k, "measured" at the lane's mean drafted), k, speedup.

    Lanes that drafted trees, or whose verify curve is pending, have no prediction over k.
    """
    rows = []
    for summary in summarize(events).values():
        costs = summary.costs
        if costs and costs.calibrated and costs.depth is None:
            rows += [(summary.name, "predicted", float(k), costs.at(k)) for k in range(MAX_SEARCHED_K + 1)]
        if summary.mean_drafted and summary.speedup is not None:
            rows.append((summary.name, "measured", summary.mean_drafted, summary.speedup))
    return _table(rows, "lane", "kind", "k", "speedup")


def passes_per_token_table(events: Iterable[Event]) -> pd.DataFrame:
    """lane, target and draft passes per kept token."""
    rows = [
        (summary.name, *(_share(passes, summary) for passes in (summary.target_passes, summary.draft_passes)))
        for summary in summarize(events).values()
        if summary.kept_tokens and summary.target_passes is not None
    ]
    return _table(rows, "lane", "target", "draft")


def seconds_by_round_table(events: Iterable[Event]) -> pd.DataFrame:
    """lane, round, draft, verify and other seconds."""
    rows = [
        (event.lane, event.round.index, *(_seconds(event.round, part) for part in ("draft", "verify", "other")))
        for event in events
        if isinstance(event, RoundDone)
    ]
    return _table(rows, "lane", "round", "draft", "verify", "other")


def tokens_by_time_table(events: Iterable[Event]) -> pd.DataFrame:
    """lane, seconds on its own clock (the prefill is over at 0), tokens kept by then; lanes with times only."""
    clocks: dict[str, tuple[float, int]] = {}
    rows = []
    for event in events:
        if isinstance(event, RaceStarted):
            clocks = {lane.name: (0.0, 0) for lane in event.header.lanes}
        elif isinstance(event, RoundDone) and event.round.seconds > 0:
            seconds, tokens = clocks.get(event.lane, (0.0, 0))
            if tokens == 0:
                rows.append((event.lane, 0.0, 0))
            clocks[event.lane] = (seconds + event.round.seconds, tokens + len(event.round.kept))
            rows.append((event.lane, *clocks[event.lane]))
    return _table(rows, "lane", "seconds", "tokens")


def _lengths(summary: Summary) -> list[tuple[int, float]]:
    """For each number of accepted tokens: rounds measured, and rounds expected of alpha and the drafted lengths."""
    longest = len(summary.drafted_lengths)
    measured = [*summary.accepted_lengths, *[0] * (longest - len(summary.accepted_lengths))]
    expected = [0.0] * longest
    for drafted, rounds in enumerate(summary.drafted_lengths):
        for length, chance in enumerate(accepted_length_law(summary.alpha or 0.0, drafted)):
            expected[length] += rounds * chance
    return list(zip(measured, expected, strict=True))


def _share(passes: int | None, summary: Summary) -> float | None:
    return None if passes is None else passes / summary.kept_tokens


def _of(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _seconds(round_: object, part: str) -> float:
    return getattr(round_, f"{part}_seconds") or 0.0


def _table(rows: list[tuple], *columns: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(columns))
