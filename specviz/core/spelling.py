"""Values as people type them: numbers, truths, lists, settings. Whether a value is allowed is for others."""

from __future__ import annotations

import math
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
        raise InputError(f"must be true or false, not '{text}'.", subject=name, code="not-a-truth", field=name)
    return lowered in _YES


def items(text: str) -> tuple[str, ...]:
    """A list whose items are joined with "+"; nothing is the empty list."""
    return tuple(text.split("+")) if text else ()


def scalar(text: str) -> str | int | float | bool:
    """The value that a text spells canonically: a truth, a number in its shortest form, otherwise the text itself."""
    if text in ("true", "false"):
        return text == "true"
    value = number(text)
    if isinstance(value, str) or not math.isfinite(value):
        return text
    return value if scalar_text(value) == text else text


def scalar_text(value: object) -> str:
    """The canonical spelling of a value, which `scalar` reads back."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def typed(kind: type, name: str, value: Any) -> Any:
    """A value as somebody means it who types it for something of type `kind`: "yes" is a truth, "a+b" a list.

    What cannot be one stays as it is, for others to refuse.
    """
    if value == ():
        value = ""  # nothing was typed
    if not isinstance(value, str | int | float | bool):
        return value
    text = scalar_text(value)
    if kind in (tuple, list):
        return items(text)
    if kind is bool:
        return truth(name, text)
    if kind is str:
        return text
    return number(value) if isinstance(value, str) else value


def setting(name: str, value: Any) -> Any:
    """The value of the setting `name` as its type; its range is checked by Settings."""
    return typed(_KINDS[name], name, value)
