"""The JSON form of a record: its fields and its public properties, as plain values. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass
from inspect import getmembers
from typing import Any

_INLINED = "inlined"


def inlined() -> Any:
    """A dataclass field, itself a record or mapping, whose entries stand among those of the record that holds it."""
    return field(metadata={_INLINED: True})


def to_json(value: Any) -> Any:
    """Records and mappings become dictionaries, sequences lists; keys are text. Derived numbers are given too."""
    if is_dataclass(value):
        return _record(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(own) for own in value]
    return value


def _record(record: Any) -> dict[str, Any]:
    form: dict[str, Any] = {}
    for each in fields(record):
        own = to_json(getattr(record, each.name))
        form.update(own if _INLINED in each.metadata else {each.name: own})
    for name, _ in getmembers(type(record), lambda member: isinstance(member, property)):
        if not name.startswith("_"):
            form[name] = to_json(getattr(record, name))
    return form
