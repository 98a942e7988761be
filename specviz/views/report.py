"""The report on a race, ready to be shown: headline, badges, table, reasons, facts. Made once, here, from the trace.

The race view displays it as it is, a saved page carries it, `/summary` returns it, and the terminal prints the same
numbers and words. It holds texts and no logic; `specviz.metrics` decides what they say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from specviz.metrics import (
    LaneVerdict,
    Place,
    Row,
    Speed,
    Spread,
    Summary,
    rows,
    shown_in,
    summarize,
    values,
    verdict_of,
)
from specviz.metrics.formats import UNDEFINED, Format, counted, parameters, percent, times
from specviz.metrics.words import Badge, Headline, badge, headline, holds_back, paragraph, policy_bias, reason, sentence
from specviz.traces import Calibrated, Event, Header, LaneInfo, LaneStarted, ModelInfo, RaceStarted
from specviz.views.lane_names import short_names, source_label, title

SOURCE_HEAD = ("drafted", "accepted", "of these drafted", "of all accepted")


@dataclass(frozen=True, slots=True)
class SourceRow:
    """What one source of a lane's drafts gave, a cell per column of SOURCE_HEAD; `lane` is empty unless several do."""

    lane: str
    source: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What a race came to. Before its end there are only `facts`, and `headline` is None.

    `loss`: the best lane is slower than standard decoding. `lanes` are the names of the table's columns, `rows` its
    rows with a cell per lane. `reasons` holds a paragraph per drafting lane. `runs` is the number of runs measured.
    """

    facts: tuple[str, ...]
    headline: Headline | None = None
    loss: bool = False
    badges: tuple[Badge, ...] = ()
    lanes: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    reasons: tuple[str, ...] = ()
    source_head: tuple[str, ...] = SOURCE_HEAD
    sources: tuple[SourceRow, ...] = ()
    runs: int = 0

    def as_json(self) -> dict[str, Any]:
        """The report as JSON holds it."""
        return asdict(self)


def opening_report(header: Header) -> Report:
    """What can be told of a race when it starts."""
    return Report(tuple(_facts(header, {}, header.curve is not None)))


def race_report(
    events: Sequence[Event], summaries: Mapping[str, Summary] | None = None, spreads: Mapping[str, Spread] | None = None
) -> Report:
    """The report on a race that is over.

    `summaries` are its numbers by lane, by default counted from the events; `spreads` the spread of each lane's
    speed-up where the numbers are medians of several runs. Raises TraceError for a stream that is no race.
    """
    summaries = summarize(events) if summaries is None else summaries
    header = next(event.header for event in events if isinstance(event, RaceStarted))
    started = {event.lane: event for event in events if isinstance(event, LaneStarted)}
    measured = header.curve is not None or any(isinstance(event, Calibrated) for event in events)
    spreads = spreads or {}
    drafting = [lane.name for lane in header.lanes if lane.draft != "none" and not summaries[lane.name].standard]
    verdicts = {name: verdict_of(summaries[name], spreads.get(name)) for name in drafting}
    names = short_names(events)
    runs = max((spread.runs for spread in spreads.values()), default=1)
    best = max(drafting, key=lambda name: verdicts[name].ratio or 0.0, default=None)
    return Report(
        facts=tuple(_facts(header, started, measured)),
        headline=_headline(best, verdicts, names),
        loss=best is not None and verdicts[best].speed is Speed.SLOWER,
        badges=(*_badges(verdicts, names), Badge(f"n = {counted(runs, 'run')}")),
        lanes=tuple(summaries),
        rows=(*rows(list(summaries.values()), shown_in(Place.PAGE)), output_row(list(summaries.values()))),
        reasons=tuple(_named(name, paragraph(verdict), verdicts, names) for name, verdict in verdicts.items()),
        sources=tuple(_sources(header, summaries, names)),
        runs=runs,
    )


def lane_json(summary: Summary) -> dict[str, Any]:
    """Every number of a lane by its field, and its verdict in words."""
    verdict = verdict_of(summary)
    because = verdict.because
    return {
        **values(summary),
        "verdict": sentence(verdict),
        "because": None if because is None else reason(because, verdict.rounds),
        "holds_back": holds_back(verdict),
        "policy_bias": policy_bias(verdict),
    }


def output_row(summaries: Sequence[Summary]) -> Row:
    """Whether each lane wrote what standard decoding wrote, as a row of a table."""
    cells = tuple(badge(verdict_of(summary)).text for summary in summaries)
    return Row("output", "Whether the lane wrote what standard decoding wrote.", cells)


def _headline(best: str | None, verdicts: Mapping[str, LaneVerdict], names: Mapping[str, str]) -> Headline:
    """The best lane's verdict, then the speed of each other lane."""
    if best is None:
        return Headline("", "")
    said = headline(verdicts[best])
    others = sorted((name for name in verdicts if name != best), key=lambda name: -(verdicts[name].ratio or 0.0))
    speeds = ", ".join(f"{names[name]} {_timed(verdicts[name])}" for name in others)
    rest = _named(best, said.rest, verdicts, names)
    return Headline(said.big, f"{rest}. {speeds}" if speeds else rest)


def _timed(verdict: LaneVerdict) -> str:
    return "not timed" if verdict.ratio is None else times(verdict.ratio)


def _named(name: str, text: str, verdicts: Mapping[str, LaneVerdict], names: Mapping[str, str]) -> str:
    """`text` with its lane's short name before it where there are several."""
    return f"{names[name]}: {text}" if len(verdicts) > 1 else text


def _badges(verdicts: Mapping[str, LaneVerdict], names: Mapping[str, str]) -> Iterator[Badge]:
    """One badge where all lanes have the same, else one per lane."""
    found = {name: badge(verdict) for name, verdict in verdicts.items()}
    if len(set(found.values())) == 1:
        yield next(iter(found.values()))
    else:
        yield from (Badge(f"{names[name]}: {each.text}", each.kind) for name, each in found.items())


def _sources(header: Header, summaries: Mapping[str, Summary], names: Mapping[str, str]) -> Iterator[SourceRow]:
    lanes = [lane for lane in header.lanes if summaries[lane.name].sources]
    for lane in lanes:
        summary = summaries[lane.name]
        for one in summary.sources:
            share = percent(one.accepted / summary.accepted) if summary.accepted else UNDEFINED
            cells = (Format.COUNT(one.drafted), Format.COUNT(one.accepted), percent(one.acceptance), share)
            yield SourceRow(names[lane.name] if len(lanes) > 1 else "", source_label(lane, one.source), cells)


def _facts(header: Header, started: Mapping[str, LaneStarted], measured: bool) -> Iterator[str]:
    """What ran on what, with which settings; `measured` says whether the verify curve is known."""
    if header.prompt:
        yield f"prompt “{header.prompt}”"
    yield f"target {_model(header.target)}, {header.target.execution} passes"
    for lane in header.lanes:
        if lane.draft != "none":
            yield ", ".join(_lane_facts(lane, started.get(lane.name)))
    yield f"{header.device_name}, {header.dtype}"
    yield counted(header.threads, "thread")
    if header.lanes:
        settings = header.lanes[-1].settings
        yield f"temperature {settings.temperature:g}"
        yield f"seed {settings.seed}"
    yield f"prefill {Format.SECONDS(header.prefill_seconds)} (shared by all lanes)"
    yield f"load {Format.SECONDS(header.load_seconds)}"
    yield f"warm-up {Format.SECONDS(header.warmup_seconds)}"
    if not measured:
        yield "verify curve pending"
    yield f"recorded {header.created}"
    yield from (f"{name} {version}" for name, version in header.versions.items())


def _lane_facts(lane: LaneInfo, started: LaneStarted | None) -> Iterable[str]:
    yield f"{title(lane)}: k = {lane.settings.k}"
    if lane.draft_model is not None:
        yield _model(lane.draft_model)
    if lane.note:
        yield lane.note
    if started is not None and started.prefill_seconds:
        yield f"own prefill {Format.SECONDS(started.prefill_seconds)}"


def _model(model: ModelInfo) -> str:
    return f"{model.name} ({parameters(model.parameters)})"
