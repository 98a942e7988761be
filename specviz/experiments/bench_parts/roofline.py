"""A one-token pass against its roofline: the time in which this machine reads the weights that a pass reads.

Where the last-level cache holds a good part of the weights, a pass may run faster than memory alone would let it; the
cache's size stands beside the numbers.
"""

from __future__ import annotations

import statistics
from typing import Any

import torch

from specviz.experiments.aggregate import described
from specviz.experiments.bandwidth import Reader, last_level_cache
from specviz.experiments.bench_context import Bed, name_of
from specviz.experiments.pass_cost import pass_samples, weight_bytes_read

TITLE = "a one-token pass against the roofline"
_READS = 5
_PASSES_A_READ = 4


def measure(bed: Bed) -> dict[str, Any]:
    target, effort = bed.target, bed.plan.effort
    rows = len(target.pad(torch.zeros(1, dtype=torch.long)))
    reader = Reader(target.device, target.dtype, rows, effort.read_bytes)
    reader.read()  # prepares the kernels
    reads, passes = [], []
    for _ in range(_READS):
        reads.append(reader.read())
        passes += pass_samples(target, [1], _PASSES_A_READ)[1]
    bandwidth, read = max(reads), weight_bytes_read(target)
    floor, seconds = read / bandwidth, statistics.median(passes)
    bed.tell(
        f"{1000 * seconds:.1f} ms a pass, {1000 * floor:.1f} ms at {bandwidth / 1e9:.1f} GB/s: {seconds / floor:.2f}"
    )
    return {
        "dtype": name_of(target.dtype),
        "rows": rows,
        "weight_bytes_read": read,
        "bytes_a_read": reader.bytes,
        "last_level_cache_bytes": last_level_cache() or None,
        "bandwidth": described(reads),
        "best_bandwidth": bandwidth,
        "floor_seconds": floor,
        "pass_seconds": described(passes),
        "ratio": seconds / floor,
    }
