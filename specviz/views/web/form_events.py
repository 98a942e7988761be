"""Events of the left column before a run: presets, lanes added and removed, a new target, links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import gradio as gr

from specviz.catalogue.presets import presets
from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import SpecvizError
from specviz.core.settings import MAX_K
from specviz.views.web.controls import Controls
from specviz.views.web.form import Form, with_fitting_k
from specviz.views.web.labels import worded
from specviz.views.web.link import from_query, link, speaks
from specviz.views.web.offer import Offer
from specviz.views.web.setting_controls import more_label
from specviz.views.web.text_line import QUIET, TextLine, error, info

# Handlers that only convert values run at once, outside the queue, and are not for programs.
LIGHT = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
# JavaScript: put the setup into the address bar.
SHARE = """(query) => {
  const address = new URL(window.location.href);
  const theme = address.searchParams.get('__theme');
  address.search = query;
  if (theme) address.searchParams.set('__theme', theme);
  window.history.replaceState(window.history.state, '', address);
}"""
# JavaScript: the same, and copy the address, unless the line says why not.
_COPY = f"""(query, line) => {{
  if (line?.[0] === 'error') return;
  ({SHARE})(query);
  navigator.clipboard?.writeText(window.location.href);
}}"""
COPIED = "The address of this page now holds the setup, and is copied."


class FormEvents:
    """Wires the column. Reset returns to `usual`; `remembered` keeps the setup in the visitor's browser."""

    def __init__(self, controls: Controls, offer: Offer, usual: Form, line: TextLine, remembered: Any) -> None:
        self._controls, self._offer, self._usual = controls, offer, usual
        self._line, self._remembered = line, remembered

    def wire(self) -> None:
        controls = self._controls
        preset = [controls.preset, *controls.inputs]
        controls.preset.input(self._use_preset, preset, [controls.expect, *controls.written], **LIGHT)
        told = [controls.preset, controls.expect]
        for changed in (controls.prompt, controls.target, controls.lanes[0].strategy, controls.lanes[0].source):
            changed.input(lambda: (None, QUIET), None, told, **LIGHT)  # the expectation no longer holds
        self._on(controls.target.input, lambda form: replace(form, lanes=(self._offer.first_lane(form.target),)))
        self._on(controls.add.click, lambda form: replace(form, lanes=(*form.lanes, self._another(form))))
        for index, lane in enumerate(controls.lanes):
            lane.strategy.input(self._suiter(index), controls.inputs, controls.lanes_written, **LIGHT)
            lane.wire(**LIGHT)
            if lane.remove is not None:
                lane.remove.click(self._remover(index), controls.inputs, controls.lanes_written, **LIGHT)
        for component in controls.settings.inputs:
            component.change(self._name_changes, controls.settings.inputs, controls.settings.more, **LIGHT)
        self._wire_links()

    def restored(self, query: Iterable[tuple[str, str]], remembered: str | None) -> list[Any]:
        """Updates of `restores` for a visit: the setup in the address, else the one that the browser remembers."""
        pairs = list(query)
        sent = speaks(pairs)
        nothing = [gr.skip()] * len(self._written)
        if not sent and not remembered:
            return [gr.skip(), *nothing]
        try:
            form = self._offer.cut(from_query(pairs if sent else remembered, self._usual))
        except SpecvizError as refusal:  # a setup that an older version remembered is dropped silently
            return [error(f"The setup in the address cannot be used. {worded(refusal)}") if sent else QUIET, *nothing]
        return [QUIET, *self._controls.write(form, self._offer)]

    @property
    def restores(self) -> list[Any]:
        return [self._line, *self._written]

    @property
    def _written(self) -> list[Any]:
        return self._controls.written

    def _on(self, event: Callable[..., Any], change: Callable[[Form], Form]) -> None:
        """On `event`, show the lanes of the form that `change` returns."""

        def handle(*values: Any) -> list[Any]:
            return self._controls.write_lanes(change(self._controls.read(values)), self._offer)

        event(handle, self._controls.inputs, self._controls.lanes_written, **LIGHT)

    def _use_preset(self, name: str | None, *values: Any) -> list[Any]:
        if name not in presets():
            return [gr.skip()] * (1 + len(self._controls.written))
        form, expect = self._offer.with_preset(self._controls.read(values), name)
        return [info(expect), *self._controls.write(self._offer.cut(form), self._offer)]

    def _another(self, form: Form) -> DraftSpec:
        """A lane like the last one with another k, so that the two can be compared."""
        last = form.lanes[-1] if form.lanes else self._offer.first_lane(form.target)
        k = int(last.k or 0)
        lanes = (last.with_k(other) for other in (2 * k, k // 2, *range(1, MAX_K)) if 0 < other <= MAX_K)
        return next(lane for lane in lanes if lane not in form.lanes)

    def _suiter(self, index: int) -> Callable[..., list[Any]]:
        """A handler for another strategy in lane `index`, which may want another k."""

        def suit(*values: Any) -> list[Any]:
            form, place = self._controls.read(values), sum(self._controls.shown_in(values)[:index])
            lanes = (*form.lanes[:place], with_fitting_k(form.lanes[place]), *form.lanes[place + 1 :])
            return self._controls.write_lanes(replace(form, lanes=lanes), self._offer)

        return suit

    def _remover(self, index: int) -> Callable[..., list[Any]]:
        def remove(*values: Any) -> list[Any]:
            form = self._controls.read(values)
            place = sum(self._controls.shown_in(values)[:index])
            lanes = (*form.lanes[:place], *form.lanes[place + 1 :])
            return self._controls.write_lanes(replace(form, lanes=lanes), self._offer)

        return remove

    def _name_changes(self, *values: Any) -> Any:
        return gr.update(label=more_label(self._controls.settings.read(values)))

    def _wire_links(self) -> None:
        controls, remembered = self._controls, self._remembered
        cleared = [remembered, self._line, controls.preset, controls.expect, *self._written]
        controls.reset.click(self._reset, None, cleared, **LIGHT).then(None, remembered, None, js=SHARE)
        shared = controls.link.click(self._share, controls.inputs, [remembered, self._line], **LIGHT)
        shared.then(None, [remembered, self._line], None, js=_COPY)

    def _reset(self) -> list[Any]:
        return ["", QUIET, None, QUIET, *self._controls.write(self._usual, self._offer)]

    def _share(self, *values: Any) -> Sequence[Any]:
        try:
            return link(self._controls.read(values), self._usual), info(COPIED)
        except SpecvizError as refusal:
            return gr.skip(), error(f"The setup cannot be sent as a link. {worded(refusal)}")
