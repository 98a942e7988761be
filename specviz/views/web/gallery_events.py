"""The gallery on the page: recorded runs to look at before, beside or without a model; the first one is shown first."""

from __future__ import annotations

import textwrap
from functools import cache
from typing import Any

import gradio as gr

from specviz.catalogue.gallery import Recording, recordings
from specviz.core.errors import SpecvizError
from specviz.metrics import summarize
from specviz.traces import Event, Header, RaceStarted
from specviz.views.web.form_events import LIGHT
from specviz.views.web.race_view.component import RaceView
from specviz.views.web.race_view.race_stream import Value, recorded
from specviz.views.web.session import Session
from specviz.views.web.summary_json import numbers
from specviz.views.web.text_line import TextLine, error, info


def build_gallery() -> gr.Radio:
    """The row of recorded runs."""
    titles = [(recording.title, name) for name, recording in recordings().items()]
    return gr.Radio(titles, label="Recorded runs", elem_classes="chips", elem_id="gallery")


def first_value() -> Value | None:
    """The first recording, which the page holds when it is first painted; None where it cannot be read."""
    try:
        return _value(next(iter(recordings())))
    except SpecvizError:
        return None


def wire_gallery(blocks: gr.Blocks, choice: gr.Radio, session: gr.State, view: RaceView, caption: TextLine) -> Any:
    """Show a recording where it is chosen, and say which one the page begins with; returns the event of a choice."""
    blocks.load(_first, session, [choice, caption], **LIGHT)
    return choice.input(_choose, [session, choice], [view, caption], **LIGHT)


def _first(session: Session) -> tuple[Any, ...]:
    name = next(iter(recordings()))
    if session.busy or session.trace:
        return gr.skip(), gr.skip()
    return name, _choose(session, name)[1]


def _choose(session: Session, name: str) -> tuple[Any, ...]:
    """The recording in the view, and what to look for in it. A run in progress gives way."""
    try:
        session.look_at(_events(name))
        return _value(name), info(_words(recordings()[name], session.trace))
    except SpecvizError as refusal:
        return gr.skip(), error(str(refusal))


@cache
def _events(name: str) -> tuple[Event, ...]:
    return tuple(recordings()[name].events())


def _value(name: str) -> Value:
    events = _events(name)
    return recorded(events, {lane: numbers(summary) for lane, summary in summarize(events).items()})


def _words(recording: Recording, events: tuple[Event, ...]) -> str:
    """What to look for, and where and when it was recorded."""
    header = next(event.header for event in events if isinstance(event, RaceStarted))
    prompt = textwrap.shorten(recording.prompt, 160, placeholder=" …")
    return f"{recording.what} The prompt: “{prompt}” {_recorded(header)}"


def _recorded(header: Header) -> str:
    cores = f"{header.threads} cores, " if header.device == "cpu" else ""
    return f"Recorded on {header.created[:10]}: {header.target.name} on {header.device_name}, {cores}{header.dtype}."
