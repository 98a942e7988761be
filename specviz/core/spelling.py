"""Values as people type them: numbers, truths, lists, settings. Whether a value is allowed is for others."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from specviz.core.errors import InputError
from specviz.core.settings import Settings

_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,20}\s*")
_KINDS = {spec.name: type(spec.default) for spec in fields(Settings)}


def number(text: str) -> int | float | str:
    """The number that a text spells, or the text itself, which Settings then refuses by the setting's name."""
    try:
        return int(text) if _WHOLE.fullmatch(text) else float(text)
    except ValueError:
        return text


def truth(name: str, text: str) -> bool:
    """Raises InputError for what is neither true nor false."""
    lowered = text.strip().lower()
    if lowered not in _YES + _NO:
        raise InputError(f"{name} must be true or false, not '{text}'.")
    return lowered in _YES


def items(text: str) -> tuple[str, ...]:
    """A list whose items are joined with "+"; nothing is the empty list."""
    return tuple(text.split("+")) if text else ()


def setting(name: str, text: str) -> Any:
    """The value of the setting `name` as its type; its range is checked by Settings."""
    kind = _KINDS[name]
    if kind is bool:
        return truth(name, text)
    if kind is tuple:
        return items(text)
    return text if kind is str else number(text)
