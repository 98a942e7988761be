"""Every draft strategy by its name: each file of `specviz.drafts` is found by itself.

The folder is imported by name when somebody first asks, so that what strategies are made of does not depend on them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError, SpecvizError, located
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
    if name not in strategies():
        raise _unknown(name)
    return strategies()[name]


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
    source = _source(kind, spec.source)
    options = {name: _option(kind, name, value) for name, value in spec.options}
    return DraftSpec(kind.name, source, options, {name: _setting(name, value) for name, value in spec.settings})


def faults(spec: DraftSpec) -> Iterator[SpecvizError]:
    """An error per part of the spec that cannot be used, each part looked at by itself."""
    if spec.strategy not in strategies():
        yield _unknown(spec.strategy)
        return
    kind = strategies()[spec.strategy]
    reads = [partial(_source, kind, spec.source)]
    reads += [partial(_setting, name, value) for name, value in spec.settings]
    reads += [partial(_option, kind, name, value) for name, value in spec.options]
    for read in reads:
        try:
            read()
        except SpecvizError as error:
            yield error


def _source(kind: type[Strategy], source: str | None) -> str | None:
    field = "draft.source"
    if source is not None and not kind.takes_model:
        said = f"'{kind.name}' takes no model of its own; leave '={source}' out."
        raise InputError(said, code="takes-no-model", field=field)
    if source is None and kind.takes_model:
        said = f"'{kind.name}' needs a draft model; name its source, as in {kind.name}=hub:ID."
        raise InputError(said, code="needs-model", field=field)
    with located(field):
        return None if source is None else normalise(source)


def _option(kind: type[Strategy], name: str, value: Any) -> Any:
    own = {option.name: option for option in kind.options()}
    if name not in own:
        said = f"There is no option '{name}'; there are: {', '.join([*own, *SETTING_NAMES])}."
        raise InputError(said, code="unknown-option", field=f"draft.options.{name}")
    with located(f"draft.options.{name}"):
        return own[name].parse(typed(own[name].type, name, value))


def _setting(name: str, value: Any) -> Any:
    with located(f"draft.{name}"):
        return getattr(Settings(**{name: setting(name, value)}), name)


def _unknown(name: str) -> InputError:
    said = f"There is no draft '{name}'; choose one of: {', '.join(strategies())}."
    return InputError(said, code="unknown-draft", field="draft")


@cache
def _import_all() -> None:
    package = importlib.import_module(FOLDER)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{FOLDER}.{module.name}")
