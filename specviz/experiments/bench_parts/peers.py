"""Drafting lanes against other libraries for speculative decoding, where they are installed; never a dependency.

They give a reply as a whole, so the ratio is of whole calls, the prompt included. Greedy, our dtype and weights, our k.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import torch

from specviz.experiments.bench_context import Bed, Skipped, name_of
from specviz.experiments.bench_parts.assisted import our_draft_model, our_lookup
from specviz.experiments.reply import Reply, Writer

TITLE = "drafting lanes against other libraries"
_SHARE = 0.05  # a comparison
_N_GRAM = 3  # of every side's lookup


def measure(bed: Bed) -> dict[str, Any]:
    found = {name: makers for name, makers in _PEERS.items() if _installed(name)}
    missing = [name for name in _PEERS if name not in found]
    if not found:
        raise Skipped(f"None of the other libraries is installed; pip install --no-deps {' '.join(missing)}.")
    for name in missing:
        bed.tell(f"{name} is not installed; pip install --no-deps {name}")
    compared, failed = {}, {}
    for name, makers in found.items():
        try:
            compared[name] = _against(bed, *makers)
        except Exception as error:  # whatever another library raises must not cost the rest of the benchmark
            failed[name] = f"{type(error).__name__}: {error}"
            bed.tell(f"{name} failed: {failed[name]}")
    return {
        "k": bed.plan.k,
        "dtype": name_of(bed.target.dtype),
        "versions": {name: metadata.version(name) for name in found},
        "missing": missing,
        "failed": failed,
        "compared": compared,
    }


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _against(bed: Bed, lookup: Callable[[Bed], Writer], draft_model: Callable[[Bed], Writer]) -> dict[str, Any]:
    compared = {"prompt-lookup": bed.compare(_SHARE, our_lookup(bed), lookup(bed))}
    if bed.plan.draft is not None:
        compared["draft-model"] = bed.compare(_SHARE, our_draft_model(bed), draft_model(bed))
    return compared


def _timed(bed: Bed, generate: Callable[[torch.Tensor, int], Sequence[int]]) -> Writer:
    """A Writer of what makes a reply from ids (1, n) and a number of tokens."""

    def write(prompt_ids: Sequence[int], tokens: int) -> Reply:
        ids = torch.tensor([list(prompt_ids)], device=bed.target.device)
        start = time.perf_counter()
        written = tuple(generate(ids, tokens))
        return Reply(written, time.perf_counter() - start)

    return write


def _economize_lookup(bed: Bed) -> Writer:
    from economize.techniques.lookup import LookupConfig

    return _economize(bed, LookupConfig(max_ngram=_N_GRAM, match="latest"))


def _economize_draft_model(bed: Bed) -> Writer:
    from economize.techniques.draft_model import DraftModelConfig

    folder = bed.checkpoint(bed.plan.draft).folder
    return _economize(bed, DraftModelConfig(model=str(folder), dtype=name_of(bed.draft.dtype)))


def _economize(bed: Bed, technique: Any) -> Writer:
    import economize

    # a cycle is the token of the pass and then the drafts
    decoding = economize.DecodeConfig(cycle_length=bed.plan.k + 1)
    model = economize.apply(bed.module(bed.plan.target, bed.target.dtype), technique, decoding=decoding)
    return _timed(bed, lambda ids, tokens: model.decode(ids[0], tokens).tokens.view(-1).tolist())


def _flashspec_lookup(bed: Bed) -> Writer:
    from flashspec.engine import NgramDrafter

    return _flashspec(bed, NgramDrafter(max_ngram=_N_GRAM))


def _flashspec_draft_model(bed: Bed) -> Writer:
    from flashspec.engine import HuggingFaceDrafter

    module = bed.module(bed.plan.draft, bed.draft.dtype)
    drafter = HuggingFaceDrafter("draft", bed.target.device, bed.draft.dtype, temperature=0.0, model=module)
    return _flashspec(bed, drafter)


def _flashspec(bed: Bed, drafter: Any) -> Writer:
    from flashspec import BanditConfig, FlashSpecConfig, SamplingConfig, SpeculativeEngine
    from flashspec.engine import TargetModel

    dtype = bed.target.dtype
    target = TargetModel("target", bed.target.device, dtype, model=bed.module(bed.plan.target, dtype))
    config = FlashSpecConfig(
        device=str(bed.target.device),
        dtype=name_of(dtype),
        drafter_strategy="bandit",  # with one arm: this drafter, at our k
        bandit=BanditConfig(n_arms=1),
        sampling=SamplingConfig(temperature=0.0, gamma=bed.plan.k),
    )
    engine = SpeculativeEngine(config, [drafter], target)

    def generate(ids: torch.Tensor, tokens: int) -> list[int]:
        result = engine.generate(ids, max_new_tokens=tokens, eos_token_ids=())
        return result.output_ids[0, : result.n_tokens_generated].tolist()

    return _timed(bed, generate)


# name: (its prompt lookup, its draft model)
_PEERS = {
    "economize": (_economize_lookup, _economize_draft_model),
    "flashspec": (_flashspec_lookup, _flashspec_draft_model),
}
