"""A draft with its options and the settings of its lane: one record, and its spelling for people and links.

    NAME[=SOURCE][:word=value[,word=value...]]

NAME ends at the first "=" or ":". A word that names a field of Settings is a setting of this lane alone; every other
word is an option of the strategy. The values after the last ":" say by themselves what they are, so that reading them
needs no registry and `DraftSpec.parse(spec.spell()) == spec`:

    true, false, 4, 0.5      a truth or a number, in its shortest form
    "a"+"b"  "a"+  (nothing) a list of two texts, of one, of none
    "a, b:c"                 a text as in JSON, where it would be misread without quotes
    anything else            a text

SOURCE is written the same way. Whether a strategy knows the options is for `specviz.drafting.registry.checked`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from specviz.core.errors import InputError
from specviz.core.settings import SETTING_NAMES, Settings
from specviz.core.spelling import scalar, scalar_text

Value = str | int | float | bool | tuple[str, ...]
Pairs = tuple[tuple[str, Value], ...]

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_LIST = rf"{_QUOTED}(?:\+{_QUOTED})*\+?"
_BARE = r'(?:[^",:][^,:]*)?'
_PAIR = rf"[A-Za-z_]\w*=(?:{_LIST}|{_BARE})"
_PAIRS = re.compile(rf"{_PAIR}(?:,{_PAIR})*", re.ASCII | re.DOTALL)
_NEXT_PAIR = re.compile(rf"([A-Za-z_]\w*)=({_LIST}|{_BARE})(?:,|\Z)", re.ASCII | re.DOTALL)
_ITEM = re.compile(_QUOTED, re.DOTALL)
_WHOLE_LIST = re.compile(_LIST, re.DOTALL)
_QUOTED_SOURCE = re.compile(rf"\s*({_QUOTED})\s*(?=:|\Z)", re.DOTALL)
_LIKE_OPTION = re.compile(r":\s*[A-Za-z_]\w*=", re.ASCII)


@dataclass(frozen=True, slots=True)
class DraftSpec:
    """A strategy by name, the source of its model (None: it takes none), its options, and settings of its lane alone.

    Options are kept in alphabetical order and settings in that of Settings, so that two specs that say the same are
    equal. Both may be given as mappings.
    """

    strategy: str
    source: str | None = None
    options: Pairs | Mapping[str, Any] = ()
    settings: Pairs | Mapping[str, Any] = ()

    def __post_init__(self) -> None:
        settings = _frozen(self.settings)
        unknown = next((name for name in settings if name not in SETTING_NAMES), None)
        if unknown is not None:
            raise InputError(f"There is no setting '{unknown}'; there are: {', '.join(SETTING_NAMES)}.", field="draft")
        object.__setattr__(self, "options", tuple(sorted(_frozen(self.options).items())))
        object.__setattr__(
            self, "settings", tuple((name, settings[name]) for name in SETTING_NAMES if name in settings)
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """The spec that a text spells. Raises InputError for a text that does not follow the grammar."""
        name = re.split("[=:]", text, maxsplit=1)[0]
        source, written = _split(text, text[len(name) :])
        if source is None and written is None and len(name) < len(text):
            raise _refused(text, f"what follows '{name}:' must read option=value[,option=value].", code="malformed")
        options: dict[str, Value] = {}
        settings: dict[str, Value] = {}
        for word, value in _pairs(text, written or ""):
            (settings if word in SETTING_NAMES else options)[word] = value
        return cls(name.strip(), source, options, settings)

    def spell(self) -> str:
        """The text that `parse` reads back. It is one line of printable characters."""
        source = "" if self.source is None else f"={_spell_source(self.source)}"
        pairs = ",".join(f"{word}={_spell_value(value)}" for word, value in (*self.options, *self.settings))
        return f"{self.strategy}{source}" + (f":{pairs}" if pairs else "")

    __str__ = spell

    @property
    def k(self) -> int | None:
        """The lane's own k, None where it takes the race's."""
        return dict(self.settings).get("k")

    def with_k(self, k: int) -> Self:
        return self.with_settings(k=k)

    @property
    def without_k(self) -> Self:
        """The draft itself: specs that differ in k alone have it in common."""
        return replace(self, settings=tuple(pair for pair in self.settings if pair[0] != "k"))

    def with_settings(self, **settings: Any) -> Self:
        return replace(self, settings={**dict(self.settings), **settings})

    def with_options(self, **options: Any) -> Self:
        return replace(self, options={**dict(self.options), **options})

    def settings_in(self, shared: Settings) -> Settings:
        """The race's settings with this lane's own in their place."""
        return replace(shared, **dict(self.settings))


def _frozen(pairs: Pairs | Mapping[str, Any]) -> dict[str, Value]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in dict(pairs).items()}


def _split(text: str, rest: str) -> tuple[str | None, str | None]:
    """(source, options as written), each None where there is none; `rest` is what follows the name."""
    if rest.startswith("="):
        quoted = _QUOTED_SOURCE.match(rest, 1)
        if quoted:
            source, rest = _unquote(text, quoted[1]), rest[quoted.end() :]
            return source, (rest[1:] if _PAIRS.fullmatch(rest, 1) else _no_options(text, rest))
    for colon in re.finditer(":", rest):
        if _PAIRS.fullmatch(rest, colon.end()):
            before = rest[: colon.start()]
            return (before[1:].strip() if before else None), rest[colon.end() :]
    return (rest[1:].strip() if rest.startswith("=") else None), None


def _no_options(text: str, rest: str) -> None:
    if rest:
        raise _refused(text, "what follows the source must read :option=value[,option=value].", code="malformed")


def _pairs(text: str, written: str) -> Iterator[tuple[str, Value]]:
    seen = set()
    for pair in _NEXT_PAIR.finditer(written):
        if pair[1] in seen:
            raise _refused(text, f"The option '{pair[1]}' is given twice; leave one out.", code="given-twice")
        seen.add(pair[1])
        yield pair[1], _value(text, pair[2])


def _value(text: str, written: str) -> Value:
    if not written:
        return ()
    if not _WHOLE_LIST.fullmatch(written):
        return scalar(written)
    found = tuple(_unquote(text, item) for item in _ITEM.findall(written))
    return found[0] if len(found) == 1 and not written.endswith("+") else found


def _unquote(text: str, quoted: str) -> str:
    try:
        return json.loads(quoted, strict=False)
    except ValueError as error:
        raise _refused(text, f"{quoted} is not a text as JSON writes it.", code="malformed") from error


def _refused(text: str, said: str, code: str) -> InputError:
    return InputError(said, context=f"In the draft '{text}': ", code=code, field="draft")


def _spell_source(source: str) -> str:
    plain = source == source.strip() and source.isprintable() and '"' not in source and not _LIKE_OPTION.search(source)
    return source if plain else _quote(source)


def _spell_value(value: Value) -> str:
    if isinstance(value, tuple):
        return "+".join(map(_quote, value)) + ("+" if len(value) == 1 else "")
    if not isinstance(value, str):
        return scalar_text(value)
    plain = re.fullmatch(r'[^",:]+', value) and value == value.strip() and value.isprintable()
    return value if plain and scalar(value) == value else _quote(value)


def _quote(text: str) -> str:
    """As JSON, with escapes where a character could not be printed."""
    return json.dumps(text, ensure_ascii=not text.isprintable())
