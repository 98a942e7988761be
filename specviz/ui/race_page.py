"""The race page: masthead, the column of controls, the race view and the report, wired together.

A handler turns values into a request, or steps into updates: `running` says what runs, `session` what is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import gradio as gr

from specviz.errors import SpecvizError
from specviz.ui.controls import Controls, build_controls
from specviz.ui.device_line import device_line
from specviz.ui.form import Offer
from specviz.ui.form_events import LIGHT, SHARE, FormEvents
from specviz.ui.link import to_query
from specviz.ui.measure import measure
from specviz.ui.race_view import RaceView
from specviz.ui.report import Report, build_report
from specviz.ui.running import Runner
from specviz.ui.session import Session, Shown, run
from specviz.ui.store import ModelStore
from specviz.ui.text_line import TextLine, busy, error, info
from specviz.ui.theme_watch import ThemeWatch, theme_of

# Races are let in this far, the endpoints' too; the runner then takes them one at a time and tells each its place.
DEVICE = {"concurrency_id": "device", "concurrency_limit": 12}
FAILED = "The run was not taken up or broke off: too many are waiting, or the server met an error. Press Run again."
_LOOK_SECONDS = 0.4
_MASTHEAD = '<h1>specviz</h1><p class="tagline">Watch a small model guess and a large one check</p>'


def build_race_page(blocks: gr.Blocks, offer: Offer, store: ModelStore, runner: Runner, hz: float) -> None:
    """Build the page into `blocks`. `hz` is how often a visitor's page changes while a race runs, at most."""
    usual = offer.first_form()
    session = gr.State(Session(), delete_callback=Session.stop)
    remembered = gr.BrowserState("", storage_key="specviz-setup", secret="specviz")
    theme = ThemeWatch(elem_classes="nothing")
    with gr.Row(elem_classes="masthead"):
        gr.HTML(_MASTHEAD, elem_classes="brand", padding=False)
        chip = TextLine(elem_classes="chip", elem_id="device")
    with gr.Row(elem_classes="race-page"):
        with gr.Column(elem_classes="setup", min_width=0):
            controls = build_controls(offer, usual)
        with gr.Column(elem_classes="stage", min_width=0):
            line = TextLine(role="alert", elem_classes="line", elem_id="line")
            view = RaceView(measurable=True, elem_id="race")
            report = build_report()
    events = FormEvents(controls, offer, usual, line, remembered)
    events.wire()
    finished = _wire_run(controls, offer, runner, hz, session, line, view, remembered)
    finished.then(_chip_of(store), session, chip, **LIGHT).then(_draw(report), session, report.outputs, **LIGHT)
    _wire_report(report, theme, session)
    _wire_visit(blocks, offer, store, events, remembered, chip)


def _wire_run(
    controls: Controls,
    offer: Offer,
    runner: Runner,
    hz: float,
    session: gr.State,
    line: TextLine,
    view: RaceView,
    remembered: gr.BrowserState,
) -> Any:
    """Run, Stop and what they change; returns the event after which a run is over."""
    ticket = gr.State(None)

    def begin(state: Session, *values: Any) -> tuple[Any, ...]:
        form = controls.read(values)
        try:
            wanted = state.begin(form.request(offer.limits))
        except SpecvizError as refusal:
            return None, error(str(refusal)), gr.skip(), gr.skip()
        return wanted, busy("Starting…"), gr.update(interactive=True), _query(form)

    def go(state: Session, wanted: int | None) -> Iterator[tuple[Any, Any]]:
        yield from _updates(run(state, wanted, runner, hz))

    def begin_again(state: Session) -> tuple[Any, ...]:
        return state.begin(), busy("Starting…"), gr.update(interactive=True)

    def go_again(state: Session, wanted: int | None) -> Iterator[tuple[Any, Any]]:
        yield from _updates(measure(state, wanted, runner))

    def halt(state: Session) -> tuple[Any, Any]:
        waiting = state.busy and not state.running
        state.stop()
        return gr.update(interactive=False), info("Stopped before the race began.") if waiting else gr.skip()

    def failed(state: Session) -> tuple[Any, Any]:
        state.stop()
        return error(FAILED), gr.update(interactive=False)

    def over(state: Session) -> Any:
        return gr.update(interactive=state.busy)

    often = {"trigger_mode": "multiple"}
    outputs = [ticket, line, controls.stop, remembered]
    begun = controls.run.click(begin, [session, *controls.inputs], outputs, **LIGHT, **often)
    begun.then(None, remembered, None, js=SHARE)
    controls.stop.click(halt, session, [controls.stop, line], **LIGHT)
    quiet = {"show_progress": "hidden", "api_visibility": "private"}
    running = begun.then(go, [session, ticket], [view, line], **quiet, **DEVICE, **often)
    running.failure(failed, session, [line, controls.stop], **LIGHT)
    wanted = view.measure(begin_again, session, [ticket, line, controls.stop], **LIGHT)
    wanted.then(go_again, [session, ticket], [view, line], **quiet, **DEVICE).then(
        over, session, controls.stop, **LIGHT
    )
    return running.then(over, session, controls.stop, **LIGHT)


def _updates(changes: Iterator[Shown]) -> Iterator[tuple[Any, Any]]:
    """Updates of view and line."""
    yield gr.skip(), gr.skip()  # of a generator that yields nothing Gradio takes None for its outputs
    for shown in changes:
        yield tuple(gr.skip() if part is None else part for part in (shown.view, shown.line))


def _query(form: Any) -> Any:
    """The setup for the address bar; one too long for it is left out."""
    try:
        return to_query(form)
    except SpecvizError:
        return gr.skip()


def _chip_of(store: ModelStore) -> Callable[[Session], Any]:
    def chip(state: Session) -> Any:
        return device_line(store, state.request.target) if state.request else gr.skip()

    return chip


def _draw(report: Report) -> Callable[[Session], list[Any]]:
    """The figures of the last race, where they are looked at."""

    def draw(state: Session) -> list[Any]:
        if not (state.report_open and state.trace):
            return [gr.skip()] * len(report.outputs)
        return report.draw(state.trace, state.theme)

    return draw


def _wire_report(report: Report, theme: ThemeWatch, session: gr.State) -> None:
    draw = _draw(report)

    def opened(state: Session) -> list[Any]:
        state.report_open = True
        return draw(state)

    def closed(state: Session) -> None:
        state.report_open = False

    def themed(state: Session, event: gr.EventData) -> list[Any]:
        state.theme = theme_of(event)
        return draw(state)

    report.fold.expand(opened, session, report.outputs, **LIGHT)
    report.fold.collapse(closed, session, None, **LIGHT)
    theme.theme(themed, session, report.outputs, **LIGHT)


def _wire_visit(
    blocks: gr.Blocks, offer: Offer, store: ModelStore, events: FormEvents, remembered: gr.BrowserState, chip: TextLine
) -> None:
    """What a visit begins with: the setup that was sent or left, and how far the model is."""

    def restore(query: str, request: gr.Request) -> list[Any]:
        return events.restored(request.query_params.multi_items(), query)

    async def watch() -> AsyncIterator[Any]:
        loading = store.begin(offer.target)
        while not loading.over:
            yield busy(loading.words)
            await asyncio.sleep(_LOOK_SECONDS)
        yield error(loading.words) if loading.failed else device_line(store, offer.target)

    blocks.load(restore, remembered, events.restores, **LIGHT)
    blocks.load(watch, None, chip, show_progress="hidden", api_visibility="private", concurrency_limit=None)
