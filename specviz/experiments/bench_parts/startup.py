"""From the start of a process to its first token, and how much memory it and its children take at most.

The first start finds whatever the system still holds of the files; the later ones find them in the page cache, and it
is those that are summed up.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from specviz.experiments.aggregate import described
from specviz.experiments.bench_context import Bed, Skipped
from specviz.experiments.first_token import DONE, FIRST
from specviz.experiments.processes import ROOT, PeakMemory

TITLE = "start-up and memory"


@dataclass(frozen=True, slots=True)
class _Start:
    first_seconds: float
    first_bytes: int | None
    peak_bytes: int | None


def measure(bed: Bed) -> dict[str, Any]:
    starts = []
    for number in range(bed.plan.effort.starts):
        starts.append(_start(bed))
        bed.tell(f"start {number + 1}: first token after {starts[-1].first_seconds:.1f} s")
    later = starts[1:] or starts
    peaks = [start.peak_bytes for start in starts if start.peak_bytes]
    return {
        "first_start_seconds": starts[0].first_seconds,
        "later_starts_seconds": described([start.first_seconds for start in later]),
        "first_token_bytes": max((start.first_bytes for start in starts if start.first_bytes), default=None),
        "peak_bytes": max(peaks, default=None),
    }


def _start(bed: Bed) -> _Start:
    plan = bed.plan
    command = [
        sys.executable,
        "-m",
        "specviz.experiments.first_token",
        "--target",
        plan.target,
        "--device",
        plan.device,
    ]
    command += ["--dtype", plan.dtype, "-k", str(plan.k), *(["--draft", plan.draft] if plan.draft else [])]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True)
    try:
        with PeakMemory(process.pid) as peak:
            said = process.stdout.readline().strip()
            seconds, at_first = time.perf_counter() - start, peak.bytes
            said_last = process.stdout.readline().strip()
    finally:
        process.kill()  # it is done, or we were interrupted
        process.wait()
    if (said, said_last) != (FIRST, DONE):
        raise Skipped("A process that was started to be measured failed; what it said stands above.")
    return _Start(seconds, at_first, peak.bytes)
