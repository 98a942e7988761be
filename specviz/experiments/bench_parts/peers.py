"""Drafting lanes against other libraries for speculative decoding, where they are installed; never a dependency.

They give a reply as a whole, so the ratio is of whole calls, prefill included. Greedy, with our weights, dtype and k.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import torch

from specviz.experiments.bench_parts.assisted import our_draft_model, our_lookup
from specviz.experiments.bench_report import PartResult, Table
from specviz.experiments.harness import Harness, Needs, Skipped
from specviz.experiments.machine_facts import name_of
from specviz.experiments.paired import PairedComparison
from specviz.experiments.writers import Reply, Writer

TITLE = "drafting lanes against other libraries"
NEEDS = Needs.MODULES
_SHARE = 0.05  # of each comparison
_N_GRAM = 3  # of every side's lookup

MakeWriter = Callable[[Harness], Writer]


@dataclass(frozen=True, slots=True)
class PeersResult(PartResult):
    """By library: its version, what its failure said, and by the lane's strategy how it compared."""

    k: int
    dtype: str
    versions: Mapping[str, str]
    missing: tuple[str, ...]
    failed: Mapping[str, str]
    compared: Mapping[str, Mapping[str, PairedComparison]]

    def tables(self) -> Iterator[Table]:
        for peer, lanes in self.compared.items():
            against = f"lane against {peer} {self.versions[peer]}'s, whole calls, k = {self.k}, {self.dtype}"
            yield from (compared.whole_table(f"{name} {against}") for name, compared in lanes.items())

    def notes(self) -> Iterator[str]:
        yield from (f"{name} failed: {message}" for name, message in self.failed.items())
        yield from (_not_installed(name) for name in self.missing)


def measure(harness: Harness) -> PeersResult:
    found = {name: makers for name, makers in _PEERS.items() if _installed(name)}
    missing = tuple(name for name in _PEERS if name not in found)
    if not found:
        raise Skipped(f"None of the other libraries is installed; pip install --no-deps {' '.join(missing)}.")
    for name in missing:
        harness.tell(_not_installed(name))
    compared, failed = {}, {}
    for name, makers in found.items():
        try:
            compared[name] = _against(harness, *makers)
        except Exception as error:  # whatever another library raises must not cost the rest of the benchmark
            failed[name] = f"{type(error).__name__}: {error}"
            harness.tell(f"{name} failed: {failed[name]}")
    versions = {name: metadata.version(name) for name in found}
    return PeersResult(harness.plan.k, name_of(harness.target.dtype), versions, missing, failed, compared)


def _not_installed(name: str) -> str:
    return f"{name} is not installed; pip install --no-deps {name}"


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _against(harness: Harness, lookup: MakeWriter, draft_model: MakeWriter) -> dict[str, PairedComparison]:
    compared = {"prompt-lookup": harness.compare(_SHARE, our_lookup(harness), lookup(harness))}
    if harness.plan.draft is not None:
        compared["draft-model"] = harness.compare(_SHARE, our_draft_model(harness), draft_model(harness))
    return compared


def _timed(harness: Harness, generate: Callable[[torch.Tensor, int], Sequence[int]]) -> Writer:
    """A Writer from a function that takes ids (1, n) and a number of tokens and gives the reply's ids."""

    def write(prompt_ids: Sequence[int], tokens: int) -> Reply:
        ids = torch.tensor([list(prompt_ids)], device=harness.target.device)
        start = time.perf_counter()
        written = tuple(generate(ids, tokens))
        return Reply(written, time.perf_counter() - start)

    return write


def _economize_lookup(harness: Harness) -> Writer:
    from economize.techniques.lookup import LookupConfig

    return _economize(harness, LookupConfig(max_ngram=_N_GRAM, match="latest"))


def _economize_draft_model(harness: Harness) -> Writer:
    from economize.techniques.draft_model import DraftModelConfig

    folder = harness.checkpoint(harness.plan.draft).folder
    return _economize(harness, DraftModelConfig(model=str(folder), dtype=name_of(harness.draft.dtype)))


def _economize(harness: Harness, technique: Any) -> Writer:
    import economize

    # a cycle is the token of the pass and then the drafts
    decoding = economize.DecodeConfig(cycle_length=harness.plan.k + 1)
    model = economize.apply(harness.module(harness.plan.target, harness.target.dtype), technique, decoding=decoding)
    return _timed(harness, lambda ids, tokens: model.decode(ids[0], tokens).tokens.view(-1).tolist())


def _flashspec_lookup(harness: Harness) -> Writer:
    from flashspec.engine import NgramDrafter

    return _flashspec(harness, NgramDrafter(max_ngram=_N_GRAM))


def _flashspec_draft_model(harness: Harness) -> Writer:
    from flashspec.engine import HuggingFaceDrafter

    module = harness.module(harness.plan.draft, harness.draft.dtype)
    drafter = HuggingFaceDrafter("draft", harness.target.device, harness.draft.dtype, temperature=0.0, model=module)
    return _flashspec(harness, drafter)


def _flashspec(harness: Harness, drafter: Any) -> Writer:
    from flashspec import BanditConfig, FlashSpecConfig, SamplingConfig, SpeculativeEngine
    from flashspec.engine import TargetModel

    dtype = harness.target.dtype
    target = TargetModel("target", harness.target.device, dtype, model=harness.module(harness.plan.target, dtype))
    config = FlashSpecConfig(
        device=str(harness.target.device),
        dtype=name_of(dtype),
        drafter_strategy="bandit",  # with one arm: this drafter, at our k
        bandit=BanditConfig(n_arms=1),
        sampling=SamplingConfig(temperature=0.0, gamma=harness.plan.k),
    )
    engine = SpeculativeEngine(config, [drafter], target)

    def generate(ids: torch.Tensor, tokens: int) -> list[int]:
        result = engine.generate(ids, max_new_tokens=tokens, eos_token_ids=())
        return result.output_ids[0, : result.n_tokens_generated].tolist()

    return _timed(harness, generate)


# name: (its prompt lookup, its draft model)
_PEERS = {
    "economize": (_economize_lookup, _economize_draft_model),
    "flashspec": (_flashspec_lookup, _flashspec_draft_model),
}
