"""A Form as the query of an address and back, so that a setup can be sent, bookmarked and remembered.

Lanes are written as on the command line, the rarer settings only where they are not as usual.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from specviz.core.errors import InputError
from specviz.core.settings import Settings
from specviz.core.spelling import setting, truth
from specviz.races.request import MAX_DRAFTS
from specviz.sources import FORMS
from specviz.views.web.form import NATIVE, SHARED, Form, LaneChoice
from specviz.views.web.labels import draft_label

MAX_QUERY = 8000
_ALWAYS = ("max_new_tokens", "temperature", "seed")


def to_query(form: Form) -> str:
    """The query, without "?". Raises InputError where the prompt is too long for an address."""
    usual = Settings()
    pairs: list[tuple[str, Any]] = [("prompt", form.prompt), ("target", form.target)]
    pairs += [("draft", lane.argument) for lane in form.lanes]
    pairs += [] if form.chat else [("chat", "0")]
    pairs += [] if form.weights == NATIVE else [("weights", form.weights)]
    for name in SHARED:
        value = form.settings[name]
        if name in _ALWAYS or value != getattr(usual, name):
            pairs += [(name, item) for item in value] if name == "stop" else [(name, _spell(value))]
    query = urlencode(pairs)
    if len(query) > MAX_QUERY:
        raise InputError("The prompt is too long for an address; send it apart.")
    return query


def link(form: Form, usual: Form) -> str:
    """The query of a form that others may open, which is read back before it is given away.

    Raises SpecvizError, in words, where it would be refused or mean another setup.
    """
    for number, lane in enumerate(form.lanes, start=1):
        if lane.k is None:
            raise InputError(f"{draft_label(number)}: k is empty; 0 decodes as standard.")
    query = to_query(form)
    read = from_query(query, usual)
    if [_words(lane) for lane in read.lanes] != [_words(lane) for lane in form.lanes]:
        raise InputError("An address cannot hold an option with a comma or a colon in it; rename the file.")
    return query


def _words(lane: LaneChoice) -> tuple[str, ...]:
    return lane.strategy, *(name for name, _ in lane.options)


def from_query(query: str | Iterable[tuple[str, str]], usual: Form) -> Form:
    """The form that a query describes; what it leaves out is as in `usual`, keys of others are ignored.

    Raises SpecvizError, in words, for a lane or a number that is none.
    """
    pairs = list(parse_qsl(query, keep_blank_values=True) if isinstance(query, str) else query)
    given = dict(pairs)
    usual_k = Settings().k
    drafts = tuple(LaneChoice.of(value, usual_k) for name, value in pairs if name == "draft")
    if len(drafts) > MAX_DRAFTS:
        raise InputError(f"The page holds at most {MAX_DRAFTS} drafts, and {len(drafts)} are named; leave some out.")
    told = {name: setting(name, given[name]) for name in SHARED if name in given}
    if "stop" in told:
        told["stop"] = tuple(value for name, value in pairs if name == "stop")
    settings = {**usual.settings, **told}
    Settings(**settings)
    return replace(
        usual,
        prompt=given.get("prompt", usual.prompt),
        target=given.get("target", usual.target),
        lanes=drafts or usual.lanes,
        chat=truth("chat", given.get("chat", "1")),
        settings=settings,
        weights=_weights(given.get("weights", NATIVE)),
    )


def speaks(query: Iterable[tuple[str, str]]) -> bool:
    """Whether a query says anything of a form; an address may carry other things."""
    return bool({name for name, _ in query} & {"prompt", "target", "draft", "chat", "weights", *SHARED})


def _weights(value: str) -> str:
    if value not in (NATIVE, *FORMS):
        raise InputError(f"Weights run {', '.join((NATIVE, *FORMS))}, not '{value}'.")
    return value


def _spell(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
