"""The files of drafts that come with the package, in assets/drafts/*/.

A file is made for one target. Its facts hold, under "target", what `target_facts` gives; names do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from specviz.core.errors import InputError
from specviz.core.paths import ASSETS
from specviz.drafting.target_facts import is_made_for
from specviz.models import LanguageModel

FOLDER = ASSETS / "drafts"


def bundled_file(target: LanguageModel, name: str, facts_of: Callable[[Path], Mapping[str, Any]]) -> Path | None:
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


def state_of(path: Path) -> tuple[int, int]:
    """What changes when a file is written anew. Raises OSError where there is none."""
    try:
        facts = path.stat()
    except ValueError as error:  # a name that no file can have
        raise OSError(str(error)) from error
    return facts.st_mtime_ns, facts.st_size
