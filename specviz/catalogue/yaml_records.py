"""YAML files as frozen records: keys, types and required fields are checked while the file is read.

Every mistake is an InputError that says where it is. A field whose class has a `parse` is read from a text.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import yaml

from specviz.core.errors import InputError, SpecvizError

_LARGE = 2**1000  # integers from here on are no floats
_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def read_yaml(path: Path, what: str) -> Any:
    """The file's value. Raises InputError, which calls the file `what`, where it cannot be read as YAML."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{what} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{what} is not text in UTF-8; save it in that encoding.") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that does not exist
        raise InputError(f"{what} is not YAML: {str(error).splitlines()[0]}.") from error


def read_records(cls: type, path: Path, what: str) -> list[Any]:
    """The records of `cls` that the file lists, each with a name of its own. Raises InputError."""
    values = read_yaml(path, f"The {what}s in {path}")
    expect(isinstance(values, list) and values, f"{path.name} must be a list of at least one {what}")
    records = [record(cls, value, f"{path.name}[{index}]") for index, value in enumerate(values)]
    expect(len({one.name for one in records}) == len(records), f"{path.name} has two {what}s of the same name")
    return records


def record(cls: type, value: Any, where: str, **given: Any) -> Any:
    """`value` as a record of `cls`; `where` is its place in the file, `given` holds fields that are not in it."""
    return _record(cls, value, where, f"{where}.", given)


def document(cls: type, value: Any, file: str, **given: Any) -> Any:
    """The whole value of `file` as a record of `cls`."""
    return _record(cls, value, file, f"{file}: ", given)


def expect(condition: bool, message: str) -> None:
    """Raises InputError with `message`, a sentence without its full stop, unless `condition` holds."""
    if not condition:
        raise InputError(f"{message}.")


def _record(cls: type, value: Any, where: str, prefix: str, given: Mapping[str, Any]) -> Any:
    expect(isinstance(value, dict), f"{where} must be a mapping of keys to values")
    hints = {name: hint for name, hint in typing.get_type_hints(cls).items() if name not in given}
    for key in value:
        expect(key in hints, f"{where} has an unknown key '{key}'; the known ones are {', '.join(hints)}")
    for spec in fields(cls):
        needed = spec.name in hints and spec.default is MISSING and spec.default_factory is MISSING
        expect(not needed or spec.name in value, f"{where} lacks the key '{spec.name}'")
    decoded = {key: _value(hints[key], item, f"{prefix}{key}") for key, item in value.items()}
    return _in_place(where, lambda: cls(**decoded, **given))


def _value(hint: Any, value: Any, where: str) -> Any:
    """`value` as the type that `hint` names."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        return None if value is None else _value(inner[0], value, where)
    if origin is tuple:
        expect(isinstance(value, list), f"{where} must be a list")
        return tuple(_value(inner[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if origin is Mapping:
        expect(isinstance(value, dict), f"{where} must be a mapping of names to values")
        return types.MappingProxyType({name: _item(inner[1], name, item, where) for name, item in value.items()})
    if hasattr(hint, "parse"):
        return _in_place(where, lambda: hint.parse(_scalar(str, value, where)))
    return record(hint, value, where) if is_dataclass(hint) else _scalar(hint, value, where)


def _scalar(kind: type, value: Any, where: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < _LARGE else math.inf
    expect(not isinstance(value, float) or math.isfinite(value), f"{where} must be a number that is finite")
    right = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    expect(right, f"{where} must be {_WORDS[kind]}, not {value!r}")
    return value


def _item(hint: Any, name: Any, value: Any, where: str) -> Any:
    expect(isinstance(name, str), f"{where} has a key that is not a text: {name!r}")
    return value if hint is Any else record(hint, value, f"{where}.{name}", name=name)


def _in_place(where: str, make: typing.Callable[[], Any]) -> Any:
    """What `make` makes. Its errors say where in the file they belong."""
    try:
        return make()
    except SpecvizError as error:
        raise InputError(f"{where}: {error}") from error
