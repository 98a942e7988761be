"""What the page costs the engine: races streamed to a client through the app, in turn with races that nobody reads.

Both run in the app's process, on the same weights. Speed is the engine's own, by its lanes' clocks. The server's work
outside the engine is its processor time less that of the engine's thread and of that thread's workers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from specviz.experiments.aggregate import Distribution
from specviz.experiments.bench_report import PartResult, Table, median_cell, megabytes_cell
from specviz.experiments.engine_speed import EngineSpeed
from specviz.experiments.harness import Harness, Needs, Skipped
from specviz.experiments.processes import PeakMemory
from specviz.experiments.repeat import repeats, take_turns
from specviz.experiments.serving import SCRIPT, ConsumedRace, Consumer, Server

TITLE = "the engine with the page and a client, against headless"
NEEDS = Needs.NOTHING
_SHARE = 0.14
_PROMPT = "Tell a story about a lighthouse keeper who finds a letter in a bottle, and begin with the weather."
_DRAFTS = ("prompt-lookup",)
_LANES = 2
_PILOT_TOKENS = 16
_PAGE, _HEADLESS = "page", "headless"


@dataclass(frozen=True, slots=True)
class PageResult(PartResult):
    """`page` and `headless` in tokens per second of the lanes' clocks; ratios are page over headless, run by run."""

    tokens: int
    drafts: tuple[str, ...]
    ratio: Distribution
    turn_ratio: Distribution
    page: Distribution
    headless: Distribution
    cores_outside_engine: Distribution
    app_start_to_first_round_seconds: float
    app_peak_bytes: int | None

    def tables(self) -> Iterator[Table]:
        rows = (
            ("engine tokens/s, page and client", median_cell(self.page, ".1f")),
            ("engine tokens/s, headless", median_cell(self.headless, ".1f")),
            ("ratio", median_cell(self.ratio, ".3f")),
            ("ratio, by the time of turns", median_cell(self.turn_ratio, ".3f")),
            ("cores used outside the engine", median_cell(self.cores_outside_engine, ".3f")),
            ("app start to the client's first round, s", f"{self.app_start_to_first_round_seconds:.1f}"),
            ("peak memory of the app, MB", megabytes_cell(self.app_peak_bytes)),
        )
        yield Table(f"with the page against headless, {self.tokens} tokens per lane", ("", ""), rows)


@dataclass(frozen=True, slots=True)
class _Pair:
    page: ConsumedRace
    headless: EngineSpeed


def measure(harness: Harness) -> PageResult:
    if not SCRIPT.exists():
        raise Skipped("The page is measured from a checkout of the project; this is an installed package.")
    plan = harness.plan
    harness.tell("starting the app")
    with Server(plan.target, plan.device, plan.dtype) as server, PeakMemory(server.pid) as peak:
        consumer = Consumer(server)
        pilot = consumer.race(_PROMPT, _DRAFTS, _settings(harness, _PILOT_TOKENS))
        to_first = time.perf_counter() - server.started - (pilot.seconds - pilot.first_seconds)
        tokens = _tokens(harness, pilot)
        pairs = _pairs(harness, server, consumer, _settings(harness, tokens))
    return _result(tokens, pairs, to_first, peak.bytes)


def _settings(harness: Harness, tokens: int) -> dict[str, Any]:
    return {"k": harness.plan.k, "max_new_tokens": tokens, "ignore_eos": True}


def _tokens(harness: Harness, pilot: ConsumedRace) -> int:
    effort = harness.plan.effort
    seconds_per_token = _LANES / pilot.speed.tokens_per_second
    affordable = _SHARE * effort.seconds / (2 * effort.page_runs * seconds_per_token)
    return max(effort.least_tokens, min(4 * effort.tokens, int(affordable)))


def _pairs(harness: Harness, server: Server, consumer: Consumer, settings: dict[str, Any]) -> list[_Pair]:
    """Neighbouring races of both sides. The pilot race has measured the verify curve, so none of them does."""
    sides = {
        _PAGE: lambda: consumer.race(_PROMPT, _DRAFTS, settings),
        _HEADLESS: lambda: server.headless(_PROMPT, _DRAFTS, settings),
    }
    pairs, runs = [], harness.plan.effort.page_runs
    for run in repeats(runs):
        pair = _Pair(**take_turns(sides, run))
        _check(_PAGE, pair.page.speed)
        _check(_HEADLESS, pair.headless)
        pairs.append(pair)
        ratio = pair.page.speed.tokens_per_second / pair.headless.tokens_per_second
        harness.tell(f"{run + 1}/{runs}: {ratio:.3f} of headless")
    return pairs


def _check(side: str, speed: EngineSpeed) -> None:
    if speed.failure:
        raise Skipped(f"A race of the {side} side failed: {speed.failure}")


def _result(tokens: int, pairs: Sequence[_Pair], to_first: float, peak_bytes: int | None) -> PageResult:
    page, headless = [pair.page.speed for pair in pairs], [pair.headless for pair in pairs]
    clock, alone = ([speed.tokens_per_second for speed in side] for side in (page, headless))
    turns, turns_alone = ([speed.turn_tokens_per_second for speed in side] for side in (page, headless))
    return PageResult(
        tokens,
        _DRAFTS,
        Distribution.of_ratios(clock, alone),
        Distribution.of_ratios(turns, turns_alone),
        Distribution.of(clock),
        Distribution.of(alone),
        Distribution.of(pair.page.cores_outside_engine for pair in pairs),
        to_first,
        peak_bytes,
    )
