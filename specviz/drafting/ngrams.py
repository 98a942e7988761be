"""Tables of n-grams: what followed the last few tokens most often, the longest context that is known answering first.

Counted from text, best from text that the target itself wrote. Each context keeps a few successors, best first, with
how doubtful each is. Without weights between contexts, as in stupid back-off (Brants et al. 2007). Knows no file.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy
from numpy.typing import ArrayLike, NDArray

MAX_ORDER = 3  # tokens of context
MAX_SUCCESSORS = 16  # of a context
MAX_DOUBT = 15  # quarters of a bit: a share below a thirteenth
BITS = 21  # of a key for each token: three fill a signed 64-bit integer

Integers = NDArray[numpy.int64]


@dataclass(frozen=True, eq=False)
class Contexts:
    """Contexts of `size` tokens: `keys` (rows,), sorted, hold a context's tokens in 21 bits each, the latest lowest.

    Row i is followed by `tokens[starts[i]:starts[i + 1]]`, best first, and `doubts` says the same of each: how many
    quarters of a bit its share of the context's occurrences, count / (total + 1), is worth. `starts` (rows + 1,).
    """

    size: int
    keys: Integers
    starts: Integers
    tokens: Integers
    doubts: Integers
    _quick: array[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_quick", array("q", self.keys.astype(numpy.int64).tobytes()))

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, key: int) -> tuple[list[int], list[int]] | None:
        """(tokens, doubts) after the context of this key."""
        row = bisect_left(self._quick, key)  # several times quicker than numpy for one key
        if row == len(self._quick) or self._quick[row] != key:
            return None
        span = slice(int(self.starts[row]), int(self.starts[row + 1]))
        return self.tokens[span].tolist(), self.doubts[span].tolist()

    def only(self, kept: NDArray[numpy.bool_]) -> Contexts:
        """The rows marked in `kept` (rows,)."""
        counts = numpy.diff(self.starts)
        entries = numpy.repeat(kept, counts)
        starts = numpy.concatenate([[0], counts[kept].cumsum()])
        return Contexts(self.size, self.keys[kept], starts, self.tokens[entries], self.doubts[entries])


@dataclass(frozen=True, eq=False)
class NgramTable:
    """Contexts of 1, 2, ... tokens; `alone` (vocabulary, r): the target's own best r successors of each token alone.

    `facts` says what was counted: see `target_facts` for its entry "target".
    """

    contexts: tuple[Contexts, ...]
    alone: Integers | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        """Entries: successors of contexts."""
        return sum(len(part.tokens) for part in self.contexts)

    @property
    def rows(self) -> int:
        """Contexts of any size."""
        return sum(map(len, self.contexts))

    @property
    def largest_id(self) -> int:
        """The largest token that the table can propose, -1 where it is empty."""
        parts = [part.tokens for part in self.contexts]
        parts += [] if self.alone is None else [self.alone.ravel()]
        return max((int(tokens.max()) for tokens in parts if len(tokens)), default=-1)

    def known(self, text: Sequence[int]) -> Iterator[tuple[int, list[int], list[int]]]:
        """(size, tokens, doubts) of each known context at the end of `text`, the longest first."""
        key, keys = 0, []
        for place, token in enumerate(reversed(text[max(0, len(text) - len(self.contexts)) :])):
            key |= token << (BITS * place)
            keys.append(key)
        for part in reversed(self.contexts[: len(keys)]):
            found = part.find(keys[part.size - 1])
            if found is not None:
                yield part.size, *found

    def after(self, text: Sequence[int]) -> Sequence[int]:
        """What followed the end of `text`, best first: after the longest known context, then after shorter ones."""
        return tuple(dict.fromkeys(token for _, tokens, _ in self.known(text) for token in tokens))

    def alone_after(self, token: int) -> Sequence[int]:
        """The target's best successors of `token` given that token alone, where the table holds them."""
        return () if self.alone is None or token >= len(self.alone) else self.alone[token].tolist()

    def with_alone(self, alone: ArrayLike) -> NgramTable:
        """The table with the target's successors (vocabulary, r) of each token alone, best first."""
        found = numpy.asarray(alone).astype(numpy.int64)
        if found.ndim != 2 or (found < 0).any():
            raise ValueError(f"successors of single tokens are a table (vocabulary, r) of ids, not {found.shape}")
        return replace(self, alone=found)


def count_ngrams(
    texts: Iterable[Sequence[int]],
    order: int = MAX_ORDER,
    least: int = 1,
    entries: int | None = None,
    successors: int = 4,
) -> NgramTable:
    """Count the n-grams of texts and prune them.

    Contexts of 1 to `order` tokens keep their `successors` most frequent ones that were seen `least` times. Dropped
    are contexts that a shorter one answers alike, and of the rest the rarest until `entries` successors are left.
    Several million tokens take seconds and some 100 bytes each.
    """
    if not (1 <= order <= MAX_ORDER and 1 <= successors <= MAX_SUCCESSORS):
        raise ValueError(f"order is 1 to {MAX_ORDER} and successors 1 to {MAX_SUCCESSORS}")
    arrays = [numpy.asarray(text, dtype=numpy.int64) for text in texts]
    parts, seen, shorter = [], [], None
    for size in range(1, order + 1):
        part, totals = _count(arrays, size, least, successors)
        news = numpy.ones(len(part), dtype=bool) if shorter is None else _says_more(part, shorter)
        parts.append(part.only(news))
        seen.append(totals[news])
        shorter = part
    return NgramTable(tuple(parts if entries is None else _most_seen(parts, seen, entries)))


def _mask(size: int) -> int:
    return (1 << (BITS * size)) - 1


def _count(texts: Sequence[Integers], size: int, least: int, successors: int) -> tuple[Contexts, Integers]:
    """Every context of `size` tokens with its best successors, and how often each context was seen (rows,)."""
    keys, context, tokens = _pairs(texts, size)
    pairs, counts = numpy.unique(context << BITS | tokens, return_counts=True)
    context, tokens = pairs >> BITS, pairs & _mask(1)
    totals = numpy.bincount(context, weights=counts, minlength=len(keys)).astype(numpy.int64)
    best_first = numpy.lexsort((tokens, -counts, context))
    context, tokens, counts = context[best_first], tokens[best_first], counts[best_first]
    place = numpy.arange(len(context)) - numpy.searchsorted(context, numpy.arange(len(keys)))[context]
    kept = (place < successors) & (counts >= least)
    context, tokens, counts = context[kept], tokens[kept], counts[kept]
    lengths = numpy.bincount(context, minlength=len(keys))
    doubts = numpy.rint(-4 * numpy.log2(counts / (totals[context] + 1))).clip(0, MAX_DOUBT).astype(numpy.int64)
    starts = numpy.concatenate([[0], lengths.cumsum()])
    answered = lengths > 0
    return Contexts(size, keys, starts, tokens, doubts).only(answered), totals[answered]


def _pairs(texts: Sequence[Integers], size: int) -> tuple[Integers, Integers, Integers]:
    """The distinct contexts' keys (rows,), and for each place in the texts its context's row and what followed."""
    keys, tokens = [numpy.empty(0, dtype=numpy.int64)], [numpy.empty(0, dtype=numpy.int64)]
    for text in texts:
        count = len(text) - size
        if count > 0:
            places = (text[size - 1 - back : size - 1 - back + count] << (BITS * back) for back in range(size))
            keys.append(sum(places))
            tokens.append(text[size:])
    distinct, context = numpy.unique(numpy.concatenate(keys), return_inverse=True)
    return distinct, context, numpy.concatenate(tokens)


def _says_more(part: Contexts, shorter: Contexts) -> NDArray[numpy.bool_]:
    """(rows,): whether a context's list is another than the beginning of the list of the context one token shorter.

    That one has seen all that its longer ones have seen, so only a rare one of them, cut by `least`, may lack it.
    """
    rows = numpy.searchsorted(shorter.keys, part.keys & _mask(shorter.size))
    lengths, theirs = numpy.diff(part.starts), numpy.diff(shorter.starts)[rows]
    owner = numpy.repeat(numpy.arange(len(part)), lengths)
    place = numpy.arange(len(owner)) - part.starts[owner]
    answer = shorter.tokens[(shorter.starts[rows[owner]] + place).clip(max=max(0, len(shorter.tokens) - 1))]
    same = (place < theirs[owner]) & (answer == part.tokens)
    return numpy.bincount(owner, weights=~same, minlength=len(part)) > 0


def _most_seen(parts: Sequence[Contexts], seen: Sequence[Integers], entries: int) -> list[Contexts]:
    """The contexts seen most often; a shorter one, which answers for longer ones, goes before these."""
    counts = numpy.concatenate(seen)
    order = numpy.argsort(-counts, kind="stable")
    lengths = numpy.concatenate([numpy.diff(part.starts) for part in parts])
    kept = numpy.zeros(len(counts), dtype=bool)
    kept[order[lengths[order].cumsum() <= entries]] = True
    cuts = numpy.split(kept, numpy.cumsum([len(part) for part in parts])[:-1])
    return [part.only(cut) for part, cut in zip(parts, cuts, strict=True)]
