"""A Form is what the page's left column says, as plain values; an Offer is what this machine puts on its lists.

Forms are the bridge between components, links, presets and requests. Knows nothing of Gradio.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from specviz.catalog import Catalog, Model, Profile
from specviz.errors import SpecvizError
from specviz.settings import Settings
from specviz.ui.presets import presets
from specviz.ui.request import Limits, RaceRequest, draft_argument, make_request

# of Settings; k and k_policy belong to a lane
SHARED = tuple(spec.name for spec in fields(Settings) if spec.name not in ("k", "k_policy"))
NATIVE = "native"
# (label, source)
Source = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LaneChoice:
    """What a lane's controls say: a strategy, a source for its model (where it takes one), its options and k."""

    strategy: str
    source: str = ""
    k: Any = 4
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def argument(self) -> str:
        """The lane as it would be typed on the command line."""
        return draft_argument(self.strategy, self.source, self.k, self.options)


@dataclass(frozen=True, slots=True)
class Form:
    """What the column says. `settings` holds the fields of SHARED, unchecked; `lanes` the drafts that are shown.

    `weights`: how the target's weights are run, NATIVE or one of the sources' FORMS.
    """

    prompt: str
    target: str
    lanes: tuple[LaneChoice, ...]
    chat: bool = True
    settings: dict[str, Any] = field(default_factory=dict)
    weights: str = NATIVE

    def request(self, limits: Limits) -> RaceRequest:
        """Raises SpecvizError, in a sentence, for whatever cannot be run."""
        drafts = [lane.argument for lane in self.lanes]
        target = self.target if self.weights == NATIVE else f"{self.target}#{self.weights}"
        return make_request(self.prompt, drafts, target, self.settings, self.chat, limits)


def apply_preset(form: Form, name: str) -> Form:
    """The form with a preset's prompt and settings; greedy unless the preset says otherwise."""
    preset = presets()[name]
    settings = {**form.settings, "temperature": 0.0, **preset.settings}
    k = settings.pop("k", None)
    lanes = form.lanes if k is None else (replace(form.lanes[0], k=k), *form.lanes[1:])
    return replace(form, prompt=preset.prompt, settings=settings, lanes=lanes)


class Offer:
    """What this machine offers: the catalogue seen through its profile."""

    def __init__(self, catalog: Catalog, profile: Profile, target: str | None = None) -> None:
        self.catalog, self.profile = catalog, profile
        self.target = target or catalog.model(profile.target).source
        self.limits = Limits.of(catalog, profile)

    def targets(self) -> list[Source]:
        """Every target; one that was named at the start comes first."""
        listed = [(model.label, model.source) for model in self.catalog.targets_for(self.profile)]
        return listed if self._model(self.target) else [(self.target, self.target), *listed]

    def drafts(self, target: str) -> list[Source]:
        """The models that speak the target's tokens; what else speaks against one is in its label."""
        model = self._model(target)
        if model is None:
            return [(other.label, other.source) for other in self.catalog.models.values()]
        return [
            (choice.model.label + ("" if choice.fits else f" ({choice.reason})"), choice.model.source)
            for choice in self.catalog.drafts_for(model, self.profile)
            if choice.model.tokenizer == model.tokenizer
        ]

    def first_lane(self, target: str) -> LaneChoice:
        """The draft to begin with: the catalogue's pair where it has one, else what needs no second model."""
        model = self._model(target)
        pair = next(iter(self.catalog.pairs_for(model)), None) if model else None
        if pair is None:
            return LaneChoice("prompt-lookup", k=self.profile.k)
        return LaneChoice("draft-model", self.catalog.model(pair.draft).source, pair.k)

    def first_form(self) -> Form:
        """What the column says before anybody has touched it: the first preset, on this machine's target."""
        values = {name: getattr(Settings(), name) for name in SHARED}
        form = Form("", self.target, (self.first_lane(self.target),), True, values)
        return self.cut(apply_preset(form, next(iter(presets()))))

    def cut(self, form: Form) -> Form:
        """The form with no more new tokens than this machine allows."""
        tokens = min(form.settings["max_new_tokens"], self.limits.max_new_tokens)
        return replace(form, settings={**form.settings, "max_new_tokens": tokens})

    def _model(self, target: str) -> Model | None:
        try:
            return self.catalog.model_of(target)
        except SpecvizError:  # half-typed: Run will say so
            return None
