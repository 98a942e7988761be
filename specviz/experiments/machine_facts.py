"""The facts that make measurements comparable: the machine, the versions of what computes, and the models."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import torch

from specviz import __version__
from specviz.models import LanguageModel
from specviz.models.device import available_cores, device_name

_PACKAGES = ("torch", "transformers", "tokenizers", "gradio")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """`load_average` is the system's over the last minute: the work of others. None is what the system hides."""

    processor: str
    device: str
    device_name: str
    cores: int
    threads: int
    memory_bytes: int | None
    last_level_cache_bytes: int | None
    load_average: float | None
    system: str
    versions: Mapping[str, str]

    @classmethod
    def of(cls, device: torch.device) -> MachineFacts:
        return cls(
            processor=device_name(torch.device("cpu")),
            device=str(device),
            device_name=device_name(device),
            cores=available_cores(),
            threads=torch.get_num_threads(),
            memory_bytes=_memory(),
            last_level_cache_bytes=last_level_cache(),
            load_average=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            system=platform.platform(),
            versions={"specviz": __version__, "python": platform.python_version(), **_versions()},
        )


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model of the benchmark; everything but its source is None until a part has loaded it."""

    source: str
    name: str | None = None
    revision: str | None = None
    parameters: int | None = None
    bytes: int | None = None
    execution: str | None = None
    dtype: str | None = None
    load_seconds: float | None = None
    warmup_seconds: float | None = None

    @classmethod
    def of(cls, model: LanguageModel) -> ModelFacts:
        info = model.info
        return cls(
            info.source,
            info.name,
            info.revision,
            info.parameters,
            info.bytes,
            info.execution,
            name_of(model.dtype),
            model.load_seconds,
            model.warmup_seconds,
        )


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def last_level_cache() -> int | None:
    """Bytes of the largest cache that the processor reports; None where it reports none."""
    sizes = [_size(path.read_text()) for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max(sizes, default=0) or None


def _size(text: str) -> int:
    """Bytes of a size such as 32K; 0 where it cannot be read."""
    digits = text.strip().rstrip("KMG")
    return int(digits) * _UNITS.get(text.strip()[-1:], 1) if digits.isdigit() else 0


def _versions() -> dict[str, str]:
    return {name: metadata.version(name) for name in _PACKAGES}


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not every system tells
        return None
