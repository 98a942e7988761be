"""Print what every number of a lane means, as Markdown.

docs/metrics.md is this text: python -m specviz metrics > docs/metrics.md
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from specviz.metrics import METRICS, Group, Metric, Place

_INTRODUCTION = """# Metrics

Every number of a lane, by its field in JSON and in Python. This file is generated from
[specviz/metrics/definitions.py](../specviz/metrics/definitions.py); do not edit it:

```sh
python -m specviz metrics > docs/metrics.md
```

A number that is not defined, or not yet, is `null` in JSON and "–" on a screen. Times are on the lane's own clock,
which starts after prefill and counts only the lane's own compute. Costs are in one-token target passes. In a tree,
`drafted` counts nodes and a position is a depth. Positions are counted from 1 in every text for people;
`first_divergence` alone is an index, from 0.

`/summary` gives every number, and the verdict in words: `verdict`, `because`, `holds_back`, `policy_bias`. The column
"shown in" names the other places.
"""
_PLACES = {
    Place.JSON: "`race --json`",
    Place.TERMINAL: "terminal",
    Place.PAGE: "page",
    Place.BENCH: "`bench`",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """The command takes no arguments."""


def run(arguments: argparse.Namespace) -> int:
    print(document(), end="")
    return 0


def document() -> str:
    """docs/metrics.md: a table of definitions per group."""
    return "\n".join((_INTRODUCTION, *_groups()))


def _groups() -> Iterator[str]:
    for group in Group:
        yield f"## {group.value.capitalize()}\n"
        yield "| field | name | unit | meaning | shown in |\n|---|---|---|---|---|"
        yield from (_line(metric) for metric in METRICS.values() if metric.group is group)
        yield ""


def _line(metric: Metric) -> str:
    places = ", ".join(name for place, name in _PLACES.items() if place in metric.places)
    cells = (f"`{metric.field}`", metric.title, metric.unit, metric.meaning, places)
    return f"| {' | '.join(cells)} |"
