"""What drives the race view in tests and in scripts: a Chromium, a page that is watched, an app that plays traces."""

from __future__ import annotations

import os
import shutil
import time

from gradio import EventData

from specviz.views.report import race_report

CHROMIUM_ARGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium_path() -> str | None:
    """SPECVIZ_CHROMIUM, else the first Chromium on the path; None leaves it to playwright's own."""
    given = os.environ.get("SPECVIZ_CHROMIUM")
    return given or next((path for name in _NAMES if (path := shutil.which(name))), None)


class Watched:
    """A page that remembers console errors, page errors and every request that left this machine."""

    def __init__(self, page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.outside: list[str] = []
        page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._request)

    def _request(self, request) -> None:
        local = ("http://127.0.0.1", "http://localhost", "data:", "blob:", "file:")
        if not request.url.startswith(local):
            self.outside.append(request.url)


def play(events: list, hz: float, seconds: float, ended: list[float] | None = None):
    """The values of a trace sent over about `seconds`; the wall time of the last is added to `ended`."""
    from specviz.views.web.race_view.race_stream import RaceStream

    stream = RaceStream(hz=hz)
    start = time.monotonic()
    for i, event in enumerate(events):
        wait = start + i * seconds / len(events) - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        stream.push(event)
        value = stream.value()
        if value:
            yield value
    stream.push_report(race_report(events))
    if ended is not None:
        ended.append(time.time())
    yield stream.flush()


def race_app(traces: dict, hz: float = 20.0, seconds: float = 1.5, ended: list[float] | None = None):
    """A Blocks app with a RaceView that opens traces; for each trace a button that plays it and one that stops it."""
    import gradio as gr

    from specviz.views.web.race_view.component import RaceView

    with gr.Blocks() as demo:
        view = RaceView(openable=True)
        view.open_trace(_opened, None, view, show_progress="hidden")
        for name, events in traces.items():

            def played(events=events):
                yield from play(events, hz, seconds, ended)

            running = gr.Button(name, elem_id=f"run-{name}").click(played, None, view, show_progress="hidden")
            gr.Button("Stop", elem_id=f"stop-{name}").click(None, None, None, cancels=[running])
    return demo


def _opened(event: EventData):
    from specviz.core.errors import SpecvizError
    from specviz.views.web.gallery_events import opened_trace
    from specviz.views.web.race_view.component import refused

    try:
        return opened_trace(event._data)[1]
    except SpecvizError as refusal:
        return refused(str(refusal))


def launch(demo) -> str:
    """Serves a Blocks app on this machine alone, without blocking; its address."""
    options = {"ssr_mode": False, "share": False, "run_history": False, "quiet": True}
    return demo.launch(prevent_thread_lock=True, server_name="127.0.0.1", **options)[1]
