"""Choose the device and the number of threads, and name the device."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import torch

from specviz.core.errors import LoadError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def pick_device(name: str = "auto") -> torch.device:
    """The device called `name`; auto takes cuda, else mps, else cpu. Raises LoadError where it is not available."""
    available = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available, "cpu": lambda: True}
    if name == "auto":
        name = next(kind for kind, there in available.items() if there())
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise LoadError(f"'{name}' is not a device; use auto, cuda, mps or cpu.") from error
    if device.type not in available:
        raise LoadError(f"The device '{name}' is not supported; use auto, cuda, mps or cpu.")
    if not available[device.type]():
        raise LoadError(f"This machine has no usable '{device.type}' device; use --device auto or cpu.")
    return device


def device_name(device: torch.device) -> str:
    """The name of the device for people, such as the processor's."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return "Apple GPU" if device.type == "mps" else _processor()


def available_cores() -> int:
    """The cores that this process may use: its affinity, limited by a container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    quota = _container_quota()
    return max(1, min(cores, quota) if quota else cores)


def use_available_cores() -> int:
    """Set torch's threads to the cores that this process may use; returns their number."""
    cores = available_cores()
    if torch.get_num_threads() != cores:
        torch.set_num_threads(cores)
    return cores


def _container_quota() -> int | None:
    """Whole cores by CPU_CORES, which Spaces set, or by a cgroup v2 quota (its file says "max 100000" for none)."""
    given = os.environ.get("CPU_CORES", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if quota == "max" else max(1, round(int(quota) / int(period)))
    except (OSError, ValueError):
        return None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
