"""A text in the tokens of one model, told again in the tokens of another, as it grows.

Text goes from one tokenizer to the other; a special token only where both have one of that name, or else it is left
out. What is made of it is for a draft to read, so a text that tokenizers tell each other imperfectly costs acceptance,
never exactness.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specviz.core.text import decode_ids

REPLACEMENT = "\ufffd"
_LONGEST_CHARACTER = 8  # tokens; four bytes, and some slack
_OPEN = 512  # tokens that are told anew in every round; beyond, the older half is settled
_CONTEXT = 32  # characters shown before a text, so that it is split as it would be there


def encode(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False).input_ids) if text else []


def continuation(tokenizer: Any, before: str, text: str) -> list[int]:
    """The ids of `text` where it follows `before`; where the two would melt into one token, `text` on its own.

    Tokenizers of the SentencePiece kind put a space before a text, so even then something stands before it.
    """
    for shown in (before[-_CONTEXT:], "\n"):
        head, whole = encode(tokenizer, shown), encode(tokenizer, shown + text)
        if head and whole[: len(head)] == head:
            return whole[len(head) :]
    return encode(tokenizer, text)


class Retokenised:
    """The text so far: `push` takes ids of the target, `ids` are the draft's for it.

    `specials` maps each special id of the target to the draft's id of that name, or to None. `start` are the ids with
    which the draft begins every text.
    """

    def __init__(self, target: Any, draft: Any, specials: dict[int, int | None], start: Sequence[int]) -> None:
        self._target, self._draft, self._specials = target, draft, specials
        self._settled = list(start)  # ids that will not change any more
        self._before = ""  # the text that they end with
        self._open: list[int] = []  # the target's ids since
        self.ids: list[int] = list(start)
        self.text = ""  # of the open ids, whole characters only
        self.held: list[int] = []  # the target's last ids, which begin a character

    @property
    def tail(self) -> str:
        """The end of the text, to be split with what follows it."""
        return self._before + self.text

    def push(self, kept: Sequence[int]) -> None:
        """Take in what is new to the text."""
        for token in kept:
            if token in self._specials:
                self._tell()
                self._settle(self._specials[token])
            else:
                self._open.append(token)
        self._tell()
        if len(self._open) > _OPEN:
            self._shorten()

    def _tell(self) -> None:
        self.text, self.held = _whole_characters(self._target, self._open)
        self.ids = [*self._settled, *self._tokens(self.text)]

    def _tokens(self, text: str) -> list[int]:
        return continuation(self._draft, self._before, text) if self._before else encode(self._draft, text)

    def _settle(self, mark: int | None) -> None:
        """A special token: what stood before it is told, and nothing melts with what follows."""
        begins_alike = mark is not None and self.ids == [mark]  # both put the same mark before a text
        self._settled = self.ids if mark is None or begins_alike else [*self.ids, mark]
        self._open, self._before, self.ids = [], "", self._settled

    def _shorten(self) -> None:
        """Settle the older half, where telling the halves apart gives the same ids."""
        half = len(self._open) // 2
        text, held = _whole_characters(self._target, self._open[:half])
        if held or not self.text.startswith(text):
            return
        first = self._tokens(text)
        if first + continuation(self._draft, text, self.text[len(text) :]) == self._tokens(self.text):
            self._settled, self._before = [*self._settled, *first], text[-_CONTEXT:]
            self._open = self._open[half:]
            self.text = self.text[len(text) :]


def _whole_characters(tokenizer: Any, ids: Sequence[int]) -> tuple[str, list[int]]:
    """The text of `ids` without an unfinished last character, and the ids that begin that one."""
    for count in range(min(len(ids), _LONGEST_CHARACTER) + 1):
        kept = len(ids) - count
        text = decode_ids(tokenizer, ids[:kept])
        if not text.endswith(REPLACEMENT):
            return text, list(ids[kept:])
    return decode_ids(tokenizer, ids).rstrip(REPLACEMENT), []
