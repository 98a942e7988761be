"""What a benchmark ran on: the processor, its cores and memory, and the versions of what computes."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

import torch

from specviz import __version__
from specviz.experiments.bandwidth import last_level_cache
from specviz.models.device import available_cores, device_name

_PACKAGES = ("torch", "transformers", "tokenizers", "gradio")


def machine(device: torch.device) -> dict[str, Any]:
    """Facts that make numbers comparable. `load_average` is the system's, of the minute before: others' work."""
    return {
        "processor": device_name(torch.device("cpu")),
        "device": str(device),
        "device_name": device_name(device),
        "cores": available_cores(),
        "threads": torch.get_num_threads(),
        "memory_bytes": _memory(),
        "last_level_cache_bytes": last_level_cache() or None,
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "versions": {"specviz": __version__, "python": platform.python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    return {name: metadata.version(name) for name in _PACKAGES}


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not every system tells
        return None
