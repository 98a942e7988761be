"""A Hugging Face Space's settings: the front matter of README.md, written from spaces.yaml and checked against it.

The Hub reads only that front matter; spaces.yaml is ours. `models` and `preload_from_hub` are derived from the
catalogue, so they cannot drift from it. Knows nothing of the command line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from specviz.catalogue.catalog import Catalog
from specviz.core.errors import InputError

# hf.co/docs/hub/spaces-config-reference
KEYS = frozenset(
    "title emoji colorFrom colorTo sdk python_version sdk_version app_file app_port app_build_command base_path"
    " suggested_hardware suggested_storage fullWidth header short_description models datasets tags thumbnail pinned"
    " license hf_oauth hf_oauth_scopes hf_oauth_expiration_minutes hf_oauth_authorized_org disable_embedding"
    " startup_duration_timeout custom_headers preload_from_hub".split()
)
_DERIVED = frozenset({"models", "preload_from_hub"})
_REQUIRED = ("title", "emoji", "colorFrom", "colorTo", "sdk", "sdk_version", "python_version", "app_file", "license")
_COLOURS = frozenset("red yellow green blue indigo purple pink gray".split())
_SHORT = 60
_FRONT = re.compile(r"\A---\n(.*?)\n---\n+", re.DOTALL)


def front_matter(catalog: Catalog) -> dict[str, Any]:
    """The front matter that spaces.yaml asks for. Raises InputError for a key or a value that the Hub would refuse."""
    space = dict(catalog.space)
    _check_space(space)
    models = [model.hub_id for model in catalog.models.values() if model.hub_id]
    profile = catalog.hardware.get(space.get("suggested_hardware", ""))
    preload = [catalog.model(name).hub_id for name in profile.preload] if profile else []
    derived = {"models": list(dict.fromkeys(models)), "preload_from_hub": preload}
    return {**space, **{key: value for key, value in derived.items() if value}}


def sync(catalog: Catalog, root: Path) -> bool:
    """Write the front matter into the README of `root`; whether that changed it."""
    path = root / "README.md"
    old = _read(path)
    new = _block(catalog) + _FRONT.sub("", old, count=1).lstrip("\n")
    if new != old:
        path.write_text(new, encoding="utf-8")
    return new != old


def check(catalog: Catalog, root: Path) -> tuple[str, ...]:
    """What is wrong with the Space's settings in `root`, a sentence each; nothing where all agrees."""
    problems = []
    block = _FRONT.match(_read(root / "README.md"))
    if block is None or _yaml(block[1]) != front_matter(catalog):
        problems.append("README.md's front matter is not that of spaces.yaml; run 'python -m specviz space sync'.")
    pinned = pinned_version(_read(root / "requirements.txt"), "gradio")
    wanted = catalog.space.get("sdk_version")
    if pinned != wanted:
        problems.append(f"spaces.yaml has sdk_version {wanted}, but requirements.txt pins gradio to {pinned}.")
    app = catalog.space.get("app_file", "")
    if not (root / app).is_file():
        problems.append(f"spaces.yaml has app_file {app}, which is not there.")
    return tuple(problems)


def pinned_version(requirements: str, package: str) -> str | None:
    """The version to which a requirements text pins `package` with ==, if it does."""
    found = re.search(rf"^{re.escape(package)}==([^\s;#]+)", requirements, re.MULTILINE | re.IGNORECASE)
    return found[1] if found else None


def _check_space(space: dict[str, Any]) -> None:
    for key in space:
        if key in _DERIVED:
            raise InputError(f"spaces.yaml: space.{key} is derived from models and hardware; remove it.")
        if key not in KEYS:
            raise InputError(
                f"spaces.yaml: space.{key} is not a setting of a Space; see the Hub's configuration reference."
            )
    for key in _REQUIRED:
        if not isinstance(space.get(key), str):
            raise InputError(
                f"spaces.yaml: space.{key} must be there and be a text, in quotes where it looks like a number."
            )
    for key in ("colorFrom", "colorTo"):
        if space[key] not in _COLOURS:
            raise InputError(f"spaces.yaml: space.{key} must be one of {', '.join(sorted(_COLOURS))}.")
    if len(space.get("short_description", "")) > _SHORT:
        raise InputError(f"spaces.yaml: space.short_description must have at most {_SHORT} characters.")


def _block(catalog: Catalog) -> str:
    text = yaml.safe_dump(front_matter(catalog), sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{text}---\n\n"


def _yaml(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
