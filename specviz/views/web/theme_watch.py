"""ThemeWatch, an invisible Gradio component that says which theme the page wears, at first and whenever it changes."""

from __future__ import annotations

from typing import Any

import gradio as gr

_ON_LOAD = """
let last = null;
const tell = () => {
  const theme = document.body.classList.contains('dark') ? 'dark' : 'light';
  if (theme !== last) { last = theme; trigger('theme', { theme }); }
};
new MutationObserver(tell).observe(document.body, { attributes: true, attributeFilter: ['class'] });
tell();
"""


class ThemeWatch(gr.HTML):
    """Fires `theme`: `watch.theme(fn, ...)`, whose EventData `theme_of` reads."""

    def __init__(self, **options: Any) -> None:
        super().__init__("", html_template="<span hidden></span>", css_template="", js_on_load=_ON_LOAD, **options)

    def preprocess(self, payload: Any) -> None:
        return None

    def api_info(self) -> dict[str, Any]:
        return {"type": "string", "description": "nothing"}


def theme_of(event: gr.EventData) -> str:
    """ "light" or "dark"."""
    data = event._data
    return "dark" if isinstance(data, dict) and data.get("theme") == "dark" else "light"
