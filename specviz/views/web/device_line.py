"""What the page runs on, in a few words: the device, and the dtype once a model is there."""

from __future__ import annotations

from specviz.models.device import available_cores, device_name
from specviz.views.web.model_store import ModelStore
from specviz.views.web.text_line import QUIET, Line, info

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


def device_line(store: ModelStore, source: str) -> Line:
    """ "CPU · 2 cores · bf16", or QUIET while `source` is not loaded."""
    model = store.loaded(source)
    if model is None:
        return QUIET
    dtype = str(model.dtype).removeprefix("torch.")
    if model.device.type == "cpu":
        cores = available_cores()
        parts = ["CPU", f"{cores} core" if cores == 1 else f"{cores} cores"]
    else:
        parts = [device_name(model.device)]
    return info(" · ".join([*parts, _DTYPES.get(dtype, dtype)]))
