"""What the page costs the engine: races streamed to a client through the app, in turn with races that nobody reads.

Both run in the app's process, on the same weights. Speed is the engine's own, by its lanes' clocks. What the server
does outside the engine is its processor time less that of the engine's thread and of the workers that thread employs.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from specviz.experiments.aggregate import described
from specviz.experiments.bench_context import Bed, Skipped
from specviz.experiments.processes import PeakMemory
from specviz.experiments.serving import SCRIPT, Consumer, Server

TITLE = "the engine with the page and a client, against headless"
_SHARE = 0.14
_PROMPT = "Tell a story about a lighthouse keeper who finds a letter in a bottle, and begin with the weather."
_DRAFTS = ["prompt-lookup"]
_LANES = 2
_PILOT_TOKENS = 16


def measure(bed: Bed) -> dict[str, Any]:
    if not SCRIPT.exists():
        raise Skipped("The page is measured from a checkout of the project; this is an installed package.")
    plan = bed.plan
    bed.tell("starting the app")
    with Server(plan.target, plan.device, plan.dtype) as server, PeakMemory(server.pid) as peak:
        consumer = Consumer(server)
        first = consumer.race(_PROMPT, _DRAFTS, _settings(bed, _PILOT_TOKENS))
        to_first = time.perf_counter() - server.started - (first["seconds"] - first["first_seconds"])
        tokens = _tokens(bed, first)
        pairs = _pairs(bed, server, consumer, _settings(bed, tokens))
    return {"tokens": tokens, "drafts": _DRAFTS, **_judged(pairs), "app_start_to_first_round_seconds": to_first,
            "app_peak_bytes": peak.bytes}  # fmt: skip


def _settings(bed: Bed, tokens: int) -> dict[str, Any]:
    return {"k": bed.plan.k, "max_new_tokens": tokens, "ignore_eos": True}


def _tokens(bed: Bed, first: dict[str, Any]) -> int:
    seconds_a_token = _LANES / first["tokens_per_second"]
    affordable = _SHARE * bed.plan.effort.seconds / (2 * bed.plan.effort.page_runs * seconds_a_token)
    return max(bed.plan.effort.least_tokens, min(4 * bed.plan.effort.tokens, int(affordable)))


def _pairs(bed: Bed, server: Server, consumer: Consumer, settings: dict[str, Any]) -> list[tuple[dict, dict]]:
    """(with the page, headless), the order changing every time. A race before them measured the verify curve."""
    pairs = []
    for run in range(bed.plan.effort.page_runs):
        sides = {"page": consumer.race, "headless": server.headless}
        order = list(sides) if run % 2 == 0 else list(reversed(sides))
        done = {side: sides[side](_PROMPT, _DRAFTS, settings) for side in order}
        for side, numbers in done.items():
            if numbers["failure"]:
                raise Skipped(f"A race of the {side} side failed: {numbers['failure']}")
        pairs.append((done["page"], done["headless"]))
        ratio = done["page"]["tokens_per_second"] / done["headless"]["tokens_per_second"]
        bed.tell(f"{run + 1}/{bed.plan.effort.page_runs}: {ratio:.3f} of headless")
    return pairs


def _judged(pairs: list[tuple[dict, dict]]) -> dict[str, Any]:
    outside = [page["outside"] for page, _ in pairs if page["outside"] is not None]
    return {
        "ratio": described([page["tokens_per_second"] / alone["tokens_per_second"] for page, alone in pairs]),
        "turn_ratio": described(
            [page["turn_tokens_per_second"] / alone["turn_tokens_per_second"] for page, alone in pairs]
        ),
        "page": described([page["tokens_per_second"] for page, _ in pairs]),
        "headless": described([alone["tokens_per_second"] for _, alone in pairs]),
        "cores_outside_engine": described(outside),
        "median_cores_outside_engine": statistics.median(outside) if outside else None,
    }
