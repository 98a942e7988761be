"""Tables of n-grams: what followed the last few tokens most often, the longest context that is known answering.

Counted from text, best from text that the target itself wrote, and kept as sorted arrays in a compressed .npz file,
which holds numbers alone. Without weights, as in stupid back-off (Brants et al. 2007): only the favourite is wanted.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
from numpy.typing import NDArray

from specviz.errors import InputError

MAX_ORDER = 3  # tokens of context
_BITS = 21  # of a key for each token: three fill a signed 64-bit integer
_FORMAT = 1

Integers = NDArray[numpy.int64]


@dataclass(frozen=True, slots=True)
class NgramTable:
    """Contexts of n = 1, 2, ... tokens: `keys[n - 1]` (rows,), sorted, and a token each: `following[n - 1]` (rows,).

    A key holds a context's tokens in 21 bits each, the latest lowest.
    """

    keys: tuple[Integers, ...]
    following: tuple[Integers, ...]

    def __len__(self) -> int:
        return sum(map(len, self.keys))

    @property
    def largest_id(self) -> int:
        """The largest token that the table can propose, -1 where it is empty."""
        return max((int(tokens.max()) for tokens in self.following if len(tokens)), default=-1)

    def after(self, text: Sequence[int]) -> int | None:
        """What followed the end of `text`; None where not even its last token is known."""
        key = 0
        for place, token in enumerate(reversed(text[-len(self.keys) :])):
            key |= token << (_BITS * place)
        for size in range(min(len(self.keys), len(text)), 0, -1):
            known, wanted = self.keys[size - 1], key & _mask(size)
            row = int(known.searchsorted(wanted))
            if row < len(known) and known[row] == wanted:
                return int(self.following[size - 1][row])
        return None


def count_ngrams(
    texts: Iterable[Sequence[int]], order: int = MAX_ORDER, least: int = 1, entries: int | None = None
) -> NgramTable:
    """Count the n-grams of texts and prune them.

    Contexts of 1 to `order` tokens; dropped are those whose favourite was seen fewer than `least` times, those that a
    shorter context answers alike, and the rarest beyond `entries`.
    """
    texts = [numpy.asarray(text, dtype=numpy.int64) for text in texts]
    table, seen = NgramTable((), ()), []
    for size in range(1, order + 1):
        keys, tokens, counts = _favourites(texts, size)
        news = (counts >= least) & (_answers(table, keys) != tokens)
        table = NgramTable((*table.keys, keys[news]), (*table.following, tokens[news]))
        seen.append(counts[news])
    return table if entries is None or len(table) <= entries else _most_seen(table, seen, entries)


def save_table(table: NgramTable, path: Path) -> None:
    """Write the table; sorted keys are kept as differences, which compress well."""
    arrays = {"format": numpy.array(_FORMAT)}
    for size, (keys, tokens) in enumerate(zip(table.keys, table.following, strict=True), 1):
        arrays[f"keys{size}"] = numpy.diff(keys, prepend=0)
        arrays[f"following{size}"] = tokens.astype(numpy.int32)
    with open(path, "wb") as file:
        numpy.savez_compressed(file, **arrays)


def load_table(path: Path) -> NgramTable:
    """Read a table. Raises InputError, in words, for a file that holds none."""
    try:
        with numpy.load(path, allow_pickle=False) as file:
            if int(file["format"]) != _FORMAT:
                raise ValueError
            sizes = range(1, 1 + sum(name.startswith("keys") for name in file.files))
            keys = tuple(file[f"keys{size}"].astype(numpy.int64).cumsum() for size in sizes)
            following = tuple(file[f"following{size}"].astype(numpy.int64) for size in sizes)
    except OSError as error:
        raise InputError(f"The n-gram table '{path}' cannot be read; give the path of a file that is there.") from error
    except (ValueError, TypeError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        raise InputError(f"'{path}' is no n-gram table; give the path of one that was written by specviz.") from error
    table = NgramTable(keys, following)
    if not _is_sound(table):
        raise InputError(f"The n-gram table '{path}' is broken; make it anew.")
    return table


def _mask(size: int) -> int:
    return (1 << (_BITS * size)) - 1


def _favourites(texts: Sequence[Integers], size: int) -> tuple[Integers, Integers, Integers]:
    """(keys, favourites, counts) of every context of `size` tokens, sorted by key; of equals the lowest token."""
    keys, tokens = [], []
    for text in texts:
        count = len(text) - size
        if count > 0:
            places = (text[size - 1 - back : size - 1 - back + count] << (_BITS * back) for back in range(size))
            keys.append(sum(places))
            tokens.append(text[size:])
    if not keys:
        return (numpy.empty(0, dtype=numpy.int64),) * 3
    pairs, counts = numpy.unique(
        numpy.stack([numpy.concatenate(keys), numpy.concatenate(tokens)]), axis=1, return_counts=True
    )
    best_first = numpy.lexsort((pairs[1], -counts, pairs[0]))
    pairs, counts = pairs[:, best_first], counts[best_first]
    first = numpy.ones(len(counts), dtype=bool)
    first[1:] = pairs[0, 1:] != pairs[0, :-1]
    return pairs[0, first], pairs[1, first], counts[first]


def _answers(table: NgramTable, keys: Integers) -> Integers:
    """What the table, of shorter contexts, says after the contexts `keys`: tokens, -1 where it knows nothing."""
    answers = numpy.full(len(keys), -1, dtype=numpy.int64)
    for size, (known, tokens) in enumerate(zip(table.keys, table.following, strict=True), 1):
        if len(known):
            wanted = keys & _mask(size)
            rows = known.searchsorted(wanted).clip(max=len(known) - 1)
            answers = numpy.where(known[rows] == wanted, tokens[rows], answers)
    return answers


def _most_seen(table: NgramTable, seen: Sequence[Integers], entries: int) -> NgramTable:
    """The `entries` contexts seen most often; a shorter one, which has answered for longer ones, goes before these."""
    counts = numpy.concatenate(seen)
    kept = numpy.zeros(len(counts), dtype=bool)
    kept[numpy.argsort(-counts, kind="stable")[:entries]] = True
    parts = numpy.split(kept, numpy.cumsum([len(keys) for keys in table.keys])[:-1])
    chosen = [
        tuple(part[keep] for part, keep in zip(rows, parts, strict=True)) for rows in (table.keys, table.following)
    ]
    return NgramTable(*chosen)


def _is_sound(table: NgramTable) -> bool:
    if not 1 <= len(table.keys) <= MAX_ORDER:
        return False
    return all(
        keys.ndim == tokens.ndim == 1
        and len(keys) == len(tokens)
        and bool((numpy.diff(keys) > 0).all())
        and (not len(keys) or (0 <= keys[0] and keys[-1] <= _mask(size) and 0 <= tokens.min()))
        for size, (keys, tokens) in enumerate(zip(table.keys, table.following, strict=True), 1)
    )
