"""A checkpoint's model, tokenizer and config, read on the CPU.

Weights go straight into the dtype asked for, tensor by tensor. A checkpoint that would leave a weight to chance is
refused. The device, and what is done with the model, are others' business.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from specviz.core.errors import LoadError
from specviz.sources.checkpoint import Checkpoint, has_text_model, read_json

DTYPES = ("float32", "bfloat16", "float16")
# where multimodal checkpoints keep the weights of the text model, by pattern -> its own names
_TEXT_WEIGHTS = {
    r"^model\.language_model\.": "model.",
    r"^language_model\.model\.": "model.",
    r"^language_model\.lm_head\.": "lm_head.",
}
# packages that transformers asks for where a tokenizer comes in their format alone
_TOKENIZER_PACKAGES = ("sentencepiece", "tiktoken", "protobuf")
# what transformers, tokenizers, safetensors and torch raise on a damaged or foreign file
_BROKEN = (OSError, ValueError, TypeError, LookupError, AttributeError, RuntimeError, ImportError, ArithmeticError)


def checkpoint_config(checkpoint: Checkpoint) -> Any:
    """The transformers config, without the weights; of a multimodal model, that of its text model."""
    from transformers import AutoConfig

    with _in_words(checkpoint, "The config"):
        config = AutoConfig.from_pretrained(checkpoint.folder, local_files_only=True, trust_remote_code=False)
    return config.get_text_config(decoder=True)


def load_checkpoint(checkpoint: Checkpoint, dtype: Any) -> tuple[Any, Any]:
    """(transformers causal LM in eval mode on the CPU, its tokenizer). `dtype`: torch's, or its name.

    Raises LoadError, in a sentence, for what is damaged, incomplete, too large for the memory, or of another kind.
    """
    with _in_words(checkpoint, "The tokenizer"):
        tokenizer = _tokenizer(checkpoint)
    config = checkpoint_config(checkpoint)
    with _in_words(checkpoint, "The weights"), _no_bars():
        model, report = _model(checkpoint, config, _torch_dtype(dtype))
    missing = sorted(report["missing_keys"]) + sorted(map(str, report["mismatched_keys"]))
    if missing:
        raise LoadError(f"{checkpoint.name} lacks {len(missing)} weights ({missing[0]}, ...); get a complete copy.")
    return model.eval(), tokenizer


def _model(checkpoint: Checkpoint, config: Any, dtype: Any) -> tuple[Any, dict[str, Any]]:
    from transformers import AutoModelForCausalLM

    whole = read_json(checkpoint.folder / "config.json", f"The config of {checkpoint.name}")
    return AutoModelForCausalLM.from_pretrained(
        checkpoint.folder,
        config=config,
        key_mapping=_TEXT_WEIGHTS if has_text_model(whole) else None,
        dtype=dtype,
        use_safetensors=True,
        local_files_only=True,
        trust_remote_code=False,
        output_loading_info=True,
    )


def _tokenizer(checkpoint: Checkpoint) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(checkpoint.folder, local_files_only=True, trust_remote_code=False)


def _torch_dtype(dtype: Any) -> Any:
    import torch

    if isinstance(dtype, torch.dtype):
        return dtype
    if dtype not in DTYPES:
        raise LoadError(f"dtype '{dtype}' is not known; choose one of {', '.join(DTYPES)}.")
    return getattr(torch, dtype)


@contextmanager
def _in_words(checkpoint: Checkpoint, part: str) -> Iterator[None]:
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or "not enough memory" in str(error) or "can't allocate" in str(error):
            raise LoadError(
                f"{checkpoint.name} does not fit into memory; choose a smaller model or bfloat16."
            ) from error
        raise LoadError(_cannot(checkpoint, part, error)) from error
    except LoadError:
        raise
    except Exception as error:
        # tokenizers raises plain Exceptions
        if type(error) is not Exception and not isinstance(error, (SafetensorError, StrictDataclassError, *_BROKEN)):
            raise
        raise LoadError(_cannot(checkpoint, part, error)) from error


def _cannot(checkpoint: Checkpoint, part: str, error: BaseException) -> str:
    if package := _missing_package(str(error)):
        return f"{part} of {checkpoint.name} needs the package {package}; install it: pip install {package}."
    lines = str(error).strip().splitlines() or [type(error).__name__]
    # what lies in a cache can be had again; a folder of the user's is not ours to delete
    cached = not checkpoint.source.startswith("path:")
    advice = f"delete {checkpoint.folder} and load it again" if cached else "get a fresh copy"
    return (
        f"{part} of {checkpoint.name} cannot be read ({lines[0][:200]}); it is damaged or of another version: {advice}."
    )


def _missing_package(said: str) -> str | None:
    """The package of a tokenizer's format that an error asks for and that is not installed."""
    modules = {"protobuf": "google.protobuf"}
    named = (package for package in _TOKENIZER_PACKAGES if package in said.lower())
    return next((package for package in named if not _is_installed(modules.get(package, package))), None)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its parent is missing
        return False


@contextmanager
def _no_bars() -> Iterator[None]:
    """transformers draws its own bar on the terminal; ours is the one that counts."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
