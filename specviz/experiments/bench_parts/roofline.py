"""A one-token pass against its roofline: the time in which this machine reads the weights that a pass reads.

Where the last-level cache holds a good part of the weights, a pass may beat the memory's bandwidth; so the cache's size
stands beside the numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from specviz.experiments.aggregate import Distribution
from specviz.experiments.bench_parts.verify import pass_seconds
from specviz.experiments.bench_report import PartResult, Table, median_cell, megabytes_cell
from specviz.experiments.harness import Harness, Needs
from specviz.experiments.machine_facts import last_level_cache, name_of
from specviz.experiments.repeat import measure_in_turn
from specviz.models import LanguageModel
from specviz.models.linear import Linear, make_linear
from specviz.models.stopwatch import synchronize

TITLE = "a one-token pass against the roofline"
NEEDS = Needs.TARGET
_READS = 5
_PASSES_PER_READ = 4
_OUT, _IN = 8192, 4096  # of one weight: large enough that the call itself costs nothing beside it
_CACHES = 3.0  # last-level caches per read, so that a read finds little of the one before


@dataclass(frozen=True, slots=True)
class RooflineResult(PartResult):
    """`rows` of a one-token pass as it is executed; bandwidths in bytes per second."""

    dtype: str
    rows: int
    weight_bytes_read: int
    bytes_per_read: int
    last_level_cache_bytes: int | None
    bandwidth: Distribution
    pass_seconds: Distribution

    @property
    def best_bandwidth(self) -> float:
        return max(self.bandwidth.samples)

    @property
    def floor_seconds(self) -> float:
        """The roofline: the weights of a pass at the best bandwidth."""
        return self.weight_bytes_read / self.best_bandwidth

    @property
    def ratio(self) -> float:
        return self.pass_seconds.median / self.floor_seconds

    def tables(self) -> Iterator[Table]:
        rows = (
            ("a one-token pass, ms", median_cell(self.pass_seconds, ".1f", scale=1000)),
            ("weights read, MB", megabytes_cell(self.weight_bytes_read)),
            (f"best read of {self.bytes_per_read / 1e9:.2f} GB, GB/s", f"{self.best_bandwidth / 1e9:.1f}"),
            ("roofline, ms", f"{1000 * self.floor_seconds:.1f}"),
            ("pass over roofline", f"{self.ratio:.2f}"),
            ("largest cache, MB", megabytes_cell(self.last_level_cache_bytes)),
        )
        yield Table(f"roofline, {self.dtype}", ("", ""), rows)


def measure(harness: Harness) -> RooflineResult:
    target = harness.target
    rows = len(target.pad(torch.zeros(1, dtype=torch.long)))
    reader = WeightReader(target.device, target.dtype, rows, harness.plan.effort.read_bytes)
    reader.read()  # prepares the kernels
    sides = {"read": lambda: (reader.read(),), "pass": lambda: pass_seconds(target, [1], _PASSES_PER_READ)[1]}
    measured = {side: Distribution.of(sum(turns, ())) for side, turns in measure_in_turn(sides, _READS).items()}
    result = RooflineResult(
        name_of(target.dtype),
        rows,
        weight_bytes_read(target),
        reader.bytes,
        last_level_cache(),
        measured["read"],
        measured["pass"],
    )
    floor = f"{1000 * result.floor_seconds:.1f} ms at {result.best_bandwidth / 1e9:.1f} GB/s"
    harness.tell(f"{1000 * result.pass_seconds.median:.1f} ms per pass, {floor}: {result.ratio:.2f}")
    return result


class WeightReader:
    """Weights of at least `least` bytes, and of several last-level caches, read whole by `rows` rows."""

    def __init__(self, device: torch.device, dtype: torch.dtype, rows: int, least: int) -> None:
        self._device = device
        caches = int(_CACHES * (last_level_cache() or 0)) if device.type == "cpu" and least > 10**8 else 0
        wanted = max(least, caches)
        out = min(_OUT, max(1, wanted // (_IN * dtype.itemsize)))
        one = out * _IN * dtype.itemsize
        count = -(-wanted // one)
        # ones, not zeros: pages that nobody has written to are all the same page
        self._linears: list[Linear] = [
            make_linear(torch.ones(out, _IN, dtype=dtype, device=device)) for _ in range(count)
        ]
        self._rows = torch.ones(rows, _IN, dtype=dtype, device=device)
        self.bytes = count * one

    @torch.inference_mode()
    def read(self) -> float:
        """Bytes per second of one read of all weights."""
        synchronize(self._device)
        start = time.perf_counter()
        for linear in self._linears:
            linear(self._rows)
        synchronize(self._device)
        return self.bytes / (time.perf_counter() - start)


def weight_bytes_read(target: LanguageModel) -> int:
    """Bytes of weights that a pass reads; the few rows of an embedding that is only looked up do not count."""
    native = getattr(target.executor, "bytes_read", None)
    if native is not None:
        return native
    module = target.executor.module
    looked_up = module.get_input_embeddings().weight
    read_as_head = looked_up is module.get_output_embeddings().weight
    total = sum(parameter.nbytes for parameter in module.parameters())
    return total if read_as_head else total - looked_up.nbytes
