"""A folder of the user's, in the format of transformers, used where it lies."""

from __future__ import annotations

import os
from pathlib import Path

from specviz.core.errors import LoadError
from specviz.sources.checkpoint import Checkpoint, inspect


def resolve_path(text: str) -> Checkpoint:
    """The checkpoint in a local folder; nothing is copied or written."""
    folder = Path(os.path.expanduser(text))
    if os.path.isfile(folder):  # unlike Path's own, false for a name that no file can have
        kind = "as gguf:FILE" if folder.suffix == ".gguf" else "by the folder that holds it"
        raise LoadError(f"{folder} is a file; give it {kind}.")
    if not os.path.isdir(folder):
        raise LoadError(f"There is no folder {folder}; check the name after path:.")
    return inspect(folder, folder.resolve().name, f"path:{text}")
