"""specviz: watch speculative decoding live, token by token, beside standard decoding.

Import levels; a module imports only from its right (a test enforces it):

    app, cli > bench, distil, ui > lanes > racing > calibration > engine > telemetry, ending > drafts
    telemetry > ending > drafts > models, sampling
    app, cli > bench, distil, ui, space, lanes > catalog > loading > sources, models > text, stopwatch
    bench, distil, ui, lanes > prompts, spelling > models, sampling > text, stopwatch, trees > traces
    engine > admission > drafts > policies > settings
    cli, ui > gallery, plots > metrics > traces > settings > errors; bench, distil > metrics

`traces`, `metrics` and `plots` never import torch, transformers or gradio; only `ui` and `app.py` import gradio.
The names below are imported when first used, so that `import specviz.traces` loads no torch.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "LanguageModel": "specviz.models",
    "Context": "specviz.models",
    "Lane": "specviz.racing",
    "Settings": "specviz.settings",
    "SpecvizError": "specviz.errors",
    "decode": "specviz.engine",
    "load": "specviz.loading",
    "make_draft": "specviz.drafts",
    "race": "specviz.racing",
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
