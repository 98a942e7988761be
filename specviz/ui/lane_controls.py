"""The controls of one drafting lane, built from what the strategies say of themselves.

A new strategy brings its own controls here without an edit: its options are built into a group that is shown while the
strategy is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from specviz.drafts import Option, Strategy, strategies
from specviz.settings import MAX_K
from specviz.ui.form import LaneChoice, Source
from specviz.ui.labels import draft_label, model_label
from specviz.ui.policy_control import PolicyControl, policy_control
from specviz.ui.text_line import QUIET, Line, TextLine, info


def drafting() -> dict[str, type[Strategy]]:
    """The strategies that draft, by name."""
    return {name: strategy for name, strategy in strategies().items() if strategy.drafts}


@dataclass(frozen=True, slots=True)
class LaneControls:
    """The components of a lane. `options` holds, for each strategy, its options and their components."""

    group: gr.Column
    strategy: gr.Dropdown
    source: gr.Dropdown
    k: gr.Slider
    policy: PolicyControl
    options: dict[str, tuple[tuple[Option, Any], ...]]
    groups: dict[str, gr.Accordion]
    help: TextLine
    remove: gr.Button | None

    @property
    def inputs(self) -> list[Any]:
        """The components that `read` takes the values of, in its order."""
        options = (part for pairs in self.options.values() for _, part in pairs)
        return [self.strategy, self.source, self.k, *self.policy.inputs, *options]

    @property
    def looks(self) -> list[Any]:
        """The components that `look` updates, in its order."""
        return [self.group, *self.groups.values(), self.policy.fold, self.help]

    def read(self, values: Sequence[Any]) -> LaneChoice:
        """What the values of `inputs` say."""
        strategy, source, k, name, level, *rest = values
        names = [(owner, option) for owner, pairs in self.options.items() for option, _ in pairs]
        options = tuple(
            (option.name, value)
            for (owner, option), value in zip(names, rest, strict=True)
            if owner == strategy and value != option.default
        )
        model = str(source or "").strip() if _takes_model(strategy) else ""
        return LaneChoice(str(strategy), model, k, options, self.policy.read((name, level)))

    def write(self, choice: LaneChoice, sources: Sequence[Source]) -> list[Any]:
        """Updates of `inputs` that say `choice`, its model to be chosen from `sources`; other options are as usual."""
        chosen = dict(choice.options)
        seen = _takes_model(choice.strategy)
        source = gr.update(value=choice.source or None, choices=list(sources), visible=seen)
        values = [choice.strategy, source, choice.k, *self.policy.write(choice.k_policy)]
        for owner, pairs in self.options.items():
            mine = chosen if owner == choice.strategy else {}
            values += [mine.get(option.name, option.default) for option, _ in pairs]
        return values

    def look(self, choice: LaneChoice, visible: bool) -> list[Any]:
        """Updates of `looks`: only what belongs to the choice's strategy is seen."""
        groups = [gr.update(visible=name == choice.strategy) for name in self.groups]
        return [gr.update(visible=visible), *groups, self.policy.look(choice.k_policy), help_line(choice.strategy)]


def lane_controls(number: int, choice: LaneChoice, sources: Sequence[Source], shown: bool) -> LaneControls:
    """Build the controls of lane `number`, from 1, standing at `choice`."""
    with gr.Column(visible=shown, elem_classes="lane-controls", elem_id=f"lane-{number}", min_width=0) as group:
        with gr.Row(elem_classes="lane-head"):
            strategy = gr.Dropdown(
                [(kind.label, name) for name, kind in drafting().items()],
                value=choice.strategy,
                label=draft_label(number),
                min_width=150,
            )
            remove = None
            if number > 1:
                remove = gr.Button("remove", size="sm", elem_classes="quiet", min_width=60, scale=0)
        note = TextLine(help_line(choice.strategy), role="note", elem_classes="hint")
        source = gr.Dropdown(
            list(sources),
            value=choice.source or None,
            label=model_label(number),
            info="one of the list, or hub:ID, path:FOLDER, gguf:FILE",
            allow_custom_value=True,
            visible=_takes_model(choice.strategy),
        )
        options, groups = _options(choice)
        k = gr.Slider(0, MAX_K, value=choice.k, step=1, label="k, drafted tokens a round", elem_classes="k")
        policy = policy_control(choice.k_policy)
    return LaneControls(group, strategy, source, k, policy, options, groups, note, remove)


def help_line(strategy: str) -> Line:
    """What a strategy says of itself."""
    return info(drafting()[strategy].help) if strategy in drafting() else QUIET


def _options(choice: LaneChoice) -> tuple[dict[str, tuple[tuple[Option, Any], ...]], dict[str, gr.Accordion]]:
    options, groups = {}, {}
    for name, kind in drafting().items():
        if not kind.options():
            continue
        shown = name == choice.strategy
        with gr.Accordion("Options", open=False, visible=shown, elem_classes="options") as groups[name]:
            options[name] = tuple((option, _control(option)) for option in kind.options())
    return options, groups


def _control(option: Option) -> Any:
    """The component of an option. Ranges of numbers are checked when the run is asked for, in words."""
    shown = {"label": option.name.replace("_", " "), "info": option.help or None}
    if option.type is bool:
        return gr.Checkbox(option.default, **shown)
    if option.type in (int, float):
        return gr.Number(option.default, step=1 if option.type is int else 0.05, min_width=100, **shown)
    return gr.Textbox(option.default, **shown)


def _takes_model(strategy: str) -> bool:
    return strategy in drafting() and drafting()[strategy].takes_model
