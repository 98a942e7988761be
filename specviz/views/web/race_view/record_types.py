"""Generates records.js: the records of a trace and of its report as JSDoc types, and the defaults that JSON leaves out.

`make records` writes the file. A type describes what `specviz.traces.codec` writes: a field that equals its default is
absent, a token is `[id, text, piece]` with trailing nulls cut, an event carries its class name under `event`.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from specviz.core.settings import Settings
from specviz.metrics import Row
from specviz.metrics.words import Badge, Headline
from specviz.traces import DraftToken, Event, Kind, Round, TargetToken, Token, Verdict, records
from specviz.views.report import Report, SourceRow

FILE = Path(__file__).with_name("records.js")
# These travel to the page as arrays of their fields (wire.py).
ARRAYS = (Round, DraftToken, TargetToken)
EVENTS = typing.get_args(Event)
# The report on a race travels as it is.
REPORT = (Headline, Badge, Row, SourceRow, Report)

_TEXT = """\
// The records of a trace as they stand in JSON. Generated from the Python records: edit those, then `make records`.

/** @type {{Verdict[]}} */
export const VERDICTS = {verdicts};

/** @type {{Kind[]}} */
export const KINDS = {kinds};

/**
 * What a lane's settings are where its trace does not say.
 * @type {{Required<Settings>}}
 */
export const SETTINGS = {{
{settings}
}};

/**
 * The fields of each record that travels as an array, in order, and the default of those that may be left out.
 * @type {{Record<{arrays}, [name: string, absent?: string | number | boolean | null][]>}}
 */
export const FIELDS = {{
{fields}
}};

/** @typedef {{[id: number | null, text?: string | null, piece?: string | null]}} Token */

/** @typedef {{[token: Token, probability: number]}} Alternative */

{types}

/** @typedef {{{events}}} Event */
"""
_SCALARS = {str: "string", int: "number", float: "number", bool: "boolean", types.NoneType: "null"}


def script() -> str:
    """The text of records.js, in the format of `deno fmt`."""
    return _TEXT.format(
        verdicts=_literal(list(Verdict)),
        kinds=_literal(list(Kind)),
        settings="\n".join(f"  {spec.name}: {_literal(spec.default)}," for spec in fields(Settings)),
        arrays=_union(_literal(kind.__name__) for kind in ARRAYS),
        fields="\n".join(_fields(kind) for kind in ARRAYS),
        types="\n\n".join(_typedef(kind) for kind in _kinds()),
        events=_union(kind.__name__ for kind in EVENTS),
    )


def _fields(kind: type) -> str:
    names = (_literal([spec.name] if spec.default is MISSING else [spec.name, spec.default]) for spec in fields(kind))
    return "\n".join((f"  {kind.__name__}: [", *(f"    {name}," for name in names), "  ],"))


def _kinds() -> Iterator[type]:
    """Settings, the types of `traces.records` in the order of that file, and the report's; a Token is an array."""
    yield Settings
    for kind in vars(records).values():
        if isinstance(kind, type) and kind.__module__ == records.__name__ and kind is not Token:
            yield kind
    yield from REPORT


def _typedef(kind: type) -> str:
    if issubclass(kind, StrEnum):
        return f"/** @typedef {{{_union(_literal(member) for member in kind)}}} {kind.__name__} */"
    hints = typing.get_type_hints(kind)
    lines = [f"@typedef {{object}} {kind.__name__}"]
    lines += [f"@property {{{_literal(kind.__name__)}}} event"] if kind in EVENTS else []
    lines += [_property(spec, hints[spec.name], kind in REPORT) for spec in fields(kind)]
    return "\n".join(("/**", *(f" * {line}" for line in lines), " */"))


def _property(spec: Field[Any], hint: Any, whole: bool) -> str:
    """`whole`: the record is written with all its fields, defaults too."""
    required = whole or (spec.default is MISSING and spec.default_factory is MISSING)
    return f"@property {{{_type(hint)}}} {spec.name if required else f'[{spec.name}]'}"


def _type(hint: Any) -> str:
    """The JSDoc type of the JSON that a field of this type hint becomes. Raises TypeError for a hint of a new form."""
    if hint == records.Alternative:
        return "Alternative"
    if hint in _SCALARS:
        return _SCALARS[hint]
    if is_dataclass(hint) or (isinstance(hint, type) and issubclass(hint, StrEnum)):
        return hint.__name__
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _union(dict.fromkeys(_type(one) for one in inner))
    if origin is dict:
        return f"Record<string, {_type(inner[1])}>"
    if origin is list or (origin is tuple and inner[-1] is Ellipsis):
        return f"{_type(inner[0])}[]"
    raise TypeError(f"records.js cannot hold {hint}: teach record_types.py which JSON it becomes.")


def _union(names: Iterable[str]) -> str:
    return " | ".join(names)


def _literal(value: Any) -> str:
    """A default as JavaScript, in the quotes that deno keeps. No default holds a quote."""
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return json.dumps(whole).replace('"', "'")


if __name__ == "__main__":
    FILE.write_text(script(), "utf-8")
    print(f"Wrote {FILE.name}.")
