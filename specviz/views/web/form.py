"""A Form is what the page's left column says, as plain values; an Offer is what this machine puts on its lists.

Forms are the bridge between components, links, presets and requests. Knows nothing of Gradio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from specviz.catalogue.catalog import ANY_TOKENIZER, Catalog, DraftChoice, Model, Profile
from specviz.catalogue.limits import limits_of
from specviz.catalogue.presets import Preset, presets
from specviz.core.errors import InputError, SpecvizError
from specviz.core.settings import Settings
from specviz.drafting import strategies
from specviz.races.lanes import parse_draft
from specviz.races.request import Limits, RaceRequest, draft_argument, make_request
from specviz.views.web.complaints import complaints
from specviz.views.web.labels import LABELS

# of Settings; k and k_policy belong to a lane
SHARED = tuple(spec.name for spec in fields(Settings) if spec.name not in ("k", "k_policy"))
NATIVE = "native"
FIXED = Settings().k_policy
SHAPE, TREE = "shape", "tree"  # the option of strategies that draft chains or trees, and its value for the latter
LEAST_TREE, USUAL_TREE = 8, 16
UNKNOWN_FIT = "Whether a model fits this target is seen when both are loaded."
_NAMED = 2  # models of one reason that are named, before the others are counted
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

    @property
    def tree(self) -> bool:
        """Whether the lane drafts trees, so that its k counts nodes."""
        kind = strategies().get(self.strategy)
        usual = {option.name: option.default for option in kind.options()} if kind else {}
        return {**usual, **dict(self.options)}.get(SHAPE) == TREE

    @property
    def fitted(self) -> LaneChoice:
        """The choice with a k that suits its shape: a tree of a few nodes is hardly one."""
        small = self.tree and isinstance(self.k, int | float) and 0 < self.k < LEAST_TREE
        return replace(self, k=USUAL_TREE) if small else self

    @classmethod
    def of(cls, argument: str, k: int) -> LaneChoice:
        """What a draft argument says; `k` where it says none.

        Raises InputError or LoadError, in words, also for what a lane of the page cannot show.
        """
        draft = parse_draft(argument)
        if not strategies()[draft.strategy].drafts:
            raise InputError(
                f"'{draft.strategy}' drafts nothing and is no lane of the page; standard decoding is there."
            )
        for name in SHARED:
            if name in draft.settings:
                raise InputError(
                    f"In the draft '{argument}', the page cannot show {name} for one lane alone; leave it out, or set "
                    f"“{LABELS[name]}”, which holds for all lanes."
                )
        k, policy = draft.settings.get("k", k), draft.settings.get("k_policy", FIXED)
        return cls(draft.strategy, draft.source or "", k, tuple(draft.options.items()), policy)


@dataclass(frozen=True, slots=True)
class ModelList:
    """The models that a lane's draft may take, and in words why the others are not listed."""

    choices: list[Source]
    others: str = ""


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

    def first_lane(self, target: str) -> LaneChoice:
        """The draft to begin with: the profile's on its own target, else the catalogue's pair, else the profile's.

        Where none is named it is what needs no second model.
        """
        model = self._model(target)
        named = LaneChoice.of(self.profile.draft, self.profile.k) if self.profile.draft else None
        if named and model and model.name == self.profile.target:
            return named
        pair = next(iter(self.catalog.pairs_for(model)), None) if model else None
        if pair is not None:
            return LaneChoice("draft-model", self.catalog.model(pair.draft).source, pair.k)
        return named or LaneChoice("prompt-lookup", k=self.profile.k)

    def way(self, preset: Preset, form: Form) -> tuple[LaneChoice, str]:
        """A preset's lane for the form's target, and what to expect of it: the first way that can be had."""
        for way in preset.ways:
            source = self._source(way.draft, form)
            if source is not None:
                return LaneChoice(way.draft, source, way.k, tuple(way.options.items())), way.expect
        raise InputError(f"The preset '{preset.name}' has no draft for the target '{form.target}'; choose another.")

    def first_form(self) -> Form:
        """What the column says before anybody has touched it: a preset for the draft to begin with, on its target."""
        values = {name: getattr(Settings(), name) for name in SHARED}
        lane = self.first_lane(self.target)
        suited = [name for name, preset in presets().items() if preset.ways[0].draft == lane.strategy]
        preset = next(iter(suited or presets()))
        form, _ = apply_preset(Form("", self.target, (lane,), True, values), preset, self)
        return self.cut(replace(form, lanes=(lane,)) if self.profile.draft else form)

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
    return f"{model.title.removesuffix(' Instruct')}, needs a token" if model.gated else model.title


def _others(choices: Sequence[DraftChoice]) -> str:
    """The models that do not fit, by the reason: "Not listed. Qwen3 4B and 2 more: not smaller than the target."."""
    titles: dict[str, list[str]] = {}
    for choice in choices:
        if not choice.fits:
            titles.setdefault(choice.reason.replace(ANY_TOKENIZER, _any_tokenizer()), []).append(choice.model.title)
    told = (f"{_some(names)}: {reason}" for reason, names in titles.items())
    start = "Not listed." if any(choice.fits for choice in choices) else "No model of the list fits this target."
    return f"{start} {'. '.join(told)}." if titles else ""


def _some(titles: Sequence[str]) -> str:
    return ", ".join(titles) if len(titles) <= _NAMED else f"{titles[0]} and {len(titles) - 1} more"


def _any_tokenizer() -> str:
    """What the page calls the strategy that takes a model of any tokenizer."""
    labels = [kind.label for kind in strategies().values() if kind.any_tokenizer]
    return f"“{labels[0]}”" if labels else ANY_TOKENIZER
