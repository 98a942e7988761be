"""The file of a trained draft: safetensors of the weights that are its own, and its facts as a JSON text.

A file may come from anywhere: it is no pickle, nothing in it is run, and what does not fit the target is refused in
words. Files that the package brings lie in `assets/drafts/*/`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from specviz.core.errors import InputError, PairError
from specviz.drafting.bundled_drafts import bundled_file, state_of
from specviz.drafting.target_facts import fingerprint_of
from specviz.models import LanguageModel

_KEY = "specviz"
IDS = "vocabulary"  # the tensor of the ids that a draft of a reduced vocabulary can say
_WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)  # others cannot be compared or sorted


@dataclass(frozen=True, slots=True)
class DraftWeights:
    """`tensors` by name; `ids` (n,): the only ids it says, None for all; `facts`: what the file says of itself."""

    tensors: dict[str, Tensor]
    ids: Tensor | None
    facts: dict[str, Any]

    @property
    def note(self) -> str:
        """What a lane says of its draft."""
        count = sum(weight.numel() for weight in self.tensors.values())
        words = [f"{count / 1e6:.1f} M weights of its own, trained for {self.facts['target'].get('name')}"]
        if self.facts.get("trained_tokens"):
            words.append(f"on {self.facts['trained_tokens']} tokens")
        if self.ids is not None:
            words.append(f"it knows {len(self.ids)} tokens")
        return ", ".join(words)


def save_weights(path: Path | str, tensors: Mapping[str, Tensor], facts: dict[str, Any]) -> None:
    """Write the file whole or not at all. `facts` holds `kind` and `target`, as `target_facts` gives it."""
    part = Path(path).with_suffix(".part")
    packed = {name: weight.detach().cpu().contiguous() for name, weight in tensors.items()}
    save_file(packed, part, {_KEY: json.dumps(facts, sort_keys=True)})
    os.replace(part, path)


def load_weights(path: Path | str, kind: str, target: LanguageModel) -> DraftWeights:
    """Read a draft of this kind for this target. Raises InputError for a file that holds none, PairError for another's.

    Weights come in the target's dtype, on its device.
    """
    path = Path(path)
    try:
        read = _read(path, state_of(path))
    except OSError as error:
        raise InputError(
            f"The weights '{path}' cannot be read; give the path of a file that 'specviz distil --kind {kind}' wrote."
        ) from error
    _check(read, path, kind, target)
    tensors = {name: weight.to(target.device, target.dtype) for name, weight in read.tensors.items()}
    ids = None if read.ids is None else read.ids.to(target.device, torch.long)
    return DraftWeights(tensors, ids, read.facts)


def check_shapes(weights: DraftWeights, expected: Mapping[str, torch.Size], path: str, target: LanguageModel) -> None:
    """Raises PairError where the tensors are not those that this target's architecture asks for."""
    found = {name: weight.shape for name, weight in weights.tensors.items()}
    if found == dict(expected):
        return
    wrong = next(name for name in sorted({*found, *expected}) if found.get(name) != expected.get(name))
    have, need = (tuple(shapes[wrong]) if wrong in shapes else "nothing" for shapes in (found, expected))
    raise PairError(
        f"The weights '{path}' do not fit {target.name}: {wrong} holds {have}, and it takes {need}; "
        "use a file that was trained for this target."
    )


def weights_path(option: str, kind: str, target: LanguageModel) -> Path:
    """The file that an option names; where it is empty, the one of this kind that the package brings for this target.

    Raises InputError where it brings none.
    """
    path = Path(os.path.expanduser(option)) if option else bundled_weights(target, kind)
    if path is None:
        raise InputError(
            f"No {kind} is bundled for {target.name}: train one with 'python -m specviz distil --target SOURCE --kind "
            f"{kind} --out FOLDER', and give its file as the option 'weights'."
        )
    return path


def bundled_weights(target: LanguageModel, kind: str) -> Path | None:
    """The file of this kind that the package brings for this target; None where it brings none."""
    return bundled_file(target, f"{kind}.safetensors", lambda path: _read(path, state_of(path)).facts)


@lru_cache(maxsize=4)
def _read(path: Path, state: tuple[int, int]) -> DraftWeights:
    """The file as it lies there; read once as long as its state stays the same."""
    try:
        with safe_open(path, "pt") as file:
            facts = json.loads((file.metadata() or {})[_KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        ids = tensors.pop(IDS, None)
        strange = [name for name, weight in tensors.items() if not bool(weight.isfinite().all())]
        if strange or not isinstance(facts["target"], dict) or not isinstance(facts["kind"], str):
            raise ValueError(f"no numbers in {strange}" if strange else "no facts")
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RuntimeError, RecursionError) as error:
        raise InputError(
            f"The file '{path}' is no trained draft of specviz, or is damaged; train one with 'specviz distil'."
        ) from error
    return DraftWeights(tensors, ids, facts)


def _check(weights: DraftWeights, path: Path, kind: str, target: LanguageModel) -> None:
    facts = weights.facts
    if facts["kind"] != kind:
        raise InputError(f"The weights '{path}' are those of a draft '{facts['kind']}'; the draft '{kind}' was chosen.")
    if facts["target"].get("fingerprint", "") != fingerprint_of(target):
        raise PairError(
            f"The weights '{path}' were trained for {facts['target'].get('name')}, whose tokens are not those of "
            f"{target.name}; use a file that was trained for this target."
        )
    ids = weights.ids
    if ids is not None and not _are_ids(ids, target.vocabulary):
        raise PairError(f"The weights '{path}' name tokens that {target.name} does not have.")


def _are_ids(ids: Tensor, vocabulary: int) -> bool:
    whole = ids.dim() == 1 and ids.dtype in _WHOLE and len(ids) > 0
    return whole and 0 <= int(ids.min()) and int(ids.max()) < vocabulary and len(ids.unique()) == len(ids)
