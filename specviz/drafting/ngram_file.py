"""The file of an n-gram table, and which table a target gets: the one named, else the one bundled for it.

The file is a compressed .npz of numbers alone, with its facts as a JSON text. Columns of tokens, sorted by the oldest
first, are split into lower and upper bytes, which compress best. A file may come from anywhere: nothing in it is
trusted, and nothing in it is ever run. A table is made for one target and may serve another with the same tokens; one
counted with another tokenizer is refused.
"""

from __future__ import annotations

import json
import lzma
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy
from numpy.typing import NDArray

from specviz.core.errors import InputError, PairError
from specviz.drafting.bundled_drafts import bundled_file, state_of
from specviz.drafting.ngrams import BITS, MAX_DOUBT, MAX_ORDER, MAX_SUCCESSORS, Contexts, Integers, NgramTable
from specviz.drafting.target_facts import fingerprint_of, is_made_for, target_of
from specviz.models import LanguageModel

FORMAT = 2

Taken = TypeVar("Taken")

_MAX_BYTES = 1 << 28  # unpacked: a small file may swell to anything
_BROKEN = (
    ArithmeticError, AttributeError, EOFError, KeyError, MemoryError, NotImplementedError, RecursionError, RuntimeError,
    SyntaxError, TypeError, ValueError, lzma.LZMAError, struct.error, tokenize.TokenError, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip


def save_table(table: NgramTable, path: Path | str, facts: dict[str, Any]) -> None:
    """Write the table whole or not at all, with `facts`: anything that JSON holds."""
    arrays = {
        "format": numpy.array(FORMAT),
        "facts": numpy.frombuffer(json.dumps(facts, ensure_ascii=False, sort_keys=True).encode(), dtype=numpy.uint8),
    }
    for part in table.contexts:
        columns = {f"token{place}": column for place, column in enumerate(_columns(part), 1)}
        columns |= {"lengths": numpy.diff(part.starts), "following": part.tokens, "doubts": part.doubts}
        arrays |= {f"{part.size}.{name}": _packed(column) for name, column in columns.items()}
    if table.alone is not None:
        arrays["alone"] = _packed(table.alone.T)
    part = Path(path).with_suffix(".part")
    with open(part, "wb") as file:
        numpy.savez_compressed(file, **arrays)
    os.replace(part, path)


def load_table(path: Path | str) -> NgramTable:
    """Read a table. Raises InputError, in words, for a file that holds none."""
    return _read(path, lambda file: _table(file, path))


def load_facts(path: Path | str) -> dict[str, Any]:
    """What a table's file says of itself, without its numbers. Raises InputError as `load_table` does."""
    return _read(path, _facts)


def _read(path: Path | str, take: Callable[[Any], Taken]) -> Taken:
    try:
        with numpy.load(path, allow_pickle=False) as file:
            if sum(member.file_size for member in file.zip.infolist()) > _MAX_BYTES or int(file["format"]) != FORMAT:
                raise ValueError
            return take(file)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"The n-gram table '{path}' cannot be read; give the path of a file that is there.") from error
    except _BROKEN as error:
        raise InputError(f"'{path}' is no n-gram table; give the path of one that was written by specviz.") from error


def _facts(file: Any) -> dict[str, Any]:
    facts = json.loads(bytes(file["facts"]))
    if not isinstance(facts, dict):
        raise ValueError
    return facts


def _table(file: Any, path: Path | str) -> NgramTable:
    sizes = sorted(int(name.split(".")[0]) for name in file.files if name.endswith(".lengths"))
    if sizes != list(range(1, len(sizes) + 1)) or not 1 <= len(sizes) <= MAX_ORDER:
        raise ValueError
    parts = []
    for size in sizes:
        names = (*(f"token{place}" for place in range(1, size + 1)), "lengths", "following", "doubts")
        *tokens, lengths, following, doubts = (_unpacked(file[f"{size}.{name}"]) for name in names)
        if not _is_sound(tokens, lengths, following, doubts):
            raise InputError(f"The n-gram table '{path}' is broken; make it anew.")
        keys = sum(column << (BITS * place) for place, column in enumerate(reversed(tokens)))
        starts = numpy.concatenate([[0], lengths.cumsum()])
        part = Contexts(size, keys, starts, following, doubts)
        if (numpy.diff(part.keys) <= 0).any():
            raise InputError(f"The n-gram table '{path}' is broken; make it anew.")
        parts.append(part)
    alone = _unpacked(file["alone"], 2).T if "alone" in file.files else None
    return NgramTable(tuple(parts), alone, _facts(file))


def _is_sound(tokens: list[Integers], lengths: Integers, following: Integers, doubts: Integers) -> bool:
    return (
        len({len(column) for column in (*tokens, lengths)}) == 1
        and len(following) == len(doubts) == lengths.sum()
        and bool(((lengths > 0) & (lengths <= MAX_SUCCESSORS)).all() and (doubts <= MAX_DOUBT).all())
        and all(not len(column) or column.max() < 1 << BITS for column in (*tokens, following))
    )


def _columns(part: Contexts) -> list[Integers]:
    """The contexts' tokens, oldest first: `size` columns (rows,)."""
    return [part.keys >> (BITS * place) & (1 << BITS) - 1 for place in reversed(range(part.size))]


def _packed(column: Integers) -> NDArray[numpy.uint8]:
    """Small whole numbers of any shape -> (bytes of the largest, *shape): all lowest bytes, then all next ones."""
    largest = column.max(initial=0)
    width = 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 3
    return numpy.stack([(column >> (8 * place) & 0xFF).astype(numpy.uint8) for place in range(width)])


def _unpacked(planes: NDArray[numpy.uint8], dimensions: int = 1) -> Integers:
    if planes.dtype != numpy.uint8 or planes.ndim != 1 + dimensions or not 1 <= len(planes) <= 3:
        raise ValueError
    return sum(plane.astype(numpy.int64) << (8 * place) for place, plane in enumerate(planes))


def bundled_table(target: LanguageModel) -> Path | None:
    """The table that the package brings for this very target."""
    return bundled_file(target, "ngrams.npz", lambda path: _facts_at(path, _state(path)))


def table_for(target: LanguageModel, chosen: str = "") -> tuple[NgramTable | None, str | None]:
    """The table of the file `chosen`, else the bundled one, and what there is to say of it; None where there is none.

    Raises InputError for a file that holds no table and PairError for one that was counted with another tokenizer.
    """
    path = Path(os.path.expanduser(chosen)) if chosen else bundled_table(target)
    if path is None:
        return None, None
    try:
        table = _table_at(path, _state(path))
    except InputError:
        if chosen:
            raise
        return None, None
    made_for = target_of(table.facts)
    theirs, ours = made_for.get("fingerprint"), fingerprint_of(target)
    if (theirs and ours and theirs != ours) or table.largest_id >= target.vocabulary:
        raise PairError(
            f"The n-gram table '{path}' holds tokens that {target.name} does not have; "
            "use one that was counted with the target's own tokenizer."
        )
    note = f"a table of {table.rows:,} contexts"
    if theirs and not is_made_for(table.facts, target):
        note += f", made for {made_for.get('name', 'another target')}"
    return table, note


def _state(path: Path) -> tuple[int, int]:
    try:
        return state_of(path)
    except OSError as error:
        raise InputError(f"The n-gram table '{path}' cannot be read; give the path of a file that is there.") from error


@lru_cache(maxsize=64)
def _facts_at(path: Path, state: tuple[int, int]) -> dict[str, Any]:
    return load_facts(path)


@lru_cache(maxsize=4)
def _table_at(path: Path, state: tuple[int, int]) -> NgramTable:
    return load_table(path)
