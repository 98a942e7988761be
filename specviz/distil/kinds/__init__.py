"""Kinds of draft, one a file; every file here is found by itself, so adding one is all that a new kind takes.

The first line of its docstring is its help. It brings `train(job) -> Trained`, which makes the draft of a Job and goes
on where a killed run of the same job stopped, and `TEXT_SHARE`, the share of the time that goes into the text. It
imports what is slow to load inside `train`.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from specviz.core.errors import InputError


def kinds() -> tuple[str, ...]:
    """The kinds' names."""
    return tuple(sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)))


def kind(name: str) -> ModuleType:
    """The kind of that name. Raises InputError."""
    if name not in kinds():
        raise InputError(f"There is no kind '{name}'; choose one of: {', '.join(kinds())}.")
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
