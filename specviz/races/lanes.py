"""The lanes of a race: standard decoding, then one lane per draft, named by the draft's spelling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError, located
from specviz.core.settings import Settings
from specviz.drafting import make_draft, read_draft
from specviz.models import LanguageModel
from specviz.races.racing import MAX_LANES, STANDARD, Lane

# the model of each source, or a function that loads it
Models = Mapping[str, LanguageModel] | Callable[[str], LanguageModel]


def read_drafts(texts: Sequence[str]) -> tuple[DraftSpec, ...]:
    """The checked drafts of a race, each of which becomes a lane. Raises InputError or LoadError with the lane."""
    drafts = []
    for lane, text in enumerate(texts, start=1):
        with located(lane=lane):
            drafts.append(read_draft(text))
    check_drafts(drafts)
    return tuple(drafts)


def check_drafts(drafts: Sequence[DraftSpec], most: int = MAX_LANES - 1) -> None:
    """Raises InputError for two drafts that are the same, and for more than `most`."""
    for lane, draft in enumerate(drafts, start=1):
        if draft in drafts[: lane - 1]:
            said = f"The draft '{draft}' is given twice; leave one out, or give it another k or option."
            raise InputError(said, code="given-twice", field="draft", lane=lane)
    if len(drafts) > most:
        said = f"A race holds at most {most} drafts beside standard decoding; {len(drafts)} were given."
        raise InputError(said, code="too-many", field="draft", lane=most + 1)


def make_lanes(
    target: LanguageModel,
    drafts: Sequence[DraftSpec],
    settings: Settings,
    models: Models,
    note: str | None = None,
) -> tuple[Lane, ...]:
    """The standard lane, then one per draft.

    `models` is asked once per distinct source, and never for the target's own. `note` is what there is to say of the
    whole race; the standard lane carries it. Raises InputError, LoadError or PairError.
    """
    find = models if callable(models) else models.__getitem__
    found = {target.source: target}
    lanes = [Lane(STANDARD, target, make_draft("none", target), settings, note=note)]
    for draft in drafts:
        if draft.source is not None and draft.source not in found:
            found[draft.source] = find(draft.source)
        model = None if draft.source is None else found[draft.source]
        strategy = make_draft(draft.strategy, target, draft_model=model, **dict(draft.options))
        lanes.append(Lane(draft.spell(), target, strategy, draft.settings_in(settings)))
    return tuple(lanes)
