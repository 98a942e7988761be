"""A Form as the query of an address and back, so that a setup can be sent, bookmarked and remembered.

Lanes are spelt as on the command line. Settings that are rarely changed are left out where they have their usual value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError
from specviz.core.settings import Settings
from specviz.core.spelling import setting, truth
from specviz.drafting import checked, read_draft, strategies
from specviz.races.request import MAX_DRAFTS
from specviz.sources import FORMS
from specviz.views.web.form import NATIVE, SHARED, Form, as_lane
from specviz.views.web.form_check import lane_errors
from specviz.views.web.labels import LABELS

MAX_QUERY = 8000
_ALWAYS = ("max_new_tokens", "temperature", "seed")


def to_query(form: Form) -> str:
    """The query, without "?". Raises InputError where the prompt is too long for an address."""
    usual = Settings()
    pairs: list[tuple[str, Any]] = [("prompt", form.prompt), ("target", form.target)]
    pairs += [("draft", lane.spell()) for lane in form.lanes]
    pairs += [] if form.chat else [("chat", "0")]
    pairs += [] if form.weights == NATIVE else [("weights", form.weights)]
    for name in SHARED:
        value = form.settings[name]
        if name in _ALWAYS or value != getattr(usual, name):
            pairs += [(name, item) for item in value] if name == "stop" else [(name, _spell(value))]
    query = urlencode(pairs)
    if len(query) > MAX_QUERY:
        raise InputError("The prompt is too long for an address; send it apart.", code="too-long", field="prompt")
    return query


def link(form: Form, usual: Form) -> str:
    """The query of a form that others may open. Raises SpecvizError where opening it would be refused."""
    for number, lane in enumerate(form.lanes, start=1):
        for error in lane_errors(lane):
            raise error.at(lane=number)
    query = to_query(replace(form, lanes=tuple(map(checked, form.lanes))))
    from_query(query, usual)
    return query


def from_query(query: str | Iterable[tuple[str, str]], usual: Form) -> Form:
    """The form that a query describes; what it leaves out is as in `usual`, unknown keys are ignored.

    Raises SpecvizError for a lane or a setting that cannot be used.
    """
    pairs = list(parse_qsl(query, keep_blank_values=True) if isinstance(query, str) else query)
    given = dict(pairs)
    drafts = tuple(_lane(value) for name, value in pairs if name == "draft")
    if len(drafts) > MAX_DRAFTS:
        said = f"The page holds at most {MAX_DRAFTS} drafts, and {len(drafts)} are named; leave some out."
        raise InputError(said, code="too-many", field="draft")
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
    """Whether a query says anything about a form; an address may carry other things."""
    return bool({name for name, _ in query} & {"prompt", "target", "draft", "chat", "weights", *SHARED})


def _lane(text: str) -> DraftSpec:
    """The lane that a draft's spelling describes. Raises InputError for what a lane of the page cannot show."""
    draft = read_draft(text)
    if not strategies()[draft.strategy].drafts:
        raise InputError(f"'{draft.strategy}' drafts nothing; choose a draft, standard decoding runs beside it anyway.")
    for name, _ in draft.settings:
        if name in SHARED:
            said = (
                f"In the draft '{text}', the page cannot show {name} for one lane alone; leave it out, or set "
                f"“{LABELS[name]}”, which holds for all lanes."
            )
            raise InputError(said, code="not-shown", field=f"draft.{name}")
    return as_lane(draft, Settings().k)


def _weights(value: str) -> str:
    if value not in (NATIVE, *FORMS):
        said = f"Weights run {', '.join((NATIVE, *FORMS))}, not '{value}'."
        raise InputError(said, code="unknown-choice", field="weights")
    return value


def _spell(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
