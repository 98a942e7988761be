"""A run as one HTML file that opens offline in any browser, with the full view and its replay.

files.js makes the same file in the browser, from what has arrived there.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

from specviz.traces import Event, event_to_json
from specviz.views.web.race_view.bundle import script

_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title></head>
<body class="specviz-saved"><main id="race"></main>
<script type="application/json" id="trace">{data}</script>
<script>
{script}
specvizRaceView(document.getElementById('race'), JSON.parse(document.getElementById('trace').textContent));
</script></body></html>
"""


def saved_page(
    events: Iterable[Event], summary: dict[str, dict[str, Any]] | None = None, title: str = "specviz: a recorded race"
) -> str:
    """The page as text. `summary` maps lane names to the fields of their Summary."""
    data = {"saved": [event_to_json(event) for event in events], "summary": summary}
    # Only `<` can end a script element early.
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return _PAGE.format(title=html.escape(title), data=text, script=script())
