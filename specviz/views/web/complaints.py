"""What of a form cannot be run, all of it at once: a sentence a field, each by the label that the field has.

Programs and the command line hear the first refusal by the setting's own name; a person fills in a page once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from specviz.core.errors import SpecvizError
from specviz.core.settings import Settings
from specviz.drafting import strategies
from specviz.races.lanes import parse_draft
from specviz.races.prompts import check_text
from specviz.races.request import NO_TARGET, Limits, check_files, check_length, check_source, draft_argument, whole
from specviz.sources import EMBEDDED
from specviz.views.web.labels import LABELS, draft_label, model_label

if TYPE_CHECKING:
    from specviz.views.web.form import Form, LaneChoice


def complaints(form: Form, limits: Limits) -> tuple[str, ...]:
    """The sentences, in the order of the page; none for a form whose every field holds what it may."""
    found = [*_said(check_text, form.prompt), *_of_target(form.target, limits)]
    for number, lane in enumerate(form.lanes, start=1):
        found += _of_lane(number, lane, limits)
    found += _of_twins(form.lanes)
    found += [sentence for name, value in form.settings.items() for sentence in _of_setting(name, value, limits)]
    return tuple(dict.fromkeys(found))


def _said(check: Callable[..., Any], *values: Any) -> list[str]:
    """What `check` has against the values."""
    try:
        check(*values)
    except SpecvizError as refusal:
        return [str(refusal)]
    return []


def _of_target(target: str, limits: Limits) -> list[str]:
    return (
        [f"Target: {sentence}" for sentence in _said(check_source, target, limits)] if target.strip() else [NO_TARGET]
    )


def _of_setting(name: str, value: Any, limits: Limits) -> Iterator[str]:
    for sentence in _said(lambda: check_length(Settings(**{name: whole(value)}), limits)):
        if value is None:
            sentence = sentence.replace(", not None", "; the field is empty")
        yield LABELS[name] + sentence.removeprefix(name) if sentence.startswith(f"{name} ") else sentence


def _of_lane(number: int, lane: LaneChoice, limits: Limits) -> Iterator[str]:
    kind = strategies().get(lane.strategy)
    if kind and kind.takes_model and not lane.source:
        yield f"{model_label(number)}: no model is chosen; pick one from the list or type a source such as hub:ID."
        return
    if lane.source:
        yield from (f"{model_label(number)}: {sentence}" for sentence in _said(check_source, lane.source, limits))
    if lane.k is None:
        yield f"{draft_label(number)}: k is empty; 0 decodes as standard."
        return
    yield from (f"{draft_label(number)}: {sentence}" for sentence in _of_files(lane, limits))
    source = EMBEDDED if kind and kind.takes_model else ""  # any that reads: the lane's own has been looked at
    for word in (("k", lane.k), ("k_policy", lane.k_policy), *lane.options):  # alone, so that each is heard of
        argument = draft_argument(lane.strategy, source, options=[word])
        yield from (f"{draft_label(number)}: {_bare(sentence, argument)}" for sentence in _said(parse_draft, argument))


def _of_files(lane: LaneChoice, limits: Limits) -> list[str]:
    """What is against the files that the options name; options that cannot be read are told of apart."""
    try:
        draft = parse_draft(draft_argument(lane.strategy, lane.source, options=lane.options))
    except SpecvizError:
        return []
    return _said(check_files, draft, limits)


def _of_twins(lanes: Sequence[LaneChoice]) -> Iterator[str]:
    """Of two lanes that are the same nobody could say which is which."""
    first: dict[str, int] = {}
    for number, lane in enumerate(lanes, start=1):
        twin = first.setdefault(lane.argument, number)
        if twin != number:
            names = f"{draft_label(twin)} and {draft_label(number)}"
            yield f"{names} are the same; give one of them another k or option, or remove it."


def _bare(sentence: str, argument: str) -> str:
    """The sentence without the argument, which nobody has typed here."""
    return sentence.removeprefix(f"In the draft '{argument}': ").replace("of k_policy ", "of ")
