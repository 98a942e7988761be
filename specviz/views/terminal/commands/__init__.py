"""The commands, one a file; every file here is found by itself, so adding one is all that a new command takes.

A command's docstring is its help. It brings `configure(parser)`, which declares its arguments, and
`run(arguments) -> int`, which returns the exit status. It imports what is slow to load inside `run`.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def commands() -> dict[str, ModuleType]:
    """Every command by the name it is called by."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name.replace("_", "-"): importlib.import_module(f"{__name__}.{name}") for name in names}
