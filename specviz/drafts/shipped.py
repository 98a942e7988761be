"""Tables of n-grams that the package brings, and the table that a target is given.

They lie in assets/drafts/*/ngrams.npz; each says in its facts what target it was made for. A table is made for one
target and may serve another that has the same tokens; one counted with another tokenizer is refused.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from specviz.drafts.ngram_file import load_facts, load_table
from specviz.drafts.ngrams import NgramTable
from specviz.drafts.token_table import fingerprint_of, target_facts
from specviz.errors import InputError, PairError
from specviz.models import LanguageModel

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "drafts"


def shipped_table(target: LanguageModel) -> Path | None:
    """The table that was made for this very target: the same tokens, layers, width and count of parameters."""
    shape = _shape(target_facts(target))
    if not shape["fingerprint"]:
        return None
    for path in sorted(FOLDER.glob("*/ngrams.npz")):
        try:
            made_for = _target_of(_facts(path, _state(path)))
        except InputError:  # a damaged file of ours is no table for anybody
            continue
        if _shape(made_for) == shape:
            return path
    return None


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
    made_for = _target_of(table.facts)
    theirs, ours = made_for.get("fingerprint"), fingerprint_of(target)
    if (theirs and ours and theirs != ours) or table.largest_id >= target.vocabulary:
        raise PairError(
            f"The n-gram table '{path}' holds tokens that {target.name} does not have; "
            "use one that was counted with the target's own tokenizer."
        )
    note = f"a table of {table.rows:,} contexts"
    if theirs and _shape(made_for) != _shape(target_facts(target)):
        note += f", made for {made_for.get('name', 'another target')}"
    return table, note


def state_of(path: Path) -> tuple[int, int]:
    """What changes when a file is written anew. Raises OSError where there is none."""
    try:
        facts = path.stat()
    except ValueError as error:  # a name that no file can have
        raise OSError(str(error)) from error
    return facts.st_mtime_ns, facts.st_size


def _shape(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: facts.get(name) for name in ("fingerprint", "parameters", "layers", "width")}


def _target_of(facts: dict[str, Any]) -> dict[str, Any]:
    made_for = facts.get("target")
    return made_for if isinstance(made_for, dict) else {}


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
