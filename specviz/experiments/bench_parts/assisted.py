"""Drafting lanes against transformers' assisted generation and prompt lookup: the same weights, k and dtype.

Each side looks n-grams up by its own default: ours match up to 3 tokens, transformers' up to 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from specviz.drafting import make_draft
from specviz.experiments.bench_report import PartResult, Table
from specviz.experiments.harness import Harness, Needs
from specviz.experiments.machine_facts import name_of
from specviz.experiments.paired import PairedComparison
from specviz.experiments.writers import Writer, generate_writer, lane_writer

TITLE = "drafting lanes against transformers' assisted generation and prompt lookup"
NEEDS = Needs.MODULES
_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class AssistedResult(PartResult):
    """`compared` is by the lane's strategy."""

    k: int
    dtype: str
    compared: Mapping[str, PairedComparison]

    def tables(self) -> Iterator[Table]:
        for name, compared in self.compared.items():
            yield compared.table(f"{name} lane against transformers' own, k = {self.k}, {self.dtype}")


def measure(harness: Harness) -> AssistedResult:
    share = _SHARE if harness.plan.draft is None else _SHARE / 2
    compared = {"prompt-lookup": harness.compare(share, our_lookup(harness), _their_lookup(harness))}
    if harness.plan.draft is not None:
        compared["draft-model"] = harness.compare(share, our_draft_model(harness), _their_draft_model(harness))
    return AssistedResult(harness.plan.k, name_of(harness.target.dtype), compared)


def our_lookup(harness: Harness) -> Writer:
    return lane_writer(harness.target, make_draft("prompt-lookup", harness.target), harness.plan.k)


def our_draft_model(harness: Harness) -> Writer:
    strategy = make_draft("draft-model", harness.target, draft_model=harness.draft)
    return lane_writer(harness.target, strategy, harness.plan.k)


def _their_lookup(harness: Harness) -> Writer:
    return generate_writer(harness.module(harness.plan.target, harness.target.dtype), lookup=harness.plan.k)


def _their_draft_model(harness: Harness) -> Writer:
    target = harness.module(harness.plan.target, harness.target.dtype)
    assistant = harness.module(harness.plan.draft, harness.draft.dtype)
    return generate_writer(target, assistant=assistant, k=harness.plan.k)
