"""The controls of the settings that all lanes share; their values are checked when a run is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from specviz.core.settings import Settings
from specviz.views.web.form import SHARED
from specviz.views.web.labels import LABELS

# name: step
_FIRST = {"max_new_tokens": 1, "temperature": 0.1, "seed": 1}
_MORE = {
    "top_k": 1,
    "top_p": 0.05,
    "repetition_penalty": 0.1,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.1,
}
_OFF = {"top_k": " (0: off)", "top_p": " (1: off)"}


@dataclass(frozen=True, slots=True)
class SettingControls:
    """The components by setting, in the order of SHARED."""

    fields: dict[str, Any]
    more: gr.Accordion

    @property
    def inputs(self) -> list[Any]:
        return list(self.fields.values())

    def read(self, values: Sequence[Any]) -> dict[str, Any]:
        """Settings, unchecked, from the values of `inputs`."""
        settings = dict(zip(self.fields, values, strict=True))
        return {**settings, "stop": _stop_strings(settings["stop"])}

    def write(self, settings: dict[str, Any]) -> list[Any]:
        """The values of `inputs` that say `settings`."""
        return [_stop_lines(settings[name]) if name == "stop" else settings[name] for name in self.fields]

    @classmethod
    def of(cls, first: dict[str, Any], folded: tuple[dict[str, Any], Any]) -> SettingControls:
        """From what `first_settings` and `folded_settings` built."""
        found, more = {**first, **folded[0]}, folded[1]
        return cls({name: found[name] for name in SHARED}, more)


def first_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Build the controls that are always visible, set to `settings`."""
    found: dict[str, Any] = {}
    with gr.Row(elem_classes="settings-row"):
        for name, step in _FIRST.items():
            found[name] = gr.Number(settings[name], label=LABELS[name], step=step, min_width=70, elem_id=name)
    return found


def folded_settings(settings: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Build the other controls, and the fold that holds them."""
    found: dict[str, Any] = {}
    with gr.Accordion(more_label(settings), open=False, elem_classes="more", elem_id="more") as more:
        with gr.Row(elem_classes="settings-row"):
            for name, step in _MORE.items():
                label = LABELS[name] + _OFF.get(name, "")
                found[name] = gr.Number(settings[name], label=label, step=step, min_width=104, elem_id=name)
        stop = f"{LABELS['stop']}, one per line"
        found["stop"] = gr.Textbox(_stop_lines(settings["stop"]), label=stop, lines=2, elem_id="stop_strings")
        found["ignore_eos"] = gr.Checkbox(settings["ignore_eos"], label=LABELS["ignore_eos"])
        found["telemetry"] = gr.Checkbox(settings["telemetry"], label=LABELS["telemetry"])
    return found, more


def more_label(settings: dict[str, Any]) -> str:
    """The label of the folded settings, which names those that were changed."""
    usual = Settings()
    folded = [name for name in SHARED if name not in _FIRST]
    changed = [name.replace("_", " ") for name in folded if settings[name] != getattr(usual, name)]
    return f"More settings (changed: {', '.join(changed)})" if changed else "More settings"


def _stop_strings(text: str | None) -> tuple[str, ...]:
    """One per line; a line break within one is written \\n."""
    return tuple(line.replace("\\n", "\n") for line in (text or "").split("\n") if line)


def _stop_lines(stops: Sequence[str]) -> str:
    return "\n".join(stop.replace("\n", "\\n") for stop in stops)
