"""TextLine, a Gradio component that shows a sentence as text and as nothing else.

Whatever names, prompts or errors it is given, they reach the page by `textContent`: markup in them stays text.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

_TEMPLATE = '<p class="text-line" role="{role}"></p>'
_ON_LOAD = """
const line = element.querySelector('.text-line');
const show = () => {
  const [kind, text] = props.value || ['', ''];
  line.dataset.kind = kind;
  if (line.textContent === text) return;
  line.textContent = text;
  if (kind === 'error' && text) line.scrollIntoView({ block: 'nearest' });
};
watch('value', show);
show();
"""

Line = tuple[str, str]


def info(text: str) -> Line:
    return ("info", text)


def busy(text: str) -> Line:
    return ("busy", text)


def error(text: str) -> Line:
    return ("error", text)


QUIET: Line = ("", "")


class TextLine(gr.HTML):
    """One line: a pair (kind, text) with kind "info", "busy", "error", or QUIET for none.

    `role` is what assistive technology hears it as: "status" or "alert" are read aloud when they change.
    """

    def __init__(self, value: Line = QUIET, role: str = "status", **options: Any) -> None:
        super().__init__(
            list(value),
            html_template=_TEMPLATE.format(role=role),
            css_template="",
            js_on_load=_ON_LOAD,
            apply_default_css=False,
            **options,
        )

    def preprocess(self, payload: Any) -> None:
        """It is for reading: it is no input of any function."""
        return None

    def postprocess(self, value: Line | None) -> list[str]:
        return list(value or QUIET)

    def api_info(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}, "description": "kind and text"}
