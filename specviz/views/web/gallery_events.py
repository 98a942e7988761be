"""Recorded runs on the page: the gallery, whose first run is shown first, and traces that a visitor opens."""

from __future__ import annotations

import textwrap
from functools import cache
from typing import Any

import gradio as gr

from specviz.catalogue.gallery import Recording, recordings
from specviz.core.errors import SpecvizError, TraceError
from specviz.traces import Event, Header, RaceStarted, parse_trace
from specviz.views.report import race_report
from specviz.views.web.form_events import LIGHT
from specviz.views.web.race_view.component import RaceView
from specviz.views.web.race_view.race_stream import Value, recorded, refused
from specviz.views.web.session import Session
from specviz.views.web.text_line import QUIET, TextLine, error, info

_MAX_NAME, _MAX_LANES = 200, 16


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


def wire_opening(choice: gr.Radio, session: gr.State, view: RaceView, caption: TextLine, line: TextLine) -> Any:
    """Show a trace file where it is opened, with all that a run of this page has; returns the event of an opening."""
    return view.open_trace(_open, session, [view, choice, caption, line], **LIGHT)


def _first(session: Session) -> tuple[Any, ...]:
    name = next(iter(recordings()))
    if session.busy or session.trace:
        return gr.skip(), gr.skip()
    return name, _choose(session, name)[1]


def _choose(session: Session, name: str) -> tuple[Any, ...]:
    """The recording in the view, and what to look for in it. A run in progress gives way."""
    try:
        session.show_recording(_events(name))
        return _value(name), info(_words(recordings()[name], session.trace))
    except SpecvizError as refusal:
        return gr.skip(), error(str(refusal))


def _open(session: Session, event: gr.EventData) -> tuple[Any, ...]:
    """Show the trace that was opened. A run in progress gives way; a refusal leaves all as it is."""
    try:
        events, value = opened_trace(event._data)
    except SpecvizError as refusal:
        return refused(str(refusal)), gr.skip(), gr.skip(), gr.skip()
    session.show_recording(events)
    return value, None, QUIET, QUIET


def opened_trace(data: Any) -> tuple[tuple[Event, ...], Value]:
    """The events of a file that a browser sent as its name and text, and the value that shows them.

    Raises TraceError, in words, for a text that is no trace.
    """
    name, text = (data.get("name"), data.get("text")) if isinstance(data, dict) else (None, None)
    if not (isinstance(name, str) and isinstance(text, str)):
        raise TraceError("No trace file was sent; choose one again.")
    events = tuple(parse_trace(text, textwrap.shorten(name, _MAX_NAME, placeholder="…") or "The file"))
    lanes = len(events[0].header.lanes)
    if not 0 < lanes <= _MAX_LANES:
        raise TraceError(f"The page shows races of 1 to {_MAX_LANES} lanes; this one has {lanes}.")
    return events, recorded(events, race_report(events))


@cache
def _events(name: str) -> tuple[Event, ...]:
    return tuple(recordings()[name].events())


def _value(name: str) -> Value:
    events = _events(name)
    return recorded(events, race_report(events))


def _words(recording: Recording, events: tuple[Event, ...]) -> str:
    """What to look for, and where and when it was recorded."""
    header = next(event.header for event in events if isinstance(event, RaceStarted))
    prompt = textwrap.shorten(recording.prompt, 160, placeholder=" …")
    return f"{recording.what} The prompt: “{prompt}” {_recorded(header)}"


def _recorded(header: Header) -> str:
    cores = f"{header.threads} cores, " if header.device == "cpu" else ""
    return f"Recorded on {header.created[:10]}: {header.target.name} on {header.device_name}, {cores}{header.dtype}."
