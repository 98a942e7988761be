"""Start-up: from the start of a process to its first token, and the peak memory of the process and its children.

The first start may have to read the model's files from disk; the later ones find them in the page cache, and their
times are the ones summed up.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from specviz.experiments.aggregate import Distribution
from specviz.experiments.bench_plan import BenchPlan
from specviz.experiments.bench_report import PartResult, Table, median_cell, megabytes_cell
from specviz.experiments.first_token import DONE, FIRST
from specviz.experiments.harness import Harness, Needs, Skipped
from specviz.experiments.processes import ROOT, PeakMemory
from specviz.experiments.repeat import repeats

TITLE = "start-up and memory"
NEEDS = Needs.NOTHING


@dataclass(frozen=True, slots=True)
class StartupResult(PartResult):
    first_start_seconds: float
    later_starts_seconds: Distribution
    first_token_bytes: int | None
    peak_bytes: int | None

    def tables(self) -> Iterator[Table]:
        rows = (
            ("first start to first token, s", f"{self.first_start_seconds:.1f}"),
            ("later starts to first token, s", median_cell(self.later_starts_seconds, ".1f")),
            ("memory up to the first token, MB", megabytes_cell(self.first_token_bytes)),
            ("peak memory with every lane, MB", megabytes_cell(self.peak_bytes)),
        )
        yield Table("start-up and memory", ("", ""), rows)


@dataclass(frozen=True, slots=True)
class _Start:
    first_seconds: float
    first_bytes: int | None
    peak_bytes: int | None


def measure(harness: Harness) -> StartupResult:
    starts: list[_Start] = []
    for number in repeats(harness.plan.effort.starts):
        starts.append(_start(harness.plan))
        harness.tell(f"start {number + 1}: first token after {starts[-1].first_seconds:.1f} s")
    return StartupResult(
        starts[0].first_seconds,
        Distribution.of(start.first_seconds for start in starts[1:] or starts),
        max((start.first_bytes for start in starts if start.first_bytes), default=None),
        max((start.peak_bytes for start in starts if start.peak_bytes), default=None),
    )


def _start(plan: BenchPlan) -> _Start:
    start = time.perf_counter()
    process = subprocess.Popen(_command(plan), stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True)
    try:
        with PeakMemory(process.pid) as peak:
            said = process.stdout.readline().strip()
            seconds, at_first = time.perf_counter() - start, peak.bytes
            said_last = process.stdout.readline().strip()
    finally:
        process.kill()  # it is done, or we were interrupted
        process.wait()
    if (said, said_last) != (FIRST, DONE):
        raise Skipped("The process to be measured failed; read its last words above.")
    return _Start(seconds, at_first, peak.bytes)


def _command(plan: BenchPlan) -> list[str]:
    module = [sys.executable, "-m", "specviz.experiments.first_token"]
    facts = ["--target", plan.target, "--device", plan.device, "--dtype", plan.dtype, "-k", str(plan.k)]
    return [*module, *facts, *(["--draft", plan.draft] if plan.draft else [])]
