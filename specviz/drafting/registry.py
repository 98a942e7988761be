"""Every draft strategy by its name: each file of `specviz.drafts` is found by itself.

The folder is imported by name when somebody first asks, so that what strategies are made of does not depend on them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from typing import Any

from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError, located
from specviz.core.settings import SETTING_NAMES, Settings
from specviz.core.spelling import setting, typed
from specviz.drafting.strategy import Strategy
from specviz.models import LanguageModel
from specviz.sources import normalise

FOLDER = "specviz.drafts"


def strategies() -> dict[str, type[Strategy]]:
    """Every strategy by its name."""
    _import_all()
    return dict(sorted(Strategy.registry.items()))


def make_draft(
    name: str, target: LanguageModel, *, draft_model: LanguageModel | None = None, **options: Any
) -> Strategy:
    """The strategy called `name` for this target. Raises InputError or PairError in words."""
    return strategy_of(name).make(target, draft_model, options)


def strategy_of(name: str) -> type[Strategy]:
    """The strategy called `name`. Raises InputError for an unknown one."""
    found = strategies()
    if name not in found:
        said = f"There is no draft '{name}'; choose one of: {', '.join(found)}."
        raise InputError(said, code="unknown-draft", field="draft")
    return found[name]


def read_draft(text: str) -> DraftSpec:
    """The checked spec that a person typed. Raises InputError or LoadError that quotes the text."""
    spec = DraftSpec.parse(text)
    strategy_of(spec.strategy)
    with located(context=f"In the draft '{text}': "):
        return checked(spec)


def checked(spec: DraftSpec) -> DraftSpec:
    """The spec in canonical form: every value as its type and in its range, the source normalised.

    Raises InputError or LoadError, whose `field` says which part cannot be used.
    """
    kind = strategy_of(spec.strategy)
    source = _checked_source(kind, spec.source)
    own = {option.name: option for option in kind.options()}
    unknown = next((name for name, _ in spec.options if name not in own), None)
    if unknown is not None:
        said = f"There is no option '{unknown}'; there are: {', '.join([*own, *SETTING_NAMES])}."
        raise InputError(said, code="unknown-option", field=f"draft.options.{unknown}")
    try:
        options = {name: own[name].parse(typed(own[name].type, name, value)) for name, value in spec.options}
    except InputError as error:
        raise error.below("draft.options") from error
    return DraftSpec(spec.strategy, source, options, _checked_settings(spec.settings))


def _checked_source(kind: type[Strategy], source: str | None) -> str | None:
    field = "draft.source"
    if source is not None and not kind.takes_model:
        said = f"'{kind.name}' takes no model of its own; leave '={source}' out."
        raise InputError(said, code="takes-no-model", field=field)
    if source is None and kind.takes_model:
        said = f"'{kind.name}' needs a draft model; name its source, as in {kind.name}=hub:ID."
        raise InputError(said, code="needs-model", field=field)
    with located(field):
        return None if source is None else normalise(source)


def _checked_settings(settings: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    try:
        given = {name: setting(name, value) for name, value in settings}
        allowed = Settings(**given)
    except InputError as error:
        raise error.below("draft") from error
    return {name: getattr(allowed, name) for name in given}


@cache
def _import_all() -> None:
    package = importlib.import_module(FOLDER)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{FOLDER}.{module.name}")
