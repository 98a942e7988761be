"""GGUF files, converted once into a folder of safetensors, config and tokenizer.

The tensors are dequantised one by one, so the memory needed is that of the stored weights, not twice the float32 ones.
What a GGUF file says is float32 after dequantisation (a scale times a small integer, plus an offset), and is stored so
while that is at most `EXACT_BYTES`; larger models are stored rounded to bfloat16, which halves disk and memory, and the
checkpoint's note says so. Which tensor is which is transformers' knowledge (`modeling_gguf_pytorch_utils`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from specviz.core.errors import LoadError
from specviz.sources.checkpoint import Checkpoint, inspect, is_causal
from specviz.sources.disk_cache import build_folder, cache_root, is_disk_full, require_space
from specviz.sources.gguf_config import ROPE_TENSORS, complete_config
from specviz.sources.gguf_tokenizer import build_tokenizer, end_token_ids, tokenizer_note
from specviz.sources.progress import Progress, part, silent

EXACT_BYTES = 2 * 1024**3
# raised when a conversion writes something else than before, so that old folders are not taken
_VERSION = 2
_MAGIC = b"GGUF"
# as llama.cpp's gguf-split names the parts
_SPLIT = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")
# lists as long as the vocabulary that only transformers' reading needs
_LONG = ("tokenizer.ggml.merges", "tokenizer.ggml.scores", "tokenizer.ggml.token_type")
_NOTE = "specviz_note.json"
# what gguf and transformers raise on a file that breaks off or lies about its lengths
_BROKEN = (ValueError, IndexError, KeyError, TypeError, OverflowError, AttributeError, EOFError, UnicodeError)


def resolve_gguf(text: str, progress: Progress = silent) -> Checkpoint:
    """The checkpoint of a GGUF file of the user's."""
    path = Path(os.path.expanduser(text))
    if os.path.isdir(path):
        raise LoadError(f"{path} is a folder; give a GGUF file, or the folder as path:{path}.")
    if not os.path.exists(path):  # unlike Path's own, false for a name that no file can have
        raise LoadError(f"There is no file {path}; check the name after gguf:.")
    if not path.is_file():
        raise LoadError(f"{path} is no ordinary file; give the path of a GGUF file after gguf:.")
    # by name, size and time: hashing a large file would cost more than loading it
    facts = [(part, part.stat()) for part in split_parts(path)]
    known = "".join(f"{part.resolve()}|{fact.st_size}|{fact.st_mtime_ns}" for part, fact in facts)
    key = hashlib.sha256(known.encode()).hexdigest()
    folder = build_folder(converted_folder(path.stem, key), lambda aside: convert(path, aside, progress), progress)
    return converted_checkpoint(folder, path.name, f"gguf:{text}")


def split_parts(path: Path) -> tuple[Path, ...]:
    """The files of the GGUF whose first is `path`, all in its folder; most have one. Raises LoadError for another."""
    found = _SPLIT.search(path.name)
    if found is None:
        return (path,)
    number, count = int(found[1]), int(found[2])
    names = [f"{path.name[: found.start()]}-{i + 1:05}-of-{count:05}.gguf" for i in range(count)]
    if number != 1:
        raise LoadError(f"{path.name} is part {number} of {count} of a split GGUF; give the first part, {names[0]}.")
    missing = [name for name in names if not (path.parent / name).is_file()]
    if missing:
        raise LoadError(
            f"{path.name} is part 1 of {count} of a split GGUF, and {missing[0]} is missing; "
            "keep all parts in one folder."
        )
    return tuple(path.parent / name for name in names)


def converted_folder(name: str, key: str) -> Path:
    """Where the conversion of the file that `key` identifies is kept."""
    safe = re.sub(r"[^\w.-]+", "-", name)[:60]
    return cache_root() / "checkpoints" / f"{safe}-{key[:16]}-v{_VERSION}"


def converted_checkpoint(folder: Path, name: str, source: str, revision: str | None = None) -> Checkpoint:
    """The checkpoint in a folder that `convert` wrote."""
    path = folder / _NOTE
    facts = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return inspect(folder, name, source, revision, facts.get("licence"), facts.get("note"), ours=True)


def convert(
    path: Path,
    folder: Path,
    progress: Progress = silent,
    eos_ids: tuple[int, ...] = (),
    licence: str | None = None,
) -> None:
    """Write the model of the GGUF file `path` into `folder`. Raises LoadError for a file that cannot be converted.

    `eos_ids`: the end tokens of the original's generation config, where they are known; else those of the file.
    """
    from huggingface_hub.errors import StrictDataclassError

    for part_path in split_parts(path):
        with part_path.open("rb") as file:
            if file.read(4) != _MAGIC:
                raise LoadError(f"{part_path.name} is not a GGUF file; choose one, or give a folder as path:FOLDER.")
    try:
        _convert(path, folder, progress, eos_ids, licence)
    except StrictDataclassError as error:
        why = str(error).strip().splitlines()[-1].strip()
        raise LoadError(f"{path.name} cannot be converted: its metadata makes no valid config ({why}).") from error
    except NotImplementedError as error:
        raise LoadError(
            f"{path.name} has weights of a kind that cannot be read ({error}); choose Q4, Q8 or F16."
        ) from error
    except _BROKEN as error:
        if "not supported" in str(error):
            raise LoadError(f"{path.name} cannot be converted: {error} Choose another model.") from error
        raise LoadError(f"{path.name} is damaged or cut short ({error!r}); get a fresh copy.") from error


def _convert(path: Path, folder: Path, progress: Progress, eos_ids: tuple[int, ...], licence: str | None) -> None:
    from gguf import GGUFReader
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    progress(0.0, f"Reading {path.name}.")
    readers = [GGUFReader(part_path) for part_path in split_parts(path)]
    fields, tensors = read_fields(readers[0]), [tensor for reader in readers for tensor in reader.tensors]
    if fields.get("split.count", 1) not in (0, 1, len(readers)):
        raise LoadError(f"{path.name} is one part of a split GGUF; give its parts the names that gguf-split gave them.")
    parsed = load_gguf_checkpoint(str(path))
    parsed["config"] = complete_config(path.name, fields, _rope_tensors(tensors), parsed["config"])
    if len(readers) > 1:  # transformers sees the first part alone
        parsed["config"]["tie_word_embeddings"] = all(tensor.name != "output.weight" for tensor in tensors)
    model = _empty_model(parsed["config"], path.name)
    count = sum(weight.numel() for weight in model.parameters())
    dtype = _stored_dtype(count)
    require_space(folder, dtype.itemsize * count, f"converting {path.name}")
    progress(0.2, f"Reading the tokenizer of {path.name}.")
    build_tokenizer(path, fields).save_pretrained(folder)
    weights = _dequantise(
        path.name, fields["general.architecture"], tensors, model, parsed, dtype, part(progress, 0.4, 0.9)
    )
    _check_complete(weights, model, path.name)
    progress(0.9, f"Saving {path.name} as safetensors.")
    _save_weights(weights, folder)
    model.config.dtype = dtype
    model.config.save_pretrained(folder)
    _save_facts(fields, folder, model.config, eos_ids, licence)
    progress(1.0, f"{path.name} is ready.")


def _stored_dtype(count: int) -> Any:
    import torch

    return torch.float32 if 4 * count <= EXACT_BYTES else torch.bfloat16


def _empty_model(config: dict[str, Any], name: str) -> Any:
    """The model of a parsed GGUF config, its weights on the meta device: names and shapes only."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(**{key: value for key, value in config.items() if key != "_model_name_or_path"})
    if not is_causal([], config.model_type):
        raise LoadError(f"{name} is not a causal language model but {config.model_type}; choose one that writes text.")
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    model.config.architectures = [type(model).__name__]
    return model


def _rope_tensors(tensors: list[Any]) -> dict[str, Any]:
    """name of every tensor -> None, or its values where they are factors of the rope's frequencies."""
    from gguf import dequantize

    read = {tensor.name: tensor for tensor in tensors}
    values = {
        name: dequantize(read[name].data, read[name].tensor_type).ravel() for name in ROPE_TENSORS if name in read
    }
    return dict.fromkeys(read) | values


def _dequantise(
    name: str, architecture: str, tensors: list[Any], model: Any, parsed: dict[str, Any], dtype: Any, progress: Progress
) -> dict[str, Any]:
    """transformers' name -> tensor in `dtype`. Raises LoadError for a tensor that the model has no place for."""
    import numpy as np
    import torch
    from gguf import dequantize
    from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor, get_gguf_hf_weights_map

    processor = TENSOR_PROCESSORS.get(architecture, TensorProcessor)(config=parsed["config"])
    names = get_gguf_hf_weights_map(model, processor)
    # a processor of a mixture of experts puts the tensors that it merges here itself
    weights = parsed["tensors"] = {}
    for done, tensor in enumerate(tensors):
        progress(done / len(tensors), "Converting the weights to safetensors, once.")
        values = dequantize(tensor.data, tensor.tensor_type)
        result = processor.process(weights=values, name=tensor.name, tensor_key_mapping=names, parsed_parameters=parsed)
        if result.name in names:
            weights[names[result.name]] = torch.from_numpy(np.array(result.weights)).to(dtype)
        elif result.name is not None and tensor.name not in ROPE_TENSORS:
            raise LoadError(
                f"{name} cannot be converted: transformers' {type(model).__name__} has no place for its tensor "
                f"{tensor.name}; give the original model as hub:ID or path:FOLDER."
            )
    return {name: weight.to(dtype) for name, weight in weights.items()}


def _check_complete(weights: dict[str, Any], model: Any, name: str) -> None:
    """Refuse a file that would leave a weight of the model to chance, or fill it with one of another shape."""
    for key, weight in model.named_parameters():
        if key not in weights:
            raise LoadError(f"{name} lacks the weight {key}; get a complete copy.")
        if weights[key].shape != weight.shape:
            raise LoadError(
                f"The weight {key} of {name} does not have the shape that its config says; get a fresh copy."
            )


def _save_weights(weights: dict[str, Any], folder: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    except SafetensorError as error:
        if is_disk_full(error):
            raise OSError(errno.ENOSPC, "No space left on device") from error
        raise


def _save_facts(
    fields: dict[str, Any], folder: Path, config: Any, eos_ids: tuple[int, ...], licence: str | None
) -> None:
    """The end tokens, the licence and the note, for `inspect` to find."""
    if ids := list(eos_ids or end_token_ids(fields)):
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ids}), encoding="utf-8")
    note = "Dequantised from GGUF, exact in float32."
    if str(config.dtype).endswith("bfloat16"):
        note = "Dequantised from GGUF and rounded to bfloat16; float32 runs use the rounded weights."
    note = f"{note} {tokenizer_note(fields)}".strip()
    facts = {"licence": licence or fields.get("general.license"), "note": note}
    (folder / _NOTE).write_text(json.dumps(facts), encoding="utf-8")


def read_fields(reader: Any) -> dict[str, Any]:
    """The metadata of a GGUF file: key -> text, number, truth value, or list of them; long lists by their length."""
    fields = {key: field for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    return {key: len(field.data) if key in _LONG else field.contents() for key, field in fields.items()}
