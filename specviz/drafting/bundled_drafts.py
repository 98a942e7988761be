"""Files of drafts that the package brings, in assets/drafts/*/, each known by what it says of its target.

A file is made for one target. Its facts hold, as "target", what `target_facts` gives; names do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from specviz.core.errors import InputError
from specviz.core.paths import ASSETS
from specviz.drafting.token_table import target_facts
from specviz.models import LanguageModel

FOLDER = ASSETS / "drafts"
_SHAPE = ("fingerprint", "parameters", "layers", "width")


def shipped_file(target: LanguageModel, name: str, facts_of: Callable[[Path], Mapping[str, Any]]) -> Path | None:
    """The file of this name that was made for this very target; None where the package brings none.

    `facts_of` reads a file's facts; one for which it raises InputError is passed over.
    """
    for path in sorted(FOLDER.glob(f"*/{name}")):
        try:
            if is_made_for(facts_of(path), target):
                return path
        except InputError:  # a damaged file of ours is no draft for anybody
            continue
    return None


def is_made_for(facts: Mapping[str, Any], target: LanguageModel) -> bool:
    """Whether a file of these facts is for a target of the same tokens, layers, width and count of parameters."""
    ours, theirs = target_facts(target), target_of(facts)
    return bool(ours["fingerprint"]) and all(theirs.get(part) == ours[part] for part in _SHAPE)


def target_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a file's facts say of its target; nothing where they are silent."""
    made_for = facts.get("target")
    return made_for if isinstance(made_for, dict) else {}


def state_of(path: Path) -> tuple[int, int]:
    """What changes when a file is written anew. Raises OSError where there is none."""
    try:
        facts = path.stat()
    except ValueError as error:  # a name that no file can have
        raise OSError(str(error)) from error
    return facts.st_mtime_ns, facts.st_size
