"""Draft arguments, `NAME[=SOURCE][:option=value,...]`, and the lanes of a race that they make.

NAME ends at the first "=" or ":". Options are what follows the last ":" if all of it reads word=value[,word=value];
items of a list are joined with "+". A word is an option of the strategy or a field of Settings. Everything that can be
refused without a model is refused while parsing. Where a model comes from is the caller's business.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from specviz.core.errors import InputError, SpecvizError
from specviz.core.settings import SETTING_NAMES, Settings
from specviz.core.spelling import items, setting, truth
from specviz.drafting import Option, Strategy, make_draft, strategies
from specviz.models import LanguageModel
from specviz.races.racing import MAX_LANES, STANDARD, Lane
from specviz.sources import normalise

_OPTION = r"[A-Za-z_]\w*=[^,:]*"
_OPTIONS = re.compile(rf"{_OPTION}(,{_OPTION})*", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class DraftArgument:
    """A draft as typed and as understood: strategy, source of its model, options, and settings of its lane alone."""

    text: str
    strategy: str
    source: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def settings_in(self, shared: Settings) -> Settings:
        """The race's settings with this lane's own in their place."""
        return replace(shared, **self.settings)


def parse_draft(text: str) -> DraftArgument:
    """Read one draft argument. Raises InputError or LoadError in words."""
    name, source, given = _split(text)
    if name not in strategies():
        raise InputError(f"There is no draft '{name}'; choose one of: {', '.join(strategies())}.")
    try:
        return _understand(text, strategies()[name], source, given)
    except SpecvizError as error:
        raise type(error)(f"In the draft '{text}': {error}") from error


def parse_drafts(texts: Sequence[str]) -> tuple[DraftArgument, ...]:
    """Read the drafts of a race, each of which becomes a lane. Raises InputError or LoadError in words."""
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if twice is not None:
        raise InputError(f"The draft '{twice}' is given twice; leave one out, or give it another k or option.")
    if len(texts) >= MAX_LANES:
        raise InputError(
            f"A race holds at most {MAX_LANES - 1} drafts beside standard decoding; {len(texts)} were given."
        )
    return tuple(parse_draft(text) for text in texts)


def make_lanes(
    target: LanguageModel,
    drafts: Sequence[DraftArgument],
    settings: Settings,
    load_model: Callable[[str], LanguageModel],
    note: str | None = None,
) -> tuple[Lane, ...]:
    """The standard lane, then one for each draft, named as it was typed.

    `load_model` is called once for each distinct source; the target's own weights draft too, where its source is named.
    `note` is what there is to say of the whole race; the standard lane carries it. Raises LoadError or PairError.
    """
    models = {target.source: target}
    lanes = [Lane(STANDARD, target, make_draft("none", target), settings, note=note)]
    for draft in drafts:
        if draft.source is not None and draft.source not in models:
            models[draft.source] = load_model(draft.source)
        model = None if draft.source is None else models[draft.source]
        strategy = make_draft(draft.strategy, target, draft_model=model, **draft.options)
        lanes.append(Lane(draft.text, target, strategy, draft.settings_in(settings)))
    return tuple(lanes)


def _split(text: str) -> tuple[str, str | None, str | None]:
    """(name, source, options), the last two None where there are none."""
    name = re.split("[=:]", text, maxsplit=1)[0]
    rest = text[len(name) :]
    before, colon, after = rest.rpartition(":")
    options = after if colon and _OPTIONS.fullmatch(after) else None
    rest = rest if options is None else before
    if rest.startswith(":"):
        raise InputError(f"In the draft '{text}', what follows '{name}:' must read option=value[,option=value].")
    return name.strip(), (rest[1:].strip() if rest else None), options


def _understand(text: str, strategy: type[Strategy], source: str | None, given: str | None) -> DraftArgument:
    if source is not None and not strategy.takes_model:
        raise InputError(f"'{strategy.name}' takes no model of its own; leave '={source}' out.")
    if source is None and strategy.takes_model:
        raise InputError(f"'{strategy.name}' needs a draft model; name its source, as in {strategy.name}=hub:ID.")
    own = {option.name: option for option in strategy.options()}
    options, settings = {}, {}
    for word, value in _pairs(given):
        if word in SETTING_NAMES:
            settings[word] = setting(word, value)
        elif word in own:
            options[word] = _option(own[word], value)
        else:
            raise InputError(f"There is no option '{word}'; there are: {', '.join([*own, *SETTING_NAMES])}.")
    Settings(**settings)  # refuses a value out of its range
    return DraftArgument(text, strategy.name, None if source is None else normalise(source), options, settings)


def _pairs(given: str | None) -> list[tuple[str, str]]:
    pairs = [tuple(part.split("=", 1)) for part in given.split(",")] if given else []
    words = [word for word, _ in pairs]
    twice = next((word for word in words if words.count(word) > 1), None)
    if twice is not None:
        raise InputError(f"The option '{twice}' is given twice; leave one out.")
    return pairs


def _option(option: Option, value: str) -> Any:
    if option.type in (tuple, list):
        return option.parse(items(value))
    return option.parse(truth(option.name, value) if option.type is bool else value)
