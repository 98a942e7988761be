"""What this machine offers on the page's lists, and the forms to begin with: the catalogue seen through its profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from specviz.catalogue.catalog import Catalog, DraftChoice, Misfit, Model, Profile
from specviz.catalogue.limits import limits_of
from specviz.catalogue.presets import Preset, PresetDraft, presets
from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError, SpecvizError
from specviz.core.settings import Settings
from specviz.drafting import checked, strategies
from specviz.views.web.form import SHARED, Form, as_lane

UNKNOWN_FIT = "Whether a model fits this target shows when both are loaded."
_NAMED = 2  # models of one reason that are named; the others are counted
# (label, source)
Source = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ModelList:
    """The models that a lane's draft may take; `others` says why the rest are not listed."""

    choices: list[Source]
    others: str = ""


class Offer:
    """What this machine offers. `target` is the one to begin with, the profile's unless another is named."""

    def __init__(self, catalog: Catalog, profile: Profile, target: str | None = None) -> None:
        self.catalog, self.profile = catalog, profile
        self.target = target or catalog.model(profile.target).source
        self.limits = limits_of(catalog, profile)

    def targets(self) -> list[Source]:
        """Every target; one that was named at the start comes first."""
        listed = [(_label(model), model.source) for model in self.catalog.targets_for(self.profile)]
        return listed if self._model(self.target) else [(self.target, self.target), *listed]

    def models(self, target: str, strategy: str) -> ModelList:
        """The models that `strategy` may draft with for `target`: those that fit, and why the others do not."""
        kind, model = strategies().get(strategy), self._model(target)
        if kind is None or not kind.takes_model:
            return ModelList([])
        if model is None:
            return ModelList([(_label(other), other.source) for other in self.catalog.models.values()], UNKNOWN_FIT)
        found = self.catalog.drafts_for(model, self.profile, any_tokenizer=kind.any_tokenizer)
        return ModelList([(_label(one.model), one.model.source) for one in found if one.fits], _others(found))

    def first_lane(self, target: str) -> DraftSpec:
        """The draft to begin with: the profile's on its own target, else the catalogue's pair, else the profile's.

        Where the profile names none, it is one that needs no second model.
        """
        model = self._model(target)
        named = as_lane(checked(self.profile.draft), self.profile.k) if self.profile.draft else None
        if named and model and model.name == self.profile.target:
            return named
        pair = next(iter(self.catalog.pairs_for(model)), None) if model else None
        if pair is not None:
            return DraftSpec("draft-model", self.catalog.model(pair.draft).source, settings={"k": pair.k})
        return named or DraftSpec("prompt-lookup", settings={"k": self.profile.k})

    def first_form(self) -> Form:
        """What the column says at first: a preset for the draft to begin with, on its target."""
        values = {name: getattr(Settings(), name) for name in SHARED}
        lane = self.first_lane(self.target)
        suited = [name for name, preset in presets().items() if preset.drafts[0].spec.strategy == lane.strategy]
        preset = next(iter(suited or presets()))
        form, _ = self.with_preset(Form("", self.target, (lane,), True, values), preset)
        return self.cut(replace(form, lanes=(lane,)) if self.profile.draft else form)

    def with_preset(self, form: Form, name: str) -> tuple[Form, str]:
        """The form with a preset's prompt, settings and draft in the first lane, and what to expect of it.

        Greedy unless the preset says otherwise. The other lanes stay, except one that is the same.
        """
        preset = presets()[name]
        draft = self._preset_draft(preset, form)
        lanes = (draft.spec, *(other for other in form.lanes[1:] if other != draft.spec))
        settings = {**form.settings, "temperature": 0.0, **preset.settings}
        return replace(form, prompt=preset.prompt, settings=settings, lanes=lanes), draft.expect

    def cut(self, form: Form) -> Form:
        """The form with no more new tokens than this machine allows."""
        tokens = min(form.settings["max_new_tokens"], self.limits.max_new_tokens)
        return replace(form, settings={**form.settings, "max_new_tokens": tokens})

    def _preset_draft(self, preset: Preset, form: Form) -> PresetDraft:
        """The preset's first draft that the form's target can have, with a source where it needs one."""
        for draft in preset.drafts:
            if not strategies()[draft.spec.strategy].takes_model:
                return draft
            source = self._draft_source(draft.spec.strategy, form)
            if source is not None:
                return replace(draft, spec=replace(draft.spec, source=source))
        raise InputError(f"The preset '{preset.name}' has no draft for the target '{form.target}'; choose another.")

    def _draft_source(self, strategy: str, form: Form) -> str | None:
        """The model that `strategy` would draft with, None where there is none."""
        first = form.lanes[0] if form.lanes else None
        return first.source if first and first.strategy == strategy and first.source else self._small_model(form.target)

    def _small_model(self, target: str) -> str | None:
        """A model to draft for `target`: the catalogue's pair, else the smallest that fits and needs no token."""
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
    return f"{model.title.removesuffix(' Instruct')}, needs a token" if model.gated else model.title


def _others(choices: Sequence[DraftChoice]) -> str:
    """The models that do not fit, by reason: "Not listed. Qwen3 4B and 2 more: not smaller than the target."."""
    titles: dict[Misfit, list[str]] = {}
    for choice in choices:
        if choice.misfit is not None:
            titles.setdefault(choice.misfit, []).append(choice.model.title)
    told = (f"{_some(names)}: {_reason(misfit)}" for misfit, names in titles.items())
    start = "Not listed." if any(choice.fits for choice in choices) else "No model of the list fits this target."
    return f"{start} {'. '.join(told)}." if titles else ""


def _some(titles: Sequence[str]) -> str:
    return ", ".join(titles) if len(titles) <= _NAMED else f"{titles[0]} and {len(titles) - 1} more"


def _reason(misfit: Misfit) -> str:
    """The reason, and the strategy to take instead where one could draft with the model all the same."""
    instead = next((kind.label for kind in strategies().values() if kind.any_tokenizer), None)
    return f"{misfit.reason}; use “{instead}”" if misfit.other_tokenizer and instead else misfit.reason
