"""Records to JSON values and back, by their type hints alone.

A record becomes an object of its fields, those equal to their default left out; a Token becomes the short array
[id, text, piece]; an event carries its class name under "event". Reading checks every name and type, so a trace
from a stranger is either well-formed or refused in words.
"""

from __future__ import annotations

import math
import types
import typing
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from specviz.core.errors import TraceError
from specviz.core.settings import Settings
from specviz.traces import records
from specviz.traces.records import Event, Token

_EVENTS = {cls.__name__: cls for cls in typing.get_args(Event)}


def event_to_json(event: Event) -> dict[str, Any]:
    """The JSON object of an event; `event_from_json` gives an equal event back."""
    return {"event": type(event).__name__, **_encode(event)}


def event_from_json(value: Any) -> Event:
    """The event that a JSON object describes. Raises TraceError where it describes none."""
    name = value.get("event") if isinstance(value, dict) else None
    if not isinstance(name, str) or name not in _EVENTS:
        raise TraceError("it is not an event of a specviz trace.")
    body = {field: item for field, item in value.items() if field != "event"}
    return _decode(_EVENTS[name], body, name)


def _encode(value: Any) -> Any:
    if isinstance(value, Token):
        parts = [value.id, value.text, value.piece]
        while len(parts) > 1 and parts[-1] is None:
            parts.pop()
        return parts
    if is_dataclass(value):
        items = ((spec, getattr(value, spec.name)) for spec in fields(value))
        return {spec.name: _encode(item) for spec, item in items if not is_default(spec, item)}
    if isinstance(value, tuple | list):
        return [_encode(item) for item in value]
    if isinstance(value, dict):
        return {name: _encode(item) for name, item in value.items()}
    return value


def is_default(spec: Field, value: Any) -> bool:
    """Whether `value` is the default of the field `spec`, so that JSON leaves it out."""
    return spec.default is not MISSING and type(value) is type(spec.default) and value == spec.default


def _decode(hint: Any, value: Any, where: str) -> Any:
    """`value` as the type that `hint` names, or a TraceError that says where it is not."""
    if hint is Any:
        return value
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return _decode_union(typing.get_args(hint), value, where)
    origin = typing.get_origin(hint)
    if origin is tuple:
        return _decode_tuple(typing.get_args(hint), value, where)
    if origin is list:
        items = _expect(value, list, where)
        return [_decode(typing.get_args(hint)[0], item, where) for item in items]
    if origin is dict:
        inner = typing.get_args(hint)[1]
        items = _expect(value, dict, where).items()
        return {name: _decode(inner, item, f"{where}.{name}") for name, item in items}
    if hint is Token:
        return _decode_token(value, where)
    if is_dataclass(hint):
        return _decode_record(hint, value, where)
    if issubclass(hint, StrEnum):
        if value not in {member.value for member in hint}:
            raise TraceError(f"{where} is {_short(value)}, which is not one of {_names(hint)}.")
        return hint(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    _expect(value, hint, where)
    if hint is float and not math.isfinite(value):
        raise TraceError(f"{where} is not a finite number.")
    return value


def _decode_union(options: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in options:
        return None
    errors = []
    # int before float, or 3 would come back as 3.0
    for option in sorted((o for o in options if o is not type(None)), key=lambda o: o is float):
        try:
            return _decode(option, value, where)
        except TraceError as error:
            errors.append(error)
    raise errors[0]


def _decode_tuple(inner: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    items = _expect(value, list, where)
    if len(inner) == 2 and inner[1] is Ellipsis:
        return tuple(_decode(inner[0], item, f"{where}[{i}]") for i, item in enumerate(items))
    if len(items) != len(inner):
        raise TraceError(f"{where} should have {len(inner)} items and has {len(items)}.")
    return tuple(_decode(kind, item, where) for kind, item in zip(inner, items, strict=True))


def _decode_token(value: Any, where: str) -> Token:
    parts = [*_expect(value, list, where), None, None][: max(3, len(value))]
    if not 1 <= len(value) <= 3:
        raise TraceError(f"{where} should be [id, text, piece].")
    kinds = (int | None, str | None, str | None)
    return Token(*(_decode(kind, part, where) for kind, part in zip(kinds, parts, strict=True)))


def _decode_record(cls: type, value: Any, where: str) -> Any:
    body = _expect(value, dict, where)
    hints = _hints(cls)
    unknown = sorted(set(body) - set(hints))
    if unknown:
        raise TraceError(f"{where} has a field that this version does not know: {_short(unknown[0])}.")
    for spec in fields(cls):
        if spec.name not in body and spec.default is MISSING and spec.default_factory is MISSING:
            raise TraceError(f"{where} lacks the field '{spec.name}'.")
    decoded = {name: _decode(hints[name], item, f"{where}.{name}") for name, item in body.items()}
    for name, item in decoded.items():
        if name.endswith("seconds") and isinstance(item, float) and item < 0:
            raise TraceError(f"{where}.{name} is {item}, and no time is below 0.")
    return cls(**decoded)


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls, {**vars(records), "Settings": Settings})


def _expect(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise TraceError(f"{where} should be {_word(kind)}, not {_short(value)}.")
    return value


def _word(kind: type) -> str:
    words = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}
    return words.get(kind, f"a {kind.__name__}")


def _names(enum: type[StrEnum]) -> str:
    return ", ".join(member.value for member in enum)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
