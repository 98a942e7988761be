"""specviz: watch speculative decoding live, token by token, beside standard decoding.

Import levels; a module imports only from its right, and the chains add up (a test enforces it):

    app > views > distil > experiments > catalogue > races
    races > decoding > drafts > drafting > sampling > core
    races, drafting > sources > models > traces > core
    distil, experiments, views > metrics > traces

`traces`, `metrics` and `views.plots` never import torch, transformers or gradio; only `views.web` and `app.py` import
gradio.
The names below are imported when first used, so that `import specviz.traces` loads no torch.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "LanguageModel": "specviz.models",
    "Context": "specviz.models",
    "Lane": "specviz.races.racing",
    "Settings": "specviz.core.settings",
    "SpecvizError": "specviz.core.errors",
    "decode": "specviz.decoding.engine",
    "load": "specviz.sources.loader",
    "make_draft": "specviz.drafting",
    "race": "specviz.races.racing",
    "read_trace": "specviz.traces",
    "summarize": "specviz.metrics",
    "write_trace": "specviz.traces",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'specviz' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
