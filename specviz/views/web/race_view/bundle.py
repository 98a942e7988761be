"""Joins the race view's JavaScript modules and styles into one function, `specvizRaceView(root, host)`.

The live page, the replay and a saved file run this function; none of them needs a build step or a second request.

The modules are plain ES modules, and their own `import` lines give the order. Each becomes a function scope that
returns its exports, so private names stay private. JSDoc, which serves those who read and check the modules, is left
out. The joining is strict: it knows `export` before a function, class or const, and `import { names } from
'./module.js';`, and refuses anything else.
"""

from __future__ import annotations

import json
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
STYLES = ("palette", "race_view")

_IMPORT = re.compile(r"^import \{\s*\w+(?:,\s*\w+)*,?\s*\} from '\./(\w+)\.js';\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
# Whole lines only; no text of the view has such lines.
_DOC = re.compile(r"^[ \t]*/\*\*(?:[^*]|\*(?!/))*\*/\n", re.MULTILINE)
_OTHER = re.compile(r"^\s*(?:import|export)\b.*", re.MULTILINE)


@cache
def script() -> str:
    """JavaScript that defines `specvizRaceView(root, host)`; safe inside a script element."""
    styles = "".join((FOLDER / f"{name}.css").read_text("utf-8") for name in STYLES)
    style = json.dumps(styles, ensure_ascii=False).replace("</", "<\\/")
    lines = ("function specvizRaceView(root, host) {", "'use strict';", f"const STYLE = {style};", joined(FOLDER))
    return "\n".join((*lines, "return mount(root, host, STYLE, () => specvizRaceView.toString());", "}", ""))


def joined(folder: Path) -> str:
    """The module `main` and all that it imports, each after those it imports from.

    Raises ValueError for a missing module, a circle of imports, a name exported twice, or an import or export of a form
    that cannot be joined.
    """
    texts = modules(folder)
    try:
        order = tuple(TopologicalSorter({name: _IMPORT.findall(text) for name, text in texts.items()}).static_order())
    except CycleError as error:
        circle = " -> ".join(f"{name}.js" for name in reversed(error.args[1]))
        raise ValueError(f"JavaScript modules import each other in a circle: {circle}.") from error
    _check_exports(texts)
    return "\n".join(_scoped(name, texts[name]) for name in order)


def modules(folder: Path) -> dict[str, str]:
    """The text of every module that `main` needs, by name. Raises ValueError for a missing one."""
    texts: dict[str, str] = {}
    waiting = [("main", "The page")]
    while waiting:
        name, importer = waiting.pop()
        if name in texts:
            continue
        path = folder / f"{name}.js"
        if not path.is_file():
            raise ValueError(f"{importer} imports {name}.js, which is not in {folder}.")
        texts[name] = path.read_text("utf-8")
        waiting += [(other, f"{name}.js") for other in _IMPORT.findall(texts[name])]
    return texts


def _check_exports(texts: dict[str, str]) -> None:
    """Raises ValueError where two modules export one name: joined, they would share it."""
    homes: dict[str, str] = {}
    for module, text in texts.items():
        for name in _EXPORT.findall(text):
            if name in homes:
                raise ValueError(f"{homes[name]}.js and {module}.js both export `{name}`; rename one.")
            homes[name] = module


def _scoped(name: str, text: str) -> str:
    """A module in a scope of its own that gives out its exports only."""
    exports = ", ".join(_EXPORT.findall(text))
    body = _EXPORT.sub("", _IMPORT.sub("", _DOC.sub("", text)))
    if other := _OTHER.search(body):
        raise ValueError(f"{name}.js: cannot join `{other[0].strip()}`; bundle.py says what it can.")
    return f"const {{ {exports} }} = (() => {{\n{body}return {{ {exports} }};\n}})();"
