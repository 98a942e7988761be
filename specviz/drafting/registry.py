"""Every draft strategy by its name: each file of `specviz.drafts` is found by itself.

The folder is imported by name when somebody first asks, so that what strategies are made of does not depend on them.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

from specviz.core.errors import InputError
from specviz.drafting.strategy import Strategy
from specviz.models import LanguageModel

FOLDER = "specviz.drafts"


def strategies() -> dict[str, type[Strategy]]:
    """Every strategy by its name."""
    _import_all()
    return dict(sorted(Strategy.registry.items()))


def make_draft(
    name: str, target: LanguageModel, *, draft_model: LanguageModel | None = None, **options: Any
) -> Strategy:
    """The strategy called `name` for this target. Raises InputError or PairError in words."""
    found = strategies()
    if name not in found:
        raise InputError(f"There is no draft '{name}'; choose one of: {', '.join(found)}.")
    return found[name].make(target, draft_model, options)


@cache
def _import_all() -> None:
    package = importlib.import_module(FOLDER)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{FOLDER}.{module.name}")
