"""A tokenizer's table of tokens, by which files made for a target are told from those made for another.

Tables are compared, not sizes or names: padded rows do not make two tokenizers different.
"""

from __future__ import annotations

import hashlib
from typing import Any
from weakref import WeakKeyDictionary

from specviz.models import LanguageModel

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
