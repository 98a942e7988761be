"""RaceView, the Gradio component that shows a race, live and replayed.

Its template is fixed and empty: everything on it is made by the script of `bundle`, and no text of a model, a prompt or
a file is ever put into a template or a prop that a template reads.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from specviz.views.web.race_view import bundle
from specviz.views.web.race_view.race_stream import RaceStream, Value, notice, recorded, resync

__all__ = ["RaceStream", "RaceView", "Value", "notice", "recorded", "resync"]

_TEMPLATE = '<div class="sv-mount"></div>'
_ON_LOAD = """
specvizRaceView(element.querySelector('.sv-mount'), {
  value: () => props.value,
  watch: (callback) => watch('value', callback),
  resync: (request) => server.resync(request),
  trigger: (name, data) => trigger(name, data),
  measurable: MEASURABLE,
});
"""


class RaceView(gr.HTML):
    """All lanes of a race, live and replayed. Its values come from `RaceStream`, `recorded` and `notice`.

    Where it is `measurable` it offers repeated runs and fires `measure`: `view.measure(fn, ...)`.
    """

    def __init__(self, value: Value | None = None, measurable: bool = False, **options: Any) -> None:
        self.measurable = measurable
        super().__init__(
            value,
            html_template=_TEMPLATE,
            css_template="",
            js_on_load=bundle.script() + _ON_LOAD.replace("MEASURABLE", "true" if measurable else "false"),
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
