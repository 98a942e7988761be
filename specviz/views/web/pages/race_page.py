"""The race page: masthead, the column of controls, the race view and the figures, wired together.

A handler turns values into a request, or steps into updates: `running` says what runs, `session` what is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import gradio as gr

from specviz.views.web.controls import build_controls
from specviz.views.web.device_line import device_line
from specviz.views.web.figures_panel import FiguresPanel, build_figures
from specviz.views.web.form_events import LIGHT, FormEvents
from specviz.views.web.gallery_events import build_gallery, first_value, wire_gallery, wire_opening
from specviz.views.web.model_store import ModelStore
from specviz.views.web.offer import Offer
from specviz.views.web.pages.page_record import Page, PageContext
from specviz.views.web.race_view.component import RaceView
from specviz.views.web.run_events import RunEvents
from specviz.views.web.session import Session
from specviz.views.web.text_line import QUIET, TextLine, busy, error
from specviz.views.web.theme_watch import ThemeWatch, theme_of

_LOOK_SECONDS = 0.4
_TAGLINE = "Watch a small model guess and a large one check all its guesses in one pass"
_MASTHEAD = f'<h1>specviz</h1><p class="tagline">{_TAGLINE}</p>'


def build_race_page(context: PageContext) -> None:
    """Build the page: what to race on the left, the race and its figures on the right."""
    blocks, offer, store = context.blocks, context.offer, context.store
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
            gallery = build_gallery()
            caption = TextLine(elem_classes="line caption", elem_id="caption")
            line = TextLine(role="alert", elem_classes="line", elem_id="line")
            view = RaceView(first_value(), measurable=True, openable=True, elem_id="race")
            figures = build_figures()
    events = FormEvents(controls, offer, usual, line, remembered)
    events.wire()
    controls.run.click(lambda: (None, QUIET), None, [gallery, caption], **LIGHT)  # what is shown next is no recording
    over = RunEvents(controls, offer, context.runner, context.hz, line, view).wire(session, remembered)
    over.then(_chip_of(store), session, chip, **LIGHT).then(_draw(figures), session, figures.outputs, **LIGHT)
    shown = wire_gallery(blocks, gallery, session, view, caption)
    opened = wire_opening(gallery, session, view, caption, line)
    for event in (shown, opened):
        event.then(_draw(figures), session, figures.outputs, **LIGHT)
    _wire_figures(figures, theme, session)
    _wire_visit(blocks, offer, store, events, remembered, chip)


def _chip_of(store: ModelStore) -> Callable[[Session], Any]:
    def chip(state: Session) -> Any:
        return device_line(store, state.request.target) if state.request else gr.skip()

    return chip


def _draw(figures: FiguresPanel) -> Callable[[Session], list[Any]]:
    """The figures of the last race, where they are looked at."""

    def draw(state: Session) -> list[Any]:
        if not (state.report_open and state.trace):
            return [gr.skip()] * len(figures.outputs)
        return figures.draw(state.trace, state.theme)

    return draw


def _wire_figures(figures: FiguresPanel, theme: ThemeWatch, session: gr.State) -> None:
    draw = _draw(figures)

    def opened(state: Session) -> list[Any]:
        state.report_open = True
        return draw(state)

    def closed(state: Session) -> None:
        state.report_open = False

    def themed(state: Session, event: gr.EventData) -> list[Any]:
        state.theme = theme_of(event)
        return draw(state)

    figures.fold.expand(opened, session, figures.outputs, **LIGHT)
    figures.fold.collapse(closed, session, None, **LIGHT)
    theme.theme(themed, session, figures.outputs, **LIGHT)


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


RACE_PAGE = Page("Race", "", build_race_page)
