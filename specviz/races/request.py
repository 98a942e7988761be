"""A race as it is asked for, and the one way to put it together: prompt, lanes, race.

The page, the API, ZeroGPU, the command line, the bench and the gallery all run a `RaceRequest`. It holds plain values
only and can be pickled into another process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError, located
from specviz.core.settings import Settings
from specviz.drafting import checked, read_draft
from specviz.models import LanguageModel
from specviz.races.lanes import Models, check_drafts, make_lanes
from specviz.races.prompts import Prompt, check_text, make_prompt
from specviz.races.race_limits import Limits
from specviz.races.racing import race
from specviz.sources import normalise
from specviz.traces import Event

MAX_DRAFTS = 3  # beside the standard lane, on the page and in the API


@dataclass(frozen=True, slots=True)
class RaceRequest:
    """A race to run: `target` is a source, `drafts` are checked specs, `settings` what all lanes share.

    `chat`: see `specviz.races.prompts.make_prompt`.
    """

    prompt: str
    drafts: tuple[DraftSpec, ...]
    target: str
    settings: Settings
    chat: bool | None = True

    @property
    def sources(self) -> tuple[str, ...]:
        """The target's source, then each distinct one of a draft."""
        return tuple(dict.fromkeys((self.target, *(draft.source for draft in self.drafts if draft.source))))

    @property
    def lane_settings(self) -> tuple[Settings, ...]:
        """The settings of every lane, the standard one first."""
        return self.settings, *(draft.settings_in(self.settings) for draft in self.drafts)

    @property
    def k_max(self) -> int:
        return max(lane.k for lane in self.lane_settings)

    @property
    def max_new_tokens(self) -> int:
        """The length of the longest lane."""
        return max(lane.max_new_tokens for lane in self.lane_settings)

    def prompt_for(self, target: LanguageModel) -> Prompt:
        """The prompt as `target` reads it. Raises InputError or ContextError."""
        return make_prompt(target, self.prompt, chat=self.chat, max_new_tokens=self.max_new_tokens)

    def events(self, models: Models, *, cancelled: Callable[[], bool] = lambda: False) -> Iterator[Event]:
        """Run the race; see `specviz.races.racing.race`. Raises SpecvizError before the first event.

        `models` holds the model of every source, or loads it, the target first.
        """
        check_text(self.prompt)
        target = models(self.target) if callable(models) else models[self.target]
        prompt = self.prompt_for(target)
        lanes = make_lanes(target, self.drafts, self.settings, models, " ".join(prompt.notes) or None)
        yield from race(lanes, prompt.ids, prompt=prompt.text, chat=prompt.chat, cancelled=cancelled)


def make_request(
    prompt: Any, drafts: Any, target: Any, settings: dict[str, Any], chat: Any = True, limits: Limits | None = None
) -> RaceRequest:
    """The checked request of a browser or a program, which may send anything.

    `drafts` is a draft or a list of them, each a DraftSpec or its spelling. Raises InputError or LoadError, with the
    field, for whatever cannot run as asked.
    """
    limits = limits or Limits()
    check_text(prompt)
    request = RaceRequest(prompt, _drafts(drafts), checked_target(target), Settings(**settings), bool(chat))
    check_drafts(request.drafts)
    _check(request, limits)
    return request


def checked_target(target: Any) -> str:
    """The normalised source of a target. Raises InputError or LoadError."""
    if not isinstance(target, str) or not target.strip():
        said = "No target is chosen; pick one from the list or type a source such as hub:ID."
        raise InputError(said, code="empty", field="target")
    with located("target"):
        return normalise(target)


def _drafts(drafts: Any) -> tuple[DraftSpec, ...]:
    if not isinstance(drafts, str | DraftSpec | list | tuple | None):
        said = f"The drafts must be a list of texts, such as prompt-lookup, not {drafts!r:.40}."
        raise InputError(said, code="wrong-type", field="draft")
    given = (drafts,) if isinstance(drafts, str | DraftSpec) else tuple(drafts or ())
    if not given or not all(isinstance(one, DraftSpec) or (isinstance(one, str) and one.strip()) for one in given):
        raise InputError("No draft is chosen; name at least one, such as prompt-lookup.", code="empty", field="draft")
    if len(given) > MAX_DRAFTS:
        said = f"A race here holds at most {MAX_DRAFTS} drafts beside standard decoding; leave some out."
        raise InputError(said, code="too-many", field="draft", lane=MAX_DRAFTS + 1)
    return tuple(_draft(lane, one) for lane, one in enumerate(given, start=1))


def _draft(lane: int, draft: str | DraftSpec) -> DraftSpec:
    with located(lane=lane):
        return checked(draft) if isinstance(draft, DraftSpec) else read_draft(draft.strip())


def _check(request: RaceRequest, limits: Limits) -> None:
    """Raises InputError or LoadError for what this machine does not allow."""
    limits.check_source(request.target, "target")
    for lane, draft in enumerate(request.drafts, start=1):
        with located(lane=lane):
            limits.check_draft(draft)
    limits.check_memory(request.sources)
    for lane, settings in enumerate(request.lane_settings):
        with located(lane=lane or None):
            limits.check_length(settings.max_new_tokens)
