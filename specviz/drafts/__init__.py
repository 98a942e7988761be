"""Draft strategies, one a file; every file here is found by itself, so adding one is all that a new draft takes."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from specviz.drafts.strategy import Drafter, Option, Proposal, Run, Seen, Strategy, option
from specviz.errors import InputError
from specviz.models import LanguageModel

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def strategies() -> dict[str, type[Strategy]]:
    """Every strategy by its name."""
    return dict(sorted(Strategy.registry.items()))


def make_draft(
    name: str, target: LanguageModel, *, draft_model: LanguageModel | None = None, **options: Any
) -> Strategy:
    """The strategy called `name` for this target. Raises InputError or PairError in words."""
    if name not in Strategy.registry:
        raise InputError(f"There is no draft '{name}'; choose one of: {', '.join(strategies())}.")
    return Strategy.registry[name].make(target, draft_model, options)


__all__ = ["Drafter", "Option", "Proposal", "Run", "Seen", "Strategy", "make_draft", "option", "strategies"]
