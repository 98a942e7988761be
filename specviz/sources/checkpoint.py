"""Checkpoint: a local folder that transformers can read, and what is known about it without reading the weights.

`inspect` makes one, and refuses in words what cannot be loaded: no safetensors, no tokenizer, a config that is none,
a model that is not a causal language model. It reads JSON only.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specviz.core.errors import LoadError

_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
# any of these makes a tokenizer that AutoTokenizer can build
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")


# what a generation config may ask of decoding without a setting for it -> the values that ask for nothing
_NOT_APPLIED: dict[str, tuple[Any, ...]] = {
    "encoder_repetition_penalty": (1,),
    "no_repeat_ngram_size": (0,),
    "encoder_no_repeat_ngram_size": (0,),
    "bad_words_ids": (),
    "suppress_tokens": (),
    "begin_suppress_tokens": (),
    "min_length": (0,),
    "min_new_tokens": (0,),
    "forced_bos_token_id": (),
    "forced_eos_token_id": (),
    "forced_decoder_ids": (),
    "force_words_ids": (),
    "constraints": (),
    "sequence_bias": (),
    "exponential_decay_length_penalty": (),
    "num_beams": (1,),
    "num_beam_groups": (1,),
    "diversity_penalty": (0,),
    "penalty_alpha": (0,),
    "typical_p": (1,),
    "epsilon_cutoff": (0,),
    "eta_cutoff": (0,),
    "top_h": (),
    "min_p": (0,),
    "guidance_scale": (1,),
    "dola_layers": (),
    "watermarking_config": (),
    "stop_strings": (),
}
# what it may ask that a setting of the same name does
_SETTINGS = ("temperature", "top_k", "top_p", "repetition_penalty")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Weights, config and tokenizer on disk.

    `source` is the text that `resolve` was asked for; `revision` the hub's commit, or the sha256 of a GGUF file where
    that is known. `eos_token_ids` are those of its generation config, else of its config; they may be empty.
    `usual_settings` are the values of settings, by name, that its generation config asks for; nothing applies them.
    `note` says what a person should know of these weights (where they came from, how they were rounded).
    """

    folder: Path
    name: str
    source: str
    revision: str | None = None
    licence: str | None = None
    note: str | None = None
    eos_token_ids: tuple[int, ...] = ()
    has_chat_template: bool = False
    usual_settings: tuple[tuple[str, float], ...] = ()


def inspect(
    folder: Path,
    name: str,
    source: str,
    revision: str | None = None,
    licence: str | None = None,
    note: str | None = None,
    ours: bool = False,
) -> Checkpoint:
    """The Checkpoint that `folder` holds. Raises LoadError, in a sentence, where it holds none that can be loaded.

    `ours`: specviz wrote the folder itself and knows its kind, so the check that imports transformers is left out.
    """
    config = _config(folder, name)
    _check_weights(folder, name)
    if not any((folder / file).is_file() for file in _TOKENIZER_FILES):
        raise LoadError(f"{name} comes without a tokenizer; save its tokenizer into the same folder ({folder}).")
    if not ours:
        _check_quantised(config, name)
        _check_causal(config, name)
        if has_text_model(config):
            note = " ".join(filter(None, (note, "A multimodal model; only its text model is run.")))
    generation = _generation(folder)
    return Checkpoint(
        folder,
        name,
        source,
        revision,
        licence or _card_licence(folder),
        " ".join(filter(None, (note, _decoding_note(generation)))) or None,
        _eos_token_ids(generation, config),
        _has_chat_template(folder),
        _usual_settings(generation),
    )


def is_causal(architectures: list[str], model_type: str) -> bool:
    """Whether transformers has a causal language model for this config."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL

    if architectures:
        return any(name in CAUSAL.values() for name in architectures)
    return model_type in CAUSAL


def has_text_model(config: dict[str, Any]) -> bool:
    """Whether this is a multimodal model whose text model is a causal language model of its own."""
    text = config.get("text_config")
    return isinstance(text, dict) and isinstance(text.get("model_type"), str) and is_causal([], text["model_type"])


def _check_quantised(config: dict[str, Any], name: str) -> None:
    """Refuse weights in a packed form; transformers unpacks only mxfp4 everywhere, without another package."""
    quantised = config.get("quantization_config")
    if not quantised:
        return
    method = quantised.get("quant_method", "an unnamed method") if isinstance(quantised, dict) else "an unnamed method"
    if method != "mxfp4":
        raise LoadError(
            f"The weights of {name} are quantised by {method}, which is not supported; "
            "choose the unquantised model, or a GGUF file of it."
        )


def _check_causal(config: dict[str, Any], name: str) -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        raise LoadError(f"The config of {name} has no 'model_type', so its kind is unknown; get a complete copy.")
    if model_type not in CONFIG_MAPPING_NAMES:
        code = " It brings code of its own, which is never run." if "auto_map" in config else ""
        raise LoadError(f"{name} is a '{model_type}', which transformers does not know.{code} Choose another model.")
    architectures = config.get("architectures") or []
    if has_text_model(config):
        return
    if not isinstance(architectures, list) or not is_causal(architectures, model_type):
        kind = ", ".join(map(str, architectures)) or model_type
        raise LoadError(f"{name} is not a causal language model but {kind}; choose a model that writes text.")


def _config(folder: Path, name: str) -> dict[str, Any]:
    if not (folder / "config.json").is_file():
        if (folder / "adapter_config.json").is_file():
            raise LoadError(f"{name} is an adapter, not a whole model; merge it into its base model and save that.")
        ggufs = sorted(folder.glob("*.gguf"))
        if ggufs:
            raise LoadError(f"{name} holds GGUF files; give one of them as a source, such as gguf:{ggufs[0]}.")
        raise LoadError(f"{name} has no config.json; choose a folder that transformers' save_pretrained wrote.")
    return read_json(folder / "config.json", f"The config of {name}")


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in `path`, or a LoadError that begins with `what`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LoadError(f"{what} cannot be read ({path}: {error.strerror}).") from error
    except ValueError as error:
        raise LoadError(f"{what} is damaged ({path} is not JSON); get a fresh copy.") from error
    if not isinstance(value, dict):
        raise LoadError(f"{what} is damaged ({path} is not a JSON object); get a fresh copy.")
    return value


def _check_weights(folder: Path, name: str) -> None:
    if (folder / _WEIGHTS).is_file():
        return
    if (folder / _INDEX).is_file():
        shards = read_json(folder / _INDEX, f"The index of {name}").get("weight_map")
        names = set(shards.values()) if isinstance(shards, dict) else {None}
        missing = [shard for shard in names if not _is_inside(folder, shard)]
        if missing:
            raise LoadError(
                f"{name} is incomplete: {len(missing)} of {len(names)} weight files are missing; fetch it again."
            )
        return
    if any(next(folder.glob(pattern), None) for pattern in _PICKLES):
        raise LoadError(
            f"{name} has its weights in pickle files only, and those can run code when opened; "
            f"choose a copy with safetensors, or convert it with save_pretrained."
        )
    raise LoadError(f"{name} has no weights: {_WEIGHTS} is missing from {folder}.")


def _is_inside(folder: Path, shard: object) -> bool:
    return isinstance(shard, str) and Path(shard).name == shard and (folder / shard).is_file()


def _eos_token_ids(generation: dict[str, Any], config: dict[str, Any]) -> tuple[int, ...]:
    """The listed end tokens that are ids of this vocabulary; true is no id, although Python counts with it."""
    ids = generation.get("eos_token_id", config.get("eos_token_id"))
    size = config.get("vocab_size")
    limit = size if isinstance(size, int) else float("inf")
    ids = ids if isinstance(ids, list) else [ids]
    return tuple(dict.fromkeys(token for token in ids if type(token) is int and 0 <= token < limit))


def _generation(folder: Path) -> dict[str, Any]:
    path = folder / "generation_config.json"
    return read_json(path, "The generation config") if path.is_file() else {}


def unapplied_decoding(generation: dict[str, Any]) -> tuple[str, ...]:
    """What a generation config asks of decoding that no setting does, as "name=value"; defaults are left out."""
    asked = ((key, generation.get(key)) for key in _NOT_APPLIED)
    shown = ((key, json.dumps(value)) for key, value in asked if value not in (None, [], {}, *_NOT_APPLIED[key]))
    return tuple(f"{key}={text if len(text) <= 30 else text[:27] + '...'}" for key, text in shown)


def _usual_settings(generation: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    values = ((key, generation.get(key)) for key in _SETTINGS)
    return tuple((key, value) for key, value in values if type(value) in (int, float))


def _decoding_note(generation: dict[str, Any]) -> str:
    penalty = dict(_usual_settings(generation)).get("repetition_penalty", 1)
    asked = unapplied_decoding(generation)
    said = (
        f"The generation config asks for {', '.join(asked)}; specviz does not apply this." if asked else "",
        f"The generation config asks for repetition_penalty={penalty}: set it to decode so." if penalty != 1 else "",
    )
    return " ".join(filter(None, said))


def _has_chat_template(folder: Path) -> bool:
    if (folder / "chat_template.jinja").is_file() or (folder / "chat_template.json").is_file():
        return True
    path = folder / "tokenizer_config.json"
    return path.is_file() and bool(read_json(path, "The tokenizer's config").get("chat_template"))


def _card_licence(folder: Path) -> str | None:
    """The licence named in the front matter of the model card, where there is one."""
    card = folder / "README.md"
    if not card.is_file():
        return None
    front = re.match(r"---\n(.*?)\n---", card.read_text(encoding="utf-8", errors="replace"), re.DOTALL)
    found = front and re.search(r"^license:\s*['\"]?([\w.+-]+)", front[1], re.MULTILINE)
    return found[1] if found else None
