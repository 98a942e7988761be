"""The inverse of the wire's Encoder: the reference that the browser's decoder is held to."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from specviz.traces import DraftToken, Event, Round, TargetToken, event_from_json
from specviz.traces.codec import is_default
from specviz.views.web.race_view.wire import KINDS, VERDICTS


class Decoder:
    """Turns the batches of one run back into events."""

    def __init__(self) -> None:
        self._pieces: dict[int, str] = {}
        self._lanes: list[str] = []

    def events(self, batch: dict[str, Any]) -> list[Event]:
        """The events of a batch, in order. Raises ValueError where a message is not known."""
        table = batch.get("t", [])
        self._pieces.update(zip(table[::2], table[1::2], strict=True))
        return [event_from_json(self._event(message)) for message in batch["e"] if message[0] != "s"]

    def _event(self, message: list[Any]) -> dict[str, Any]:
        if message[0] == "r":
            return {"event": "RoundDone", "lane": self._lanes[message[1]], "round": self._record(Round, message[2:])}
        if message[0] != "j":
            raise ValueError(f"The message {message[0]!r} is not known.")
        if message[1]["event"] == "RaceStarted":
            self._lanes = [lane["name"] for lane in message[1]["header"]["lanes"]]
        return message[1]

    def _record(self, cls: type, values: list[Any]) -> dict[str, Any]:
        pairs = zip(fields(cls), values, strict=False)
        return {spec.name: self._field(spec.name, value) for spec, value in pairs if not is_default(spec, value)}

    def _field(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if name.endswith("_top"):
            pairs = zip(value[::2], value[1::2], strict=True)
            return [[self._token(token, plain=False), permille / 1000] for token, permille in pairs]
        inner = {"drafts": lambda: [self._record(DraftToken, draft) for draft in value]}
        inner["target"] = lambda: self._record(TargetToken, value)
        inner["token"] = lambda: self._token(value, plain=True)
        inner["verdict"] = lambda: VERDICTS[value]
        inner["kind"] = lambda: KINDS[value]
        return inner[name]() if name in inner else value

    def _token(self, code: int | list[Any], plain: bool) -> list[Any]:
        if isinstance(code, int):
            piece = self._pieces[code]
            return [code, piece if plain else None, piece]
        return code if len(code) == 3 else [*code, self._pieces[code[0]]]
