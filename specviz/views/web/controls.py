"""The page's left column, which says what to race and how: built, read and written here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from specviz.catalogue.presets import presets
from specviz.races.prompts import MAX_PROMPT_CHARACTERS
from specviz.races.request import MAX_DRAFTS
from specviz.views.web.form import NATIVE, Form
from specviz.views.web.lane_controls import LaneControls, lane_controls
from specviz.views.web.offer import Offer
from specviz.views.web.setting_controls import SettingControls, first_settings, folded_settings, more_label
from specviz.views.web.text_line import TextLine

CHAT, RAW = "chat template", "raw text"
WEIGHTS = [
    ("as fast as this device allows", NATIVE),
    ("rounded to 4 bits: another model", "int4"),
    ("strict numerics: all passes at one width", "strict"),
    ("by transformers' own forward", "plain"),
]


@dataclass(frozen=True, slots=True)
class Controls:
    """The column's components; `shown` says which lanes are visible."""

    preset: gr.Radio
    expect: TextLine
    prompt: gr.Textbox
    chat: gr.Radio
    target: gr.Dropdown
    lanes: tuple[LaneControls, ...]
    shown: gr.State
    add: gr.Button
    settings: SettingControls
    weights: gr.Dropdown
    run: gr.Button
    stop: gr.Button
    reset: gr.Button
    link: gr.Button

    @property
    def inputs(self) -> list[Any]:
        """The components that `read` takes the values of, in its order."""
        lanes = [component for lane in self.lanes for component in lane.inputs]
        return [self.prompt, self.chat, self.target, self.shown, self.weights, *self.settings.inputs, *lanes]

    @property
    def written(self) -> list[Any]:
        """The components that `write` updates, in its order."""
        whole = [self.prompt, self.chat, self.target, self.weights]
        return [*whole, *self.settings.inputs, self.settings.more, *self.lanes_written]

    @property
    def lanes_written(self) -> list[Any]:
        """The components that `write_lanes` updates, in its order."""
        return [self.shown, self.add, *(part for lane in self.lanes for part in (*lane.inputs, *lane.styled))]

    @staticmethod
    def shown_in(values: Sequence[Any]) -> tuple[bool, ...]:
        """Which lanes are visible, by the values of `inputs`."""
        return values[3]

    def read(self, values: Sequence[Any]) -> Form:
        """The form that the values of `inputs` make."""
        (prompt, chat, target, shown, weights), rest = values[:5], values[5:]
        count = len(self.settings.inputs)
        settings, rest = self.settings.read(rest[:count]), rest[count:]
        lanes = []
        for lane, visible in zip(self.lanes, shown, strict=True):
            mine, rest = rest[: len(lane.inputs)], rest[len(lane.inputs) :]
            lanes += [lane.read(mine)] if visible else []
        return Form(prompt or "", str(target or ""), tuple(lanes), chat != RAW, settings, weights or NATIVE)

    def write(self, form: Form, offer: Offer) -> list[Any]:
        """Updates of `written` that make the column say `form`."""
        settings = self.settings.write(form.settings)
        more = gr.update(label=more_label(form.settings))
        chat = CHAT if form.chat else RAW
        return [form.prompt, chat, form.target, form.weights, *settings, more, *self.write_lanes(form, offer)]

    def write_lanes(self, form: Form, offer: Offer) -> list[Any]:
        """Updates of `lanes_written` alone, so that what is typed elsewhere meanwhile stays."""
        shown = tuple(index < len(form.lanes) for index in range(len(self.lanes)))
        specs = [*form.lanes, *[offer.first_lane(form.target)] * (len(self.lanes) - len(form.lanes))]
        updates: list[Any] = [shown, gr.update(visible=not all(shown))]
        for lane, spec, visible in zip(self.lanes, specs, shown, strict=True):
            models = offer.models(form.target, spec.strategy)
            updates += [*lane.write(spec, models), *lane.style(spec, models, visible)]
        return updates


def build_controls(offer: Offer, form: Form) -> Controls:
    """Build the column, set to `form`: fields that scroll, and below them what a run needs."""
    with gr.Column(elem_classes="fields", min_width=0):
        preset, expect, prompt = _prompt(form)
        target, chat = _target(offer, form)
        lanes, shown = _lanes(offer, form)
        add = gr.Button("+ add a lane", elem_classes="add-lane", elem_id="add-lane")
        folded = folded_settings(form.settings)
        with folded[1]:
            label = "How the target's weights are run"
            weights = gr.Dropdown(WEIGHTS, value=form.weights, label=label, elem_id="weights")
    settings = SettingControls.of(first_settings(form.settings), folded)
    return Controls(preset, expect, prompt, chat, target, lanes, shown, add, settings, weights, *_buttons())


def _prompt(form: Form) -> tuple[gr.Radio, TextLine, gr.Textbox]:
    prompt = gr.Textbox(
        form.prompt, label="Prompt", lines=4, max_lines=7, max_length=MAX_PROMPT_CHARACTERS, elem_id="prompt"
    )
    preset = gr.Radio(list(presets()), label="Examples", elem_classes="chips", elem_id="presets")
    return preset, TextLine(elem_classes="hint", elem_id="expect"), prompt


def _target(offer: Offer, form: Form) -> tuple[gr.Dropdown, gr.Radio]:
    target = gr.Dropdown(
        offer.targets(),
        value=form.target,
        label="Target",
        allow_custom_value=offer.limits.sources is None,
        elem_id="target",
    )
    return target, gr.Radio([CHAT, RAW], value=CHAT, label="Prompt as", elem_classes="chips inline", elem_id="chat")


def _buttons() -> tuple[gr.Button, gr.Button, gr.Button, gr.Button]:
    """Run, Stop, Reset and the link."""
    with gr.Row(elem_classes="run-row"):
        run = gr.Button("Run", variant="primary", scale=3, min_width=110, elem_id="run")
        stop = gr.Button("Stop", interactive=False, scale=1, min_width=70, elem_id="stop")
    with gr.Row(elem_classes="small-row"):
        link = gr.Button("Copy a link to this setup", size="sm", elem_classes="quiet", elem_id="link", min_width=120)
        reset = gr.Button("Reset", size="sm", elem_classes="quiet", elem_id="reset", min_width=60, scale=0)
    return run, stop, reset, link


def _lanes(offer: Offer, form: Form) -> tuple[tuple[LaneControls, ...], gr.State]:
    """The controls of every possible lane, and the state that says which are visible."""
    specs = [*form.lanes, *[offer.first_lane(form.target)] * (MAX_DRAFTS - len(form.lanes))]
    shown = tuple(index < len(form.lanes) for index in range(MAX_DRAFTS))
    lanes = tuple(
        lane_controls(index + 1, spec, offer, form.target, visible)
        for index, (spec, visible) in enumerate(zip(specs, shown, strict=True))
    )
    return lanes, gr.State(shown)
