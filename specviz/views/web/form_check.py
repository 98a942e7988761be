"""From a form to a request: all that cannot run is told at once, each field by its label.

Programs and the command line hear of the first mistake by its name in Settings; a person fills in a page once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError, SpecvizError
from specviz.core.settings import Settings
from specviz.drafting import checked, faults, strategies
from specviz.races.prompts import check_text
from specviz.races.race_limits import Limits
from specviz.races.request import RaceRequest, checked_target, make_request
from specviz.views.web.form import Form
from specviz.views.web.labels import draft_label, worded


def request_of(form: Form, limits: Limits) -> RaceRequest:
    """The race that the form asks for. Raises SpecvizError: a line per field that holds what it may not."""
    errors = form_errors(form, limits)
    if errors:
        raise InputError("\n".join(worded(error) for error in errors))
    return make_request(form.prompt, form.lanes, form.target_source, form.settings, form.chat, limits)


def form_errors(form: Form, limits: Limits) -> tuple[SpecvizError, ...]:
    """An error per field that cannot be used, in the order of the page."""
    found = [*_raised(check_text, form.prompt), *_raised(_check_target, form.target, limits)]
    for number, lane in enumerate(form.lanes, start=1):
        found += [error.at(lane=number) for error in (*lane_errors(lane), *_not_allowed(lane, limits))]
    found += _twins(form.lanes)
    for name, value in form.settings.items():
        found += _raised(_check_setting, name, value, limits)
    return tuple({worded(error): error for error in found}.values())


def lane_errors(lane: DraftSpec) -> Iterator[SpecvizError]:
    """What is wrong with the draft of a lane wherever it runs."""
    kind = strategies().get(lane.strategy)
    if kind and kind.takes_model and lane.source is None:
        said = "no model is chosen; pick one from the list or type a source such as hub:ID."
        yield InputError(said, code="empty", field="draft.source")
        return
    if lane.k is None:
        yield InputError("is empty; 0 decodes as standard.", subject="k", code="empty", field="draft.k")
        return
    yield from faults(lane)


def _raised(check: Callable[..., Any], *values: Any) -> list[SpecvizError]:
    """What `check` has against the values."""
    try:
        check(*values)
    except SpecvizError as error:
        return [error]
    return []


def _check_target(target: str, limits: Limits) -> None:
    limits.check_source(checked_target(target), "target")


def _check_setting(name: str, value: Any, limits: Limits) -> None:
    limits.check_length(Settings(**{name: value}).max_new_tokens)


def _not_allowed(lane: DraftSpec, limits: Limits) -> list[SpecvizError]:
    """What this machine does not allow of a draft that can be read."""
    if _raised(checked, lane):
        return []
    return _raised(limits.check_draft, checked(lane))


def _twins(lanes: Sequence[DraftSpec]) -> Iterator[SpecvizError]:
    """Two lanes that are the same could not be told apart."""
    for number, lane in enumerate(lanes, start=1):
        first = lanes.index(lane) + 1
        if first < number:
            names = f"{draft_label(first)} and {draft_label(number)}"
            said = f"{names} are the same; give one of them another k or option, or remove it."
            yield InputError(said, code="given-twice", field="draft")
