"""The catalogue of a lane's numbers: each once, with its name, symbol, unit, meaning, format and where it is shown.

The page's table and its tooltips, the terminal's table, `race --json`, `/summary`, the bench's tables and
docs/metrics.md are made from it. A new number is a field of Summary and an entry here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from enum import Flag, StrEnum, auto
from typing import Any

from specviz.metrics.formats import Format
from specviz.metrics.summary import Summary


class Place(Flag):
    """Where a number is shown. `/summary` gives every number, and docs/metrics.md lists it."""

    SUMMARY = 0
    JSON = auto()
    TERMINAL = auto()
    PAGE = auto()
    BENCH = auto()


class Group(StrEnum):
    """Numbers that belong together, in the order in which a run happens."""

    IDENTITY = "what ran and what it wrote"
    COUNTS = "counts"
    RATES = "rates"
    POSITIONS = "by position, length and source"
    CLOCKS = "clocks"
    COSTS = "costs"
    PREDICTIONS = "predictions"
    AGREEMENT = "against standard decoding"


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a lane. `field` is its name in Summary, in JSON and in Python.

    `unless_equal` names a number that this one repeats for most lanes: a table leaves it out where all lanes repeat it.
    """

    field: str
    name: str
    meaning: str
    format: Format
    group: Group
    places: Place = Place.SUMMARY
    symbol: str = ""
    unit: str = ""
    unless_equal: str | None = None

    def of(self, summary: Summary) -> Any:
        """The lane's value; None where it is not defined."""
        return getattr(summary, self.field)

    def cell(self, summary: Summary) -> str:
        """The lane's value as it is written for people."""
        return self.format(self.of(summary))

    @property
    def title(self) -> str:
        """The name with its symbol: "tokens per target pass (τ)"."""
        return f"{self.name} ({self.symbol})" if self.symbol else self.name


@dataclass(frozen=True, slots=True)
class Row:
    """A number as a row of a table: a cell per lane. `meaning` is its tooltip."""

    title: str
    meaning: str
    cells: tuple[str, ...]


def _metrics() -> Iterator[Metric]:
    yield from _identity()
    yield from _counts()
    yield from _rates()
    yield from _positions()
    yield from _clocks()
    yield from _costs()
    yield from _predictions()
    yield from _agreement()


# short names for the tables below
_TOLD, _ALL, _TERMINAL = Place.JSON | Place.TERMINAL, Place.JSON | Place.TERMINAL | Place.PAGE, Place.TERMINAL
_DRAFTS, _STUDIED = Place.JSON | Place.TERMINAL | Place.BENCH, Place.TERMINAL | Place.BENCH


def _identity() -> Iterator[Metric]:
    group, text = Group.IDENTITY, Format.TEXT
    yield Metric("name", "lane", "The lane's name in the trace.", text, group)
    yield Metric("draft", "strategy", "The draft strategy's name in the registry.", text, group)
    yield Metric("label", "label", "The draft strategy's name as the page shows it.", text, group)
    yield Metric("sampled", "sampled", "Whether tokens were drawn: the temperature is above 0.", Format.YES_NO, group)
    yield Metric("text", "text", "The text that the lane wrote.", text, group, Place.JSON)
    yield Metric("token_ids", "token ids", "The ids of the kept tokens, in order.", Format.LIST, group, Place.JSON)
    yield Metric("k_policy", "policy of k", "How much of k a round drafts; all but 'fixed' vary it.", text, group)
    yield Metric("message", "error", "The message of the error that ended the lane.", text, group)
    meaning = "Why the lane ended: eos, stop, length, context, cancelled or error."
    yield Metric("finish_reason", "ended by", meaning, text, group, _TOLD)
    yield Metric("kept_tokens", "kept tokens", "Tokens of the output.", Format.COUNT, group, _TOLD, unit="tokens")


def _counts() -> Iterator[Metric]:
    group, count = Group.COUNTS, Format.COUNT
    meaning = "Decode passes of the target; prefill is not counted."
    yield Metric("target_passes", "target passes", meaning, count, group, _ALL | Place.BENCH, unit="passes")
    meaning = "Decode passes of the draft model; 0 for a draft without one."
    yield Metric("draft_passes", "draft passes", meaning, count, group, _ALL | Place.BENCH, unit="passes")
    yield Metric("rounds", "rounds", "Rounds of drafting and verifying.", count, group, _TERMINAL, unit="rounds")
    meaning = "Rounds in which the draft proposed at least one token."
    yield Metric("drafting_rounds", "rounds that drafted", meaning, count, group, _TERMINAL, unit="rounds")
    meaning = "Drafted tokens; in a tree, its nodes."
    yield Metric("drafted", "drafted", meaning, count, group, _DRAFTS, unit="tokens")
    yield Metric("accepted", "accepted", "Drafted tokens that were kept.", count, group, _DRAFTS, unit="tokens")
    meaning = "Positions that the target decided on: accepted tokens plus corrections."
    yield Metric("tested", "tested", meaning, count, group, _DRAFTS, unit="positions")
    yield Metric("wasted_drafts", "drafts wasted", "Drafted tokens not kept.", count, group, _TERMINAL, unit="tokens")
    meaning = "Positions that the target computed; prefill is not counted."
    shown = Place.TERMINAL | Place.PAGE
    yield Metric("positions_computed", "positions computed", meaning, count, group, shown, unit="positions")
    meaning = "Positions that the target computed and did not keep."
    yield Metric("wasted_positions", "positions wasted", meaning, count, group, shown, unit="positions")


def _rates() -> Iterator[Metric]:
    group = Group.RATES
    meaning = "Kept tokens per target pass, corrections and bonus tokens included; 1 for standard decoding."
    yield Metric("tau", "tokens per target pass", meaning, Format.MEAN, group, _ALL | Place.BENCH, "τ", "tokens")
    meaning = (
        "Accepted per drafted tokens. Not α: tokens after a rejection count as drafted, and so do all nodes of a tree."
    )
    yield Metric("acceptance", "accepted / drafted", meaning, Format.PERCENT, group, _STUDIED)
    meaning = "Conditional acceptance: accepted / tested. In a tree, the chance that a depth holds the right token."
    yield Metric("alpha", "accepted / tested", meaning, Format.RATE, group, _DRAFTS, "α")
    meaning = "The same with less noise: the mean of Σ min(p, q) over tested positions."
    yield Metric("alpha_overlap", "mean overlap", meaning, Format.RATE, group, _TERMINAL, "α")
    meaning = "The share of rounds that drafted."
    yield Metric("coverage", "coverage", meaning, Format.PERCENT, group, _DRAFTS)
    meaning = "Drafted tokens (in a tree, nodes) per round that drafted."
    yield Metric("mean_drafted", "mean drafted", meaning, Format.MEAN, group, _ALL | Place.BENCH, unit="tokens")
    meaning = "Drafted depth per round that drafted; for a chain, the same as mean drafted."
    yield Metric(
        "mean_depth", "mean depth", meaning, Format.MEAN, group, _ALL | Place.BENCH, "", "tokens", "mean_drafted"
    )
    meaning = "Accepted tokens per round that drafted."
    yield Metric("mean_accepted", "mean accepted", meaning, Format.MEAN, group, _TERMINAL, unit="tokens")


def _positions() -> Iterator[Metric]:
    group, many = Group.POSITIONS, Format.LIST
    meaning = "At each position: accepted there / rounds that reached it. The first is position 1."
    yield Metric("accepted_per_position", "acceptance by position", meaning, many, group)
    meaning = "At each position: accepted there / rounds that drafted, as vLLM counts."
    yield Metric("accepted_per_position_vllm", "acceptance by position, vLLM", meaning, many, group)
    yield Metric("reached_per_position", "rounds by position", "Rounds that reached each position.", many, group)
    meaning = "Rounds that drafted, by the number of accepted tokens, from 0."
    yield Metric("accepted_lengths", "accepted lengths", meaning, many, group)
    meaning = "Rounds that drafted, by the number of drafted positions, from 0."
    yield Metric("drafted_lengths", "drafted lengths", meaning, many, group)
    meaning = "Drafted and accepted tokens of each source, where a draft names its sources."
    yield Metric("sources", "drafts by source", meaning, many, group, Place.JSON)


def _clocks() -> Iterator[Metric]:
    group, time = Group.CLOCKS, Format.SECONDS
    meaning = "Decode time on the lane's own clock: draft, verify and other; prefill and telemetry are not counted."
    yield Metric("seconds", "decode time", meaning, time, group, _ALL | Place.BENCH, unit="s")
    yield Metric("draft_seconds", "drafting", "Decode time spent drafting.", time, group, _TERMINAL, unit="s")
    yield Metric("verify_seconds", "verifying", "Decode time in target passes.", time, group, _TERMINAL, unit="s")
    yield Metric("other_seconds", "other work", "Decode time around the passes.", time, group, _TERMINAL, unit="s")
    meaning = "Time spent only on explaining the run. It is off the clock."
    yield Metric("telemetry_seconds", "telemetry", meaning, time, group, _TERMINAL, unit="s")
    yield Metric("wall_seconds", "wall time", "Wall time of the lane's turns.", time, group, _TERMINAL, unit="s")
    meaning = "Prefill: the target's, which all lanes share, plus the draft's own."
    yield Metric("prefill_seconds", "prefill", meaning, time, group, _TOLD, unit="s")
    meaning = "The part of prefill that only this lane's draft needed."
    yield Metric("draft_prefill_seconds", "the draft's own prefill", meaning, time, group, _STUDIED, unit="s")
    meaning = "Prefill plus the first round."
    yield Metric("first_token_seconds", "time to first token", meaning, time, group, _ALL, unit="s")
    meaning = "Kept tokens per second of decode time."
    yield Metric("tokens_per_second", "tokens per second", meaning, Format.MEAN, group, _DRAFTS, unit="tokens/s")


def _costs() -> Iterator[Metric]:
    group, unit = Group.COSTS, "one-token passes"
    meaning = "The target's pass over one token: the standard lane's median. The unit of all costs."
    yield Metric("one_token_pass_seconds", "one-token pass", meaning, Format.SECONDS, group, _STUDIED, unit="s")
    meaning = "Draft time per drafted token."
    yield Metric("c", "cost of a drafted token", meaning, Format.RATE, group, _DRAFTS, "c", unit)
    meaning = "A target pass over the mean drafted tokens plus one, read from the verify curve."
    yield Metric("verify_cost", "cost of a verify pass", meaning, Format.RATE, group, _TERMINAL, "v", unit)
    meaning = "The median time per round around the passes."
    yield Metric("overhead", "overhead per round", meaning, Format.RATE, group, _TERMINAL, "", unit)
    yield Metric("overhead_seconds", "overhead per round, time", meaning, Format.SECONDS, group, unit="s")


def _predictions() -> Iterator[Metric]:
    group = Group.PREDICTIONS
    meaning = "Predicted from acceptance by position and the costs: tokens per round / (drafted c + v + overhead)."
    yield Metric("predicted_speedup", "predicted speed-up", meaning, Format.TIMES, group, _TERMINAL, "S")
    meaning = "Teaching formula: (1 − α^(k+1)) / (1 − α) tokens per round, k = mean drafted (Leviathan et al. 2023)."
    yield Metric("teaching_tokens", "teaching: tokens per round", meaning, Format.MEAN, group, _TERMINAL, "E", "tokens")
    meaning = "Teaching formula: E / (k c + 1). It takes a wider pass for free and ignores overhead."
    yield Metric("teaching_speedup", "teaching: speed-up", meaning, Format.TIMES, group, _TERMINAL)
    meaning = "The k in 0..32 with the highest predicted speed-up; chains only."
    yield Metric("best_k", "best k", meaning, Format.COUNT, group, _TERMINAL, unit="tokens")
    meaning = "The predicted speed-up at the best k."
    yield Metric("best_speedup", "predicted speed-up at the best k", meaning, Format.TIMES, group, _TERMINAL)


def _agreement() -> Iterator[Metric]:
    group = Group.AGREEMENT
    meaning = "Decode time per kept token, standard decoding's / this lane's; below 1 is a loss."
    yield Metric("speedup", "speed-up", meaning, Format.TIMES, group, _DRAFTS)
    meaning = "How the output was compared: standard, identical, diverged, partial, sampled, settings or unknown."
    yield Metric("comparison", "comparison", meaning, Format.TEXT, group)
    meaning = "Whether the output is standard decoding's; null where that cannot be said."
    yield Metric("identical_to_standard", "identical", meaning, Format.YES_NO, group, Place.JSON)
    meaning = "Leading tokens that are the same as standard decoding's."
    yield Metric("compared_tokens", "tokens alike", meaning, Format.COUNT, group, unit="tokens")
    meaning = "The index in token_ids of the first token that differs, from 0."
    yield Metric("first_divergence", "first divergence, index", meaning, Format.COUNT, group, Place.JSON)
    meaning = "The first token that differs, counted from 1 as in every text for people."
    yield Metric("divergence_token", "first difference, token", meaning, Format.COUNT, group, _TERMINAL)
    meaning = "The target's lead of its first choice over its second, in logits, at the first difference."
    yield Metric("divergence_margin", "top-2 gap there", meaning, Format.DIGITS, group, _TERMINAL, unit="logits")


METRICS: Mapping[str, Metric] = {metric.field: metric for metric in _metrics()}


def shown_in(place: Place) -> tuple[Metric, ...]:
    """The numbers shown in a place, in the catalogue's order."""
    return tuple(metric for metric in METRICS.values() if place in metric.places)


def rows(summaries: Sequence[Summary], metrics: Sequence[Metric]) -> tuple[Row, ...]:
    """A table of these numbers, a cell per lane."""
    return tuple(
        Row(metric.title, metric.meaning, tuple(metric.cell(summary) for summary in summaries))
        for metric in metrics
        if not _repeats(metric, summaries)
    )


def values(summary: Summary, place: Place = Place.SUMMARY) -> dict[str, Any]:
    """The lane's numbers for a program, by field: all that JSON holds as they are, records as dictionaries."""
    return {metric.field: _plain(metric.of(summary)) for metric in shown_in(place)}


def _repeats(metric: Metric, summaries: Sequence[Summary]) -> bool:
    if metric.unless_equal is None:
        return False
    return all(metric.of(summary) == getattr(summary, metric.unless_equal) for summary in summaries)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, StrEnum):
        return value.value
    return asdict(value) if is_dataclass(value) else value
