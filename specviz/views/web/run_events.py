"""Run, Stop and measure: what they begin, and what of the page a run changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from specviz.core.errors import SpecvizError
from specviz.views.web.controls import Controls
from specviz.views.web.form import Form
from specviz.views.web.form_check import request_of
from specviz.views.web.form_events import LIGHT, SHARE
from specviz.views.web.link import to_query
from specviz.views.web.measure import measure
from specviz.views.web.offer import Offer
from specviz.views.web.race_view.component import RaceView
from specviz.views.web.running import Runner
from specviz.views.web.session import Session, Shown, run
from specviz.views.web.text_line import TextLine, busy, error, info

# Races are let in this far, the endpoints' too; the runner then takes them one at a time and tells each its place.
DEVICE = {"concurrency_id": "device", "concurrency_limit": 12}
FAILED = "The run was not taken up or broke off: too many are waiting, or the server met an error. Press Run again."
NOTHING_RACED = "There is no race to measure; press Run first."
_RACING = {"show_progress": "hidden", "api_visibility": "private", "trigger_mode": "multiple", **DEVICE}
Updates = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RunEvents:
    """Wires the buttons. `hz` is how often the page changes while a race runs, at most."""

    controls: Controls
    offer: Offer
    runner: Runner
    hz: float
    line: TextLine
    view: RaceView

    def wire(self, session: gr.State, remembered: gr.BrowserState) -> Any:
        """Returns the event after which a race is over. A second Run takes the place of the first."""
        ticket, (run_button, stop) = gr.State(None), (self.controls.run, self.controls.stop)
        shown, asked = [self.view, self.line], [ticket, self.line, stop]
        begun = run_button.click(
            self._begin, [session, *self.controls.inputs], [*asked, remembered], trigger_mode="multiple", **LIGHT
        )
        begun.then(None, remembered, None, js=SHARE)
        stop.click(_halt, session, [stop, self.line], **LIGHT)
        again = self.view.measure(_begin_again, session, asked, **LIGHT)
        raced = begun.then(self._race, [session, ticket], shown, **_RACING)
        measured = again.then(self._measure, [session, ticket], shown, **_RACING)
        for running in (raced, measured):
            running.failure(_fail, session, [self.line, stop], **LIGHT)
        measured.then(_over, session, stop, **LIGHT)
        return raced.then(_over, session, stop, **LIGHT)

    def _begin(self, session: Session, *values: Any) -> Updates:
        form = self.controls.read(values)
        try:
            ticket = session.begin(request_of(form, self.offer.limits))
        except SpecvizError as refusal:
            return None, error(str(refusal)), gr.skip(), gr.skip()
        return ticket, busy("Starting…"), gr.update(interactive=True), _query(form)

    def _race(self, session: Session, ticket: int | None) -> Iterator[Updates]:
        yield from _updates(run(session, ticket, self.runner, self.hz))

    def _measure(self, session: Session, ticket: int | None) -> Iterator[Updates]:
        yield from _updates(measure(session, ticket, self.runner))


def _begin_again(session: Session) -> Updates:
    if session.raced is None:
        return None, info(NOTHING_RACED), gr.skip()
    return session.begin(), busy("Starting…"), gr.update(interactive=True)


def _halt(session: Session) -> Updates:
    """What runs says itself that it was stopped; what still waits to be taken up cannot."""
    waiting = session.busy and not session.running
    session.stop()
    return gr.update(interactive=False), info("Stopped before the race began.") if waiting else gr.skip()


def _fail(session: Session) -> Updates:
    session.stop()
    return error(FAILED), gr.update(interactive=False)


def _over(session: Session) -> Any:
    """Never enables: an answer about the run before may arrive after the one about the run that took its place."""
    return gr.skip() if session.busy else gr.update(interactive=False)


def _updates(changes: Iterator[Shown]) -> Iterator[Updates]:
    """Updates of view and line."""
    yield gr.skip(), gr.skip()  # of a generator that yields nothing Gradio takes None for its outputs
    for shown in changes:
        yield tuple(gr.skip() if part is None else part for part in (shown.view, shown.line))


def _query(form: Form) -> Any:
    """The setup for the address bar; one too long for it is left out."""
    try:
        return to_query(form)
    except SpecvizError:
        return gr.skip()
