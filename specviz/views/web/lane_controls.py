"""The controls of one drafting lane, built from what the strategies say about themselves.

A new strategy needs no edit here: its options become a group of controls that is visible while the strategy is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from specviz.core.draft_spec import DraftSpec
from specviz.core.settings import MAX_K, Settings
from specviz.drafting import Option, Strategy, strategies
from specviz.drafting.strategy import LEAST_NODES, USUAL_NODES
from specviz.sources import USAGE
from specviz.views.web.form import as_lane, drafts_tree
from specviz.views.web.labels import draft_label, model_label
from specviz.views.web.offer import ModelList, Offer
from specviz.views.web.policy_control import PolicyControl, policy_control
from specviz.views.web.text_line import QUIET, Line, TextLine, info


def drafting() -> dict[str, type[Strategy]]:
    """The strategies that draft, by name."""
    return {name: strategy for name, strategy in strategies().items() if strategy.drafts}


@dataclass(frozen=True, slots=True)
class LaneControls:
    """The components of a lane. `options` maps each strategy to its options and their components.

    `groups`: what is visible while a strategy is chosen; options with choices are shown, the others are folded.
    """

    group: gr.Column
    strategy: gr.Dropdown
    source: gr.Dropdown
    others: TextLine
    k: gr.Slider
    policy: PolicyControl
    options: dict[str, tuple[tuple[Option, Any], ...]]
    groups: tuple[tuple[str, gr.Column | gr.Accordion], ...]
    help: TextLine
    remove: gr.Button | None

    @property
    def inputs(self) -> list[Any]:
        """The components that `read` takes the values of, in its order."""
        options = (part for pairs in self.options.values() for _, part in pairs)
        return [self.strategy, self.source, self.k, *self.policy.inputs, *options]

    @property
    def styled(self) -> list[Any]:
        """The components that `style` updates, in its order."""
        return [self.group, *(group for _, group in self.groups), self.policy.fold, self.help, self.others]

    def read(self, values: Sequence[Any]) -> DraftSpec:
        """What the values of `inputs` say, unchecked; options that have their usual value are left out."""
        strategy, source, k, name, level, *rest = values
        names = [(owner, option) for owner, pairs in self.options.items() for option, _ in pairs]
        options = {
            option.name: value
            for (owner, option), value in zip(names, rest, strict=True)
            if owner == strategy and value != option.default
        }
        model = str(source or "").strip() if _takes_model(strategy) else ""
        settings = {"k": k, "k_policy": self.policy.read((name, level))}
        return as_lane(DraftSpec(str(strategy), model or None, options, settings), k)

    def write(self, lane: DraftSpec, models: ModelList) -> list[Any]:
        """Updates of `inputs` that say `lane`; its model is one of `models`, options it leaves out are as usual."""
        chosen = dict(lane.options)
        source = gr.update(value=lane.source, choices=models.choices, visible=_takes_model(lane.strategy))
        k = gr.update(value=lane.k, label=k_label(drafts_tree(lane)))
        values = [lane.strategy, source, k, *self.policy.write(policy_of(lane))]
        for owner, pairs in self.options.items():
            mine = chosen if owner == lane.strategy else {}
            values += [mine.get(option.name, option.default) for option, _ in pairs]
        return values

    def style(self, lane: DraftSpec, models: ModelList, visible: bool) -> list[Any]:
        """Updates of `styled`: only what belongs to the lane's strategy is visible."""
        groups = [gr.update(visible=name == lane.strategy) for name, _ in self.groups]
        words = [help_line(lane.strategy), info(models.others)]
        return [gr.update(visible=visible), *groups, self.policy.style(policy_of(lane)), *words]

    def wire(self, **quietly: Any) -> None:
        """When a draft becomes a tree or a chain, k gets a fitting label and value."""
        self.policy.wire(**quietly)
        for pairs in self.options.values():
            for option, component in pairs:
                if option.tree is not None:
                    component.input(_reshaper(option), [component, self.k], self.k, **quietly)


def lane_controls(number: int, lane: DraftSpec, offer: Offer, target: str, shown: bool) -> LaneControls:
    """Build the controls of lane `number`, from 1, set to `lane` for `target`."""
    models = offer.models(target, lane.strategy)
    with gr.Column(visible=shown, elem_classes="lane-controls", elem_id=f"lane-{number}", min_width=0) as group:
        with gr.Row(elem_classes="lane-head"):
            strategy = gr.Dropdown(
                [(kind.label, name) for name, kind in drafting().items()],
                value=lane.strategy,
                label=draft_label(number),
                min_width=150,
            )
            remove = None
            if number > 1:
                remove = gr.Button("remove", size="sm", elem_classes="quiet", min_width=60, scale=0)
        note = TextLine(help_line(lane.strategy), role="note", elem_classes="hint")
        source = gr.Dropdown(
            models.choices,
            value=lane.source,
            label=model_label(number),
            info="one of the list" + (f", or {USAGE}" if offer.limits.sources is None else ""),
            allow_custom_value=True,
            visible=_takes_model(lane.strategy),
        )
        others = TextLine(info(models.others), role="note", elem_classes="hint")
        seen, sights = _options(lane, offer.limits.files, folded=False)
        k = gr.Slider(0, MAX_K, value=lane.k, step=1, label=k_label(drafts_tree(lane)), elem_classes="k")
        hidden, folds = _options(lane, offer.limits.files, folded=True)
        policy = policy_control(policy_of(lane))
    options = {
        name: tuple((option, {**seen[name], **hidden[name]}[option.name]) for option in kind.options())
        for name, kind in drafting().items()
    }
    return LaneControls(group, strategy, source, others, k, policy, options, (*sights, *folds), note, remove)


def policy_of(lane: DraftSpec) -> str:
    """How the lane chooses k."""
    return dict(lane.settings).get("k_policy", Settings().k_policy)


def help_line(strategy: str) -> Line:
    """What a strategy says about itself."""
    return info(drafting()[strategy].help) if strategy in drafting() else QUIET


def k_label(tree: bool) -> str:
    """What the slider of k counts."""
    return "k, nodes of a tree per round" if tree else "k, drafted tokens per round"


def _reshaper(option: Option) -> Callable[[Any, Any], Any]:
    """How `option` changes k: a tree of few nodes is hardly a tree, and a long chain is hardly ever kept whole."""

    def reshape(value: Any, k: Any) -> Any:
        tree = value == option.tree
        least, usual, most = (LEAST_NODES, USUAL_NODES, MAX_K) if tree else (0, Settings().k, LEAST_NODES)
        return gr.update(value=k if k is not None and least <= k <= most else usual, label=k_label(tree))

    return reshape


_Groups = tuple[tuple[str, gr.Column | gr.Accordion], ...]


def _options(lane: DraftSpec, files: bool, *, folded: bool) -> tuple[dict[str, dict[str, Any]], _Groups]:
    """The components of every strategy's options by name, set to `lane`, and the groups that hold them.

    Options that name a file are hidden where no file may be named.
    """
    found: dict[str, dict[str, Any]] = {}
    groups = []
    for name, kind in drafting().items():
        found[name] = {}
        mine = [option for option in kind.options() if folded == (not option.choices)]
        seen = files or not all(option.path for option in mine)
        if not mine:
            continue
        given = dict(lane.options) if name == lane.strategy else {}
        with _place(folded, name == lane.strategy and seen) as place:
            for option in mine:
                value = given.get(option.name, option.default)
                found[name][option.name] = _control(option, value, files or not option.path)
        groups += [(name, place)] if seen else []
    return found, tuple(groups)


def _place(folded: bool, visible: bool) -> gr.Column | gr.Accordion:
    if folded:
        return gr.Accordion("Options", open=False, visible=visible, elem_classes="options")
    return gr.Column(visible=visible, min_width=0)


def _control(option: Option, value: Any, seen: bool) -> Any:
    """The component of an option. Ranges are checked when a run is asked for."""
    shown = {"label": option.name.replace("_", " "), "info": option.help or None, "visible": seen}
    if option.choices:  # the label of k says what they mean
        return gr.Radio(list(option.choices), value=value, elem_classes="chips inline", **{**shown, "info": None})
    if option.type is bool:
        return gr.Checkbox(value, **shown)
    if option.type in (int, float):
        return gr.Number(value, step=1 if option.type is int else 0.05, min_width=100, **shown)
    return gr.Textbox(value, **shown)


def _takes_model(strategy: str) -> bool:
    return strategy in drafting() and drafting()[strategy].takes_model
