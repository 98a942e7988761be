"""RaceView, the Gradio component that shows a race, live and replayed.

Its template is fixed and empty: everything on it is made by the script of `bundle`, and no text of a model, a prompt or
a file is ever put into a template or a prop that a template reads.
"""

from __future__ import annotations

import json
from typing import Any

import gradio as gr

from specviz.traces import MAX_TRACE_BYTES
from specviz.views.web.race_view import bundle
from specviz.views.web.race_view.race_stream import RaceStream, Value, recorded, refused, resync

__all__ = ["RaceStream", "RaceView", "Value", "recorded", "refused", "resync"]

_TEMPLATE = '<div class="sv-mount"></div>'
_ON_LOAD = """
specvizRaceView(element.querySelector('.sv-mount'), {
  value: () => props.value,
  watch: (callback) => watch('value', callback),
  resync: (request) => server.resync(request),
  trigger: (name, data) => trigger(name, data),
  measurable: MEASURABLE,
  maxTraceBytes: MAX_TRACE_BYTES,
});
"""


class RaceView(gr.HTML):
    """All lanes of a race, live and replayed. Its values come from `RaceStream`, `recorded` and `refused`.

    A `measurable` view offers repeated runs and fires `measure`: `view.measure(fn, ...)`. An `openable` one offers to
    open a trace file and fires `open_trace` with the file's `name` and `text`.
    """

    def __init__(
        self, value: Value | None = None, measurable: bool = False, openable: bool = False, **options: Any
    ) -> None:
        self.measurable, self.openable = measurable, openable
        super().__init__(
            value,
            html_template=_TEMPLATE,
            css_template="",
            js_on_load=bundle.script() + _on_load(measurable, openable),
            apply_default_css=False,
            server_functions=[resync],
            **options,
        )

    def preprocess(self, payload: Any) -> None:
        """The view is for looking: it is no input of any function."""
        return None

    def postprocess(self, value: Value | None) -> Value | None:
        return value

    def api_info(self) -> dict[str, Any]:
        return {"type": "object", "description": "a race's run id and its ring of numbered batches"}


def _on_load(measurable: bool, openable: bool) -> str:
    limit = MAX_TRACE_BYTES if openable else 0
    return _ON_LOAD.replace("MEASURABLE", json.dumps(measurable)).replace("MAX_TRACE_BYTES", str(limit))
