"""Find the token that ends a run: end of sequence, a stop string, the length limit, or the end of the context.

Kept tokens are checked in order, so a block is cut at the first token that ends the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specviz.core.errors import InputError
from specviz.core.settings import Settings
from specviz.core.text import Detokenizer
from specviz.traces import Reason


class EndRule:
    """Watches the output of one run. `room`: tokens that fit after the prompt in the model's context."""

    def __init__(self, settings: Settings, eos_ids: Sequence[int], tokenizer: Any, room: int) -> None:
        if settings.stop and tokenizer is None:
            raise InputError("Stop strings need a tokenizer, and this model has none; leave the stop strings out.")
        self.reason: Reason | None = None
        self.stop_at: int | None = None  # where in the text the stop string begins
        self._stops = settings.stop
        self._eos = frozenset() if settings.ignore_eos else frozenset(eos_ids)
        self._limit = min(settings.max_new_tokens, room)
        self._limit_reason = Reason.LENGTH if settings.max_new_tokens <= room else Reason.CONTEXT
        self._detokenizer = Detokenizer(tokenizer, self._eos) if self._stops else None
        self._text = ""
        self._count = 0

    @property
    def silent_ids(self) -> frozenset[int]:
        """Ids whose text is '' because they end a run."""
        return self._eos

    def cut(self, ids: Sequence[int]) -> int:
        """How many of these next tokens belong to the output; `reason` is set if one of them ends it."""
        for index, token in enumerate(ids):
            self._count += 1
            self.reason = self._reason(token)
            if self.reason is not None:
                return index + 1
        return len(ids)

    def _reason(self, token: int) -> Reason | None:
        if token in self._eos:
            return Reason.EOS
        if self._stops and self._completes_stop(token):
            return Reason.STOP
        return self._limit_reason if self._count >= self._limit else None

    def _completes_stop(self, token: int) -> bool:
        before = len(self._text)
        self._text += self._detokenizer.push(token)
        found = [self._text.find(stop, max(0, before - len(stop) + 1)) for stop in self._stops]
        found = [index for index in found if index >= 0]
        self.stop_at = min(found, default=None)
        return bool(found)
