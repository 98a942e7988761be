"""Encodes events as compact batches for the browser.

A batch is `{"t": [id, piece, ...], "e": [message, ...]}`. `t` adds to the run's token table, each id once. A message is
a short array: a round, the commonest, is `["r", lane, *fields]` in the order of the record's fields, with trailing
defaults cut; any other event is `["j", event_to_json(event)]`; the report is `["s", report]`.

A token is its id where the table holds its piece and its text is that piece, `[id, text]` where only the text differs,
`[id, text, piece]` otherwise. Alternatives are `[token, permille, ...]`: the `*_top` lists are for the eye, and only
they lose digits beyond the sixth.

wire.js, beside this file, decodes; a test holds the two together. Knows nothing of Gradio or of models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from specviz.traces import (
    Alternative,
    DraftToken,
    Event,
    Kind,
    RaceStarted,
    Round,
    RoundDone,
    TargetToken,
    Token,
    Verdict,
    event_to_json,
)
from specviz.traces.codec import is_default

VERDICTS = tuple(verdict.value for verdict in Verdict)
KINDS = tuple(kind.value for kind in Kind)
_SURROGATE = re.compile("[\ud800-\udfff]")


def dumps(batch: dict[str, Any]) -> str:
    """The batch as one JSON text that any UTF-8 channel carries."""
    text = json.dumps(batch, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone surrogate cannot be UTF-8; escaped, it passes.
    return json.dumps(batch, separators=(",", ":")) if _SURROGATE.search(text) else text


class Encoder:
    """Turns the events of one run into batches; remembers which pieces the browser already has."""

    def __init__(self) -> None:
        self._pieces: dict[int, str] = {}
        self._lanes: dict[str, int] = {}
        self._table: list[int | str] = []

    def batch(self, events: Iterable[Event]) -> dict[str, Any]:
        """The batch that carries `events`, with the table entries that they need and the browser lacks."""
        messages = [self._message(event) for event in events]
        table, self._table = self._table, []
        return {"t": table, "e": messages} if table else {"e": messages}

    def _message(self, event: Event) -> list[Any]:
        if isinstance(event, RoundDone) and event.lane in self._lanes:
            return ["r", self._lanes[event.lane], *self._record(event.round)]
        if isinstance(event, RaceStarted):
            self._lanes = {lane.name: index for index, lane in enumerate(event.header.lanes)}
        return ["j", event_to_json(event)]

    def _record(self, record: Round | DraftToken | TargetToken) -> list[Any]:
        specs = fields(record)
        values = [getattr(record, spec.name) for spec in specs]
        while values and is_default(specs[len(values) - 1], values[-1]):
            values.pop()
        return [self._field(spec.name, value) for spec, value in zip(specs, values, strict=False)]

    def _field(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if name.endswith("_top"):
            return self._alternatives(value)
        if name == "token":
            return self._token(value)
        if name == "drafts":
            return [self._record(draft) for draft in value]
        if name == "target":
            return self._record(value)
        if isinstance(value, Verdict):
            return VERDICTS.index(value)
        if isinstance(value, Kind):
            return KINDS.index(value)
        return _short(name, value)

    def _token(self, token: Token) -> int | list[Any]:
        if not self._knows(token):
            return [token.id, token.text, token.piece]
        return token.id if token.text == token.piece else [token.id, token.text]

    def _alternatives(self, top: tuple[Alternative, ...]) -> list[Any]:
        flat: list[Any] = []
        for token, probability in top:
            plain = token.text is None and self._knows(token)
            flat += [token.id if plain else [token.id, token.text, token.piece], round(probability * 1000)]
        return flat

    def _knows(self, token: Token) -> bool:
        """Whether the browser's table gives this token's piece, adding it there at first sight."""
        if token.id is None or token.piece is None:
            return False
        if token.id not in self._pieces:
            self._pieces[token.id] = token.piece
            self._table += [token.id, token.piece]
        return self._pieces[token.id] == token.piece


def _short(name: str, value: Any) -> Any:
    """A number in no more digits than it needs: microseconds for seconds, six digits for the rest."""
    if not isinstance(value, float):
        return value
    short = round(value, 6) if name.endswith("_seconds") else float(f"{value:.6g}")
    return int(short) if short.is_integer() and abs(short) < 1e6 else short
