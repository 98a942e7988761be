"""What a visitor asks for, checked in Python: a browser's controls, and an API client more so, may send anything.

Draft arguments are those of the command line, so that the page, the API and the command line run the same lanes. Plain
values only: a request can be pickled into another process. Nothing is loaded here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specviz.core.errors import InputError, LoadError
from specviz.core.settings import MAX_NEW_TOKENS, Settings
from specviz.drafting import strategies
from specviz.races.lanes import DraftArgument, parse_drafts
from specviz.races.prompts import check_text
from specviz.sources import normalise, split_form

MAX_DRAFTS = 3  # beside the standard lane
_OF_FILES = ("path:", "gguf:")  # sources that name a file or a folder
NO_TARGET = "No target is chosen; pick one from the list or type a source such as hub:ID."


@dataclass(frozen=True, slots=True)
class Limits:
    """What this machine lets visitors ask for. `sources` are the only ones allowed, with their bytes; None allows any.

    `files`: whether they may name files and folders of the machine; `memory`: bytes that a race's models may take.
    """

    max_new_tokens: int = MAX_NEW_TOKENS
    sources: Mapping[str, int] | None = None
    files: bool = True
    memory: float = math.inf


@dataclass(frozen=True, slots=True)
class RaceRequest:
    """A race to run: `drafts` are draft arguments, `target` a source, `settings` what all lanes share."""

    prompt: str
    drafts: tuple[str, ...]
    target: str
    settings: Settings
    chat: bool = True

    @property
    def parsed_drafts(self) -> tuple[DraftArgument, ...]:
        return parse_drafts(self.drafts)

    @property
    def sources(self) -> tuple[str, ...]:
        """The target's source, then each distinct one of a draft."""
        drafts = (draft.source for draft in self.parsed_drafts if draft.source)
        return tuple(dict.fromkeys((self.target, *drafts)))


def make_request(
    prompt: Any, drafts: Any, target: Any, settings: dict[str, Any], chat: Any = True, limits: Limits | None = None
) -> RaceRequest:
    """The checked request. Raises InputError or LoadError, in a sentence, for whatever cannot be run as asked."""
    limits = limits or Limits()
    if not isinstance(prompt, str):
        raise InputError("The prompt must be a text.")
    check_text(prompt)
    if not isinstance(target, str) or not target.strip():
        raise InputError(NO_TARGET)
    request = RaceRequest(prompt, _texts(drafts), normalise(target), _settings(settings), bool(chat))
    parsed = request.parsed_drafts
    for source in request.sources:
        check_source(source, limits)
    check_memory(request.sources, limits)
    for draft in parsed:
        check_files(draft, limits)
    for lane in (request.settings, *(draft.settings_in(request.settings) for draft in parsed)):
        check_length(lane, limits)
    return request


def check_source(source: str, limits: Limits) -> None:
    """Raises LoadError for what is no source of weights, or none that this machine offers."""
    known = split_form(normalise(source))[0]
    if not limits.files and known.startswith(_OF_FILES):
        raise LoadError(
            f"'{source}' names a file of this machine, which visitors may not; choose a model from the list."
        )
    if limits.sources is not None and known not in limits.sources:
        raise LoadError(f"'{source}' is not offered on this machine; choose a model from the list.")


def check_memory(sources: Sequence[str], limits: Limits) -> None:
    """Raises LoadError where models that each fit do not fit together."""
    if limits.sources is None:
        return
    known = {split_form(source)[0] for source in sources}
    if sum(limits.sources[source] for source in known) > limits.memory:
        raise LoadError(
            f"A race of {' and '.join(sources)} is not offered on this machine: together they exceed its memory; "
            "choose smaller models or fewer."
        )


def check_files(draft: DraftArgument, limits: Limits) -> None:
    """Raises InputError for an option that names a file where none may be named."""
    kind = strategies()[draft.strategy]
    for option in () if limits.files else kind.options():
        if option.path and draft.options.get(option.name):
            raise InputError(
                f"The option {option.name} names a file of this machine, which visitors may not; leave it empty."
            )


def check_length(settings: Settings, limits: Limits) -> None:
    """Raises InputError for more new tokens than this machine writes."""
    if settings.max_new_tokens > limits.max_new_tokens:
        most, asked = limits.max_new_tokens, settings.max_new_tokens
        raise InputError(f"This machine writes at most {most} new tokens a lane; {asked} were asked for.")


def whole(value: Any) -> Any:
    """Number fields of a browser send 5.0 for 5."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def draft_argument(strategy: str, source: str = "", k: Any = None, options: Sequence[tuple[str, Any]] = ()) -> str:
    """The argument that spells a lane's choices, as it would be typed on the command line."""
    words = [*((name, value) for name, value in options), *([] if k is None else [("k", k)])]
    spelt = ",".join(f"{name}={_spell(value)}" for name, value in words)
    return strategy + (f"={source}" if source else "") + (f":{spelt}" if spelt else "")


def _texts(drafts: Any) -> tuple[str, ...]:
    if not isinstance(drafts, str | list | tuple | None):
        raise InputError(f"The drafts must be a list of texts, such as prompt-lookup, not {drafts!r:.40}.")
    texts = (drafts,) if isinstance(drafts, str) else tuple(drafts or ())
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise InputError("No draft is chosen; name at least one, such as prompt-lookup.")
    if len(texts) > MAX_DRAFTS:
        raise InputError(f"A race here holds at most {MAX_DRAFTS} drafts beside standard decoding; leave some out.")
    return tuple(text.strip() for text in texts)


def _settings(values: dict[str, Any]) -> Settings:
    return Settings(**{name: whole(value) for name, value in values.items()})


def _spell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "+".join(map(str, value))
    return str(whole(value))
