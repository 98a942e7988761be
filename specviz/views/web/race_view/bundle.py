"""The race view's script: the modules of assets/race_view joined into one function, styles included.

The modules are plain ES modules. Joining puts each into a function of its own that returns what it exports, so private
names stay private, and all of them into `function specvizRaceView(root, host)`. The live page, the replay and a saved
file run this one function.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

ASSETS = Path(__file__).resolve().parent
# Each module after those it imports from.
MODULES = (
    "dom",
    "defaults",
    "wire",
    "state",
    "words",
    "names",
    "tokens",
    "lanes",
    "card",
    "timeline",
    "curves",
    "report",
    "files",
    "controls",
    "legend",
    "playback",
    "pointing",
    "main",
)
STYLES = ("palette", "race_view")

_IMPORT = re.compile(r"^import \{[^}\n]*\} from '\./[a-z]+\.js';\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


@cache
def script() -> str:
    """JavaScript that defines `specvizRaceView(root, host)`; safe inside a script element."""
    styles = "".join((ASSETS / f"{name}.css").read_text("utf-8") for name in STYLES)
    style = json.dumps(styles, ensure_ascii=False).replace("</", "<\\/")
    modules = "\n".join(_scoped((ASSETS / f"{name}.js").read_text("utf-8")) for name in MODULES)
    lines = ("function specvizRaceView(root, host) {", "'use strict';", f"const STYLE = {style};", modules)
    return "\n".join((*lines, "return mount(root, host, STYLE);", "}", ""))


def _scoped(module: str) -> str:
    """A module in a scope of its own that gives out its exports only."""
    names = ", ".join(_EXPORT.findall(module))
    body = _EXPORT.sub("", _IMPORT.sub("", module))
    return f"const {{ {names} }} = (() => {{\n{body}return {{ {names} }};\n}})();"
