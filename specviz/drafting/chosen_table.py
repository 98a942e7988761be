"""The table of n-grams that a target is given: the one chosen, else the one that the package brings for it.

A table is made for one target and may serve another that has the same tokens; one counted with another tokenizer is
refused.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from specviz.core.errors import InputError, PairError
from specviz.drafting.bundled_drafts import is_made_for, shipped_file, state_of, target_of
from specviz.drafting.ngram_file import load_facts, load_table
from specviz.drafting.ngrams import NgramTable
from specviz.drafting.token_table import fingerprint_of
from specviz.models import LanguageModel


def shipped_table(target: LanguageModel) -> Path | None:
    """The table that the package brings for this very target."""
    return shipped_file(target, "ngrams.npz", lambda path: _facts(path, _state(path)))


def table_for(target: LanguageModel, chosen: str = "") -> tuple[NgramTable | None, str | None]:
    """The table of the file `chosen`, else the shipped one, and what there is to say of it; None where there is none.

    Raises InputError for a file that holds no table and PairError for one that was counted with another tokenizer.
    """
    path = Path(os.path.expanduser(chosen)) if chosen else shipped_table(target)
    if path is None:
        return None, None
    try:
        table = _read(path, _state(path))
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
def _facts(path: Path, state: tuple[int, int]) -> dict[str, Any]:
    return load_facts(path)


@lru_cache(maxsize=4)
def _read(path: Path, state: tuple[int, int]) -> NgramTable:
    return load_table(path)
