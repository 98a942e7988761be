"""A race as the HTML file that the view saves, made without a browser."""

from __future__ import annotations

import json
from collections.abc import Iterable

from specviz.traces import Event, event_to_json
from specviz.views.report import Report
from specviz.views.web.race_view.bundle import script

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>specviz: a recorded race</title></head>
<body class="specviz-saved"><main id="race"></main>
<script type="application/json" id="trace">{data}</script>
<script>
{script}
specvizRaceView(document.getElementById('race'), JSON.parse(document.getElementById('trace').textContent));
</script></body></html>
"""


def saved_page(events: Iterable[Event], report: Report | None = None) -> str:
    """The page as text; without a report it has only what the view works out itself."""
    told = None if report is None else report.as_json()
    data = {"saved": [event_to_json(event) for event in events], "report": told}
    # only `<` can end a script element early
    return _PAGE.format(data=json.dumps(data).replace("<", "\\u003c"), script=script())
