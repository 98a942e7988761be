"""The parts of a benchmark, one a file, in the order in which they run.

A part brings `TITLE` and `measure(bed) -> dict`; it raises Skipped, in words, where it cannot run. Parts that need
transformers' modules come first, those that need the target next, those that start processes of their own last, so
that memory is given back on the way. The contest of drafts is measured on its own.
"""

from __future__ import annotations

import importlib
from types import ModuleType

NAMES = ("generate", "assisted", "peers", "verify", "roofline", "page", "startup", "drafts")
USUAL = tuple(name for name in NAMES if name not in ("peers", "drafts"))
NEED_MODULES = ("generate", "assisted", "peers")
NEED_TARGET = (*NEED_MODULES, "verify", "roofline", "drafts")


def part(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")
