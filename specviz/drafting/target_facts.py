"""What a file made for a target says of that target, and whether a model is that target.

A tokenizer's table of tokens tells files of one target from those of another. Tables are compared, not sizes or names:
padded rows do not make two tokenizers different.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from specviz.models import LanguageModel

_SHAPE = ("fingerprint", "parameters", "layers", "width")
_known: WeakKeyDictionary[LanguageModel, str] = WeakKeyDictionary()


def fingerprint(tokenizer: Any, vocabulary: int) -> str:
    """A short hash of the tokens with an id below `vocabulary`, in their order; '' where there is no tokenizer."""
    if tokenizer is None:
        return ""
    digest = hashlib.sha256()
    for token, number in sorted(tokenizer.get_vocab().items(), key=lambda item: (item[1], item[0])):
        if number < vocabulary:
            digest.update(f"{number} {token}\0".encode(errors="surrogatepass"))
    return digest.hexdigest()[:32]


def fingerprint_of(model: LanguageModel) -> str:
    """The fingerprint of a model's tokenizer, worked out once a model."""
    if model not in _known:
        _known[model] = fingerprint(model.tokenizer, model.vocabulary)
    return _known[model]


def target_facts(target: LanguageModel) -> dict[str, Any]:
    """What a file made for a target says of it: enough to know it again."""
    return {
        "name": target.name,
        "parameters": target.parameters,
        "layers": target.layers,
        "width": getattr(target.config, "hidden_size", None),
        "fingerprint": fingerprint_of(target),
    }


def is_made_for(facts: Mapping[str, Any], target: LanguageModel) -> bool:
    """Whether a file of these facts is for a target of the same tokens, layers, width and count of parameters."""
    ours, theirs = target_facts(target), target_of(facts)
    return bool(ours["fingerprint"]) and all(theirs.get(part) == ours[part] for part in _SHAPE)


def target_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a file's facts say of its target; nothing where they are silent."""
    made_for = facts.get("target")
    return made_for if isinstance(made_for, dict) else {}
