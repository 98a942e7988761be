"""The parts of a benchmark, one a file, in the order in which they run.

A part is a module with `TITLE`, `NEEDS` and `measure(harness) -> PartResult`; `measure` raises Skipped where the part
cannot run. Parts that need more in memory come first, so that memory is given back on the way.
"""

from __future__ import annotations

import importlib
from types import ModuleType

NAMES = ("generate", "assisted", "peers", "verify", "roofline", "page", "startup", "drafts")
USUAL = tuple(name for name in NAMES if name not in ("peers", "drafts"))  # the others run only when asked for


def part(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")
