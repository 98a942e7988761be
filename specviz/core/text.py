"""Token ids to text as it streams: whole characters only, and the pieces that a page shows.

Needs of a tokenizer only `decode`, `get_vocab` and `all_special_ids`; knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from os.path import commonprefix
from typing import Any
from weakref import WeakKeyDictionary

_REPLACEMENT = "\ufffd"
# A decode costs its length, so a long text is decoded from an anchor this many tokens back.
_WINDOW = 256


def decode_ids(tokenizer: Any, ids: Sequence[int]) -> str:
    """The text of `ids`, special tokens left out and nothing tidied up."""
    return tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)


class Detokenizer:
    """Emits, token by token, the text that cannot change any more; `tail` is what it still holds back.

    All emitted texts + `tail` equal the decoded whole. A character split over tokens comes whole, after its last.
    """

    def __init__(self, tokenizer: Any, silent: Iterable[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._silent = frozenset(silent)
        self._open = _open_ids(tokenizer)
        self._special = frozenset(tokenizer.all_special_ids)
        self._waits = False  # the last token's text depends on the next
        self._ids: list[int] = []
        self._anchor = 0  # the window begins here
        self._settled = ""  # decoded text of the window as emitted

    def fork(self) -> Detokenizer:
        """An independent copy, for drafts that may not be kept."""
        twin = Detokenizer(self._tokenizer, self._silent)
        twin._waits = self._waits
        twin._ids, twin._anchor, twin._settled = self._ids.copy(), self._anchor, self._settled
        return twin

    def push(self, token_id: int) -> str:
        """The text that this token adds."""
        if token_id in self._silent:
            return ""
        self._ids.append(token_id)
        if token_id not in self._special:  # which decode leaves out
            self._waits = token_id in self._open
        if self._waits:
            return ""
        whole = decode_ids(self._tokenizer, self._ids[self._anchor :])
        stable = whole.rstrip(_REPLACEMENT)
        if not stable.startswith(self._settled) or len(stable) <= len(self._settled):
            return ""
        added = stable[len(self._settled) :]
        self._settled = stable
        if stable == whole:
            self._move_anchor()
        return added

    @property
    def tail(self) -> str:
        """What is held back: the beginning of a character that never ended."""
        whole = decode_ids(self._tokenizer, self._ids[self._anchor :])
        return whole[len(commonprefix((whole, self._settled))) :]

    def _move_anchor(self) -> None:
        """Forget the first half of a window that has grown too long, where that leaves the rest as it is."""
        if len(self._ids) - self._anchor <= 2 * _WINDOW:
            return
        anchor = len(self._ids) - _WINDOW
        rest = decode_ids(self._tokenizer, self._ids[anchor:])
        if self._settled.endswith(rest):
            self._anchor, self._settled = anchor, rest


_open_tables: WeakKeyDictionary[Any, frozenset[int]] = WeakKeyDictionary()


def _open_ids(tokenizer: Any) -> frozenset[int]:
    """The ids whose text depends on the token after them, so that it cannot be shown before that one has come.

    `<0x00>` to `<0xFF>` spell what a SentencePiece tokenizer has no token for, and its decoder gives up a whole run of
    them if one turns out wrong. `hel@@` (CTRL, subword-nmt) loses its mark when `lo` joins it.
    """
    if tokenizer not in _open_tables:
        vocabulary = tokenizer.get_vocab()
        names = (f"<0x{byte:02X}>" for byte in range(256))
        bytes_ = (vocabulary[name] for name in names if name in vocabulary)
        joined = (number for name, number in vocabulary.items() if name.endswith("@@"))
        _open_tables[tokenizer] = frozenset((*bytes_, *joined))
    return _open_tables[tokenizer]


class Pieces:
    """The display form of each token alone: its text, its bytes as `<F0 9F>`, or a special token's name."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._names: dict[int, str] | None = None
        self._cache: dict[int, str] = {}

    def __getitem__(self, token_id: int) -> str:
        if token_id not in self._cache:
            self._cache[token_id] = self._make(token_id)
        return self._cache[token_id]

    def _make(self, token_id: int) -> str:
        name = self._name(token_id)
        if name is None:
            return f"<{token_id}>"
        text = self._tokenizer.decode([token_id], skip_special_tokens=False, clean_up_tokenization_spaces=False)
        if _REPLACEMENT in text and _REPLACEMENT not in name:
            return _bytes_piece(name)
        if name.startswith("\u2581") and not text.startswith(" "):
            text = " " + text  # decoders of the SentencePiece kind drop the space of a first token
        return text or name

    def _name(self, token_id: int) -> str | None:
        if self._names is None:
            self._names = {number: name for name, number in self._tokenizer.get_vocab().items()}
        return self._names.get(token_id)


def _bytes_piece(name: str) -> str:
    """`<F0 9F>` for a token that is no whole character: byte-level names map a character to a byte."""
    if name.startswith("<0x") and name.endswith(">"):
        return f"<{name[3:-1]}>"
    table = byte_table()
    if all(character in table for character in name):
        return "<" + " ".join(f"{table[character]:02X}" for character in name) + ">"
    return name


@cache
def byte_table() -> dict[str, int]:
    """The characters that byte-level BPE (Radford et al. 2019) writes for the 256 bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(256 + i): byte for i, byte in enumerate(others)})
    return table
