"""What happens in the left column before a run: presets, lanes that come and go, lists that follow a target, links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import gradio as gr

from specviz.errors import SpecvizError
from specviz.settings import MAX_K
from specviz.ui.controls import Controls
from specviz.ui.form import Form, LaneChoice, Offer, apply_preset
from specviz.ui.link import from_query, speaks, to_query
from specviz.ui.presets import presets
from specviz.ui.setting_controls import more_label
from specviz.ui.text_line import QUIET, TextLine, error, info

# Handlers that only turn values over: at once, beside the queue, and not for programs.
LIGHT = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
# JavaScript: the setup into the address bar, and from there to the clipboard.
SHARE = """(query) => {
  const address = new URL(window.location.href);
  const theme = address.searchParams.get('__theme');
  address.search = query;
  if (theme) address.searchParams.set('__theme', theme);
  window.history.replaceState(window.history.state, '', address);
}"""
_COPY = "() => { navigator.clipboard?.writeText(window.location.href); }"
COPIED = "The address of this page now holds the setup, and is copied."


class FormEvents:
    """Wires the column. `usual` is what Reset goes back to, `remembered` keeps the setup in the visitor's browser."""

    def __init__(self, controls: Controls, offer: Offer, usual: Form, line: TextLine, remembered: Any) -> None:
        self._controls, self._offer, self._usual = controls, offer, usual
        self._line, self._remembered = line, remembered

    def wire(self) -> None:
        controls = self._controls
        self._on(controls.preset.input, self._use_preset, controls.preset, controls.expect)
        controls.prompt.input(lambda: (None, QUIET), None, [controls.preset, controls.expect], **LIGHT)
        self._on(controls.target.input, lambda form: replace(form, lanes=self._first_lanes(form.target)))
        self._on(controls.add.click, lambda form: replace(form, lanes=(*form.lanes, self._another(form))))
        for index, lane in enumerate(controls.lanes):
            self._on(lane.strategy.input, lambda form: form)
            if lane.remove is not None:
                lane.remove.click(self._remover(index), controls.inputs, controls.written, **LIGHT)
        for component in controls.settings.inputs:
            component.change(self._name_changes, controls.settings.inputs, controls.settings.more, **LIGHT)
        self._wire_links()

    def restored(self, query: Iterable[tuple[str, str]], remembered: str | None) -> list[Any]:
        """Updates of `restores` for a visit: what the address says, else what the browser remembers."""
        pairs = list(query)
        source: Any = pairs if speaks(pairs) else remembered
        if not source:
            return [gr.skip()] * len(self.restores)
        try:
            form = self._offer.cut(from_query(source, self._usual))
        except SpecvizError as refusal:
            return [error(f"The setup in the address cannot be used. {refusal}"), *[gr.skip()] * len(self._written)]
        return [QUIET, *self._controls.write(form, self._offer)]

    @property
    def restores(self) -> list[Any]:
        return [self._line, *self._written]

    @property
    def _written(self) -> list[Any]:
        return self._controls.written

    def _on(self, event: Callable[..., Any], change: Callable[..., Form], *extra: Any) -> None:
        """On `event` the form becomes what `change` makes of it; extra components are first in and first out."""
        before, after = extra[:1], extra[1:]

        def handle(*values: Any) -> list[Any]:
            form = self._controls.read(values[len(before) :])
            made = change(form, *values[: len(before)])
            made, more = made if isinstance(made, tuple) else (made, ())
            return [*more, *self._controls.write(made, self._offer)]

        event(handle, [*before, *self._controls.inputs], [*after, *self._written], **LIGHT)

    def _use_preset(self, form: Form, name: str | None) -> tuple[Form, tuple[Any, ...]]:
        if name not in presets():
            return form, (QUIET,)
        return self._offer.cut(apply_preset(form, name)), (info(presets()[name].expect),)

    def _first_lanes(self, target: str) -> tuple[Any, ...]:
        return (self._offer.first_lane(target),)

    def _another(self, form: Form) -> LaneChoice:
        """A lane like the last one with a k that is still free, so that the two can be told apart and compared."""
        last = form.lanes[-1] if form.lanes else self._offer.first_lane(form.target)
        taken = {lane.argument for lane in form.lanes}
        k = int(last.k or 0)
        lanes = (replace(last, k=other) for other in (2 * k, k // 2, *range(1, MAX_K)) if 0 < other <= MAX_K)
        return next(lane for lane in lanes if lane.argument not in taken)

    def _remover(self, index: int) -> Callable[..., list[Any]]:
        def remove(*values: Any) -> list[Any]:
            form = self._controls.read(values)
            place = sum(self._controls.shown_in(values)[:index])
            lanes = (*form.lanes[:place], *form.lanes[place + 1 :])
            return self._controls.write(replace(form, lanes=lanes), self._offer)

        return remove

    def _name_changes(self, *values: Any) -> Any:
        return gr.update(label=more_label(self._controls.settings.read(values)))

    def _wire_links(self) -> None:
        controls, remembered = self._controls, self._remembered
        cleared = [remembered, self._line, controls.preset, controls.expect, *self._written]
        controls.reset.click(self._reset, None, cleared, **LIGHT).then(None, remembered, None, js=SHARE)
        shared = controls.link.click(self._share, controls.inputs, [remembered, self._line], **LIGHT)
        shared.then(None, remembered, None, js=SHARE).then(None, None, None, js=_COPY)

    def _reset(self) -> list[Any]:
        return ["", QUIET, None, QUIET, *self._controls.write(self._usual, self._offer)]

    def _share(self, *values: Any) -> Sequence[Any]:
        try:
            return to_query(self._controls.read(values)), info(COPIED)
        except SpecvizError as refusal:
            return gr.skip(), error(str(refusal))
