"""A Form is what the page's left column says, as plain values; an Offer is what this machine puts on its lists.

Forms are the bridge between components, links, presets and requests. Knows nothing of Gradio.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from specviz.catalog import Catalog, Model, Profile
from specviz.drafts import strategies
from specviz.errors import InputError, SpecvizError
from specviz.settings import Settings
from specviz.ui.complaints import complaints
from specviz.ui.presets import Preset, presets
from specviz.ui.request import Limits, RaceRequest, draft_argument, make_request

# of Settings; k and k_policy belong to a lane
SHARED = tuple(spec.name for spec in fields(Settings) if spec.name not in ("k", "k_policy"))
NATIVE = "native"
FIXED = Settings().k_policy
# (label, source)
Source = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LaneChoice:
    """What a lane's controls say: a strategy, a source for its model (where it takes one), its options and k."""

    strategy: str
    source: str = ""
    k: Any = 4
    options: tuple[tuple[str, Any], ...] = ()
    k_policy: str = FIXED

    @property
    def argument(self) -> str:
        """The lane as it would be typed on the command line."""
        policy = () if self.k_policy == FIXED else (("k_policy", self.k_policy),)
        return draft_argument(self.strategy, self.source, self.k, (*self.options, *policy))


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
        """Raises SpecvizError for what cannot be run: a line for each field that holds what it may not."""
        wrong = complaints(self, limits)
        if wrong:
            raise InputError("\n".join(wrong))
        drafts = [lane.argument for lane in self.lanes]
        target = self.target if self.weights == NATIVE else f"{self.target}#{self.weights}"
        return make_request(self.prompt, drafts, target, self.settings, self.chat, limits)


def apply_preset(form: Form, name: str, offer: Offer) -> tuple[Form, str]:
    """The form with a preset's prompt, settings and draft in the first lane, and what to expect of it.

    Greedy unless the preset says otherwise; other lanes stay, but none is raced against itself.
    """
    preset = presets()[name]
    lane, expect = offer.way(preset, form)
    lanes = (lane, *(other for other in form.lanes[1:] if other.argument != lane.argument))
    settings = {**form.settings, "temperature": 0.0, **preset.settings}
    return replace(form, prompt=preset.prompt, settings=settings, lanes=lanes), expect


class Offer:
    """What this machine offers: the catalogue seen through its profile."""

    def __init__(self, catalog: Catalog, profile: Profile, target: str | None = None) -> None:
        self.catalog, self.profile = catalog, profile
        self.target = target or catalog.model(profile.target).source
        self.limits = Limits.of(catalog, profile)

    def targets(self) -> list[Source]:
        """Every target; one that was named at the start comes first."""
        listed = [(_label(model), model.source) for model in self.catalog.targets_for(self.profile)]
        return listed if self._model(self.target) else [(self.target, self.target), *listed]

    def drafts(self, target: str) -> list[Source]:
        """The models that speak the target's tokens; what else speaks against one is in its label."""
        model = self._model(target)
        if model is None:
            return [(_label(other), other.source) for other in self.catalog.models.values()]
        return [
            (_label(choice.model) + ("" if choice.fits else f" ({choice.reason})"), choice.model.source)
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

    def way(self, preset: Preset, form: Form) -> tuple[LaneChoice, str]:
        """A preset's lane for the form's target, and what to expect of it: the first way that can be had."""
        for way in preset.ways:
            source = self._source(way.draft, form)
            if source is not None:
                return LaneChoice(way.draft, source, way.k), way.expect
        raise InputError(f"The preset '{preset.name}' has no draft for the target '{form.target}'; choose another.")

    def first_form(self) -> Form:
        """What the column says before anybody has touched it: a preset for the draft to begin with, on its target."""
        values = {name: getattr(Settings(), name) for name in SHARED}
        lane = self.first_lane(self.target)
        suited = [name for name, preset in presets().items() if preset.ways[0].draft == lane.strategy]
        form, _ = apply_preset(Form("", self.target, (lane,), True, values), suited[0], self)
        return self.cut(form)

    def cut(self, form: Form) -> Form:
        """The form with no more new tokens than this machine allows."""
        tokens = min(form.settings["max_new_tokens"], self.limits.max_new_tokens)
        return replace(form, settings={**form.settings, "max_new_tokens": tokens})

    def _source(self, strategy: str, form: Form) -> str | None:
        """The model that `strategy` would draft with, "" where it needs none; None where it needs one and has none."""
        if not strategies()[strategy].takes_model:
            return ""
        first = form.lanes[0] if form.lanes else None
        return first.source if first and first.strategy == strategy and first.source else self._small_model(form.target)

    def _small_model(self, target: str) -> str | None:
        """A model to draft for `target`: of the catalogue's pair, else the smallest that fits and needs no token."""
        model = self._model(target)
        if model is None:
            return None
        pairs = [self.catalog.model(pair.draft) for pair in self.catalog.pairs_for(model)]
        fitting = [choice.model for choice in self.catalog.drafts_for(model, self.profile) if choice.fits]
        return next((draft.source for draft in (*pairs, *fitting) if draft in pairs or not draft.gated), None)

    def _model(self, target: str) -> Model | None:
        try:
            return self.catalog.model_of(target)
        except SpecvizError:  # half-typed: Run will say so
            return None


def _label(model: Model) -> str:
    """The model's title, short enough for a narrow column."""
    return f"{model.title} (gated)" if model.gated else model.title
