"""Checkpoints of the Hugging Face hub, in the hub's own cache.

The repository is asked first for its commit and files; only the files that a causal language model needs are fetched.
Where the hub does not answer, or HF_HUB_OFFLINE is set, what its cache holds is used. Tokens are the hub client's
business: the one that `hf auth login` or HF_TOKEN gave it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specviz.core.errors import LoadError
from specviz.sources.checkpoint import Checkpoint, inspect
from specviz.sources.disk_cache import is_disk_full, require_space
from specviz.sources.progress import Progress, silent, size

_ANSWER_SECONDS = 10.0
# at the root of the repository; weights only under the names that transformers reads
_WANTED = re.compile(
    r"model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json|[\w-]+\.json|chat_template\.jinja"
    r"|tokenizer\.model|spiece\.model|merges\.txt|vocab\.txt|README\.md"
)
_WEIGHTS = {"model.safetensors", "model.safetensors.index.json"}
_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


class HubUnreachable(LoadError):
    """The hub does not answer and its cache on this machine lacks the model."""


@dataclass(frozen=True, slots=True)
class _Listing:
    """What the hub says of a repository: its commit, the wanted files and their bytes, the licence."""

    commit: str
    files: tuple[str, ...]
    bytes: int
    licence: str | None


def resolve_hub(text: str, progress: Progress = silent) -> Checkpoint:
    """The checkpoint of `ID[@revision]`."""
    name, _, wanted = text.partition("@")
    revision = wanted or None
    if not _ID.fullmatch(name):
        raise LoadError(f"'{name}' is not a hub id; write it as owner/name, such as Qwen/Qwen2.5-0.5B-Instruct.")
    progress(0.0, f"Asking the hub for {name}.")
    listing = _ask(name, revision)
    if listing is None:
        folder = _cached(name, revision)
        note = "The hub did not answer; this is the copy in its cache."
        return inspect(folder, name, f"hub:{text}", folder.name, None, note)
    folder = _download(name, revision, listing, progress)
    return inspect(folder, name, f"hub:{text}", listing.commit, listing.licence)


def _ask(name: str, revision: str | None) -> _Listing | None:
    """What the hub says of `name` now, or None where it does not answer."""
    from huggingface_hub import HfApi

    try:
        with _in_words(name, revision):
            info = HfApi().model_info(name, revision=revision, timeout=_ANSWER_SECONDS, files_metadata=True)
    except HubUnreachable:
        return None
    files = info.siblings or []
    _check_weights(name, {file.rfilename for file in files})
    wanted = [file for file in files if _WANTED.fullmatch(file.rfilename)]
    return _Listing(
        info.sha or "main",
        tuple(file.rfilename for file in wanted),
        sum(file.size or 0 for file in wanted),
        getattr(info.card_data, "license", None),
    )


def _check_weights(name: str, files: set[str]) -> None:
    """Refuse before the download what could not be loaded after it."""
    if files & _WEIGHTS:
        return
    if any(file.endswith(".gguf") for file in files):
        raise LoadError(f"{name} has GGUF files only; download one of them and give it as gguf:FILE.")
    if any(file.endswith((".bin", ".pt", ".pth", ".ckpt")) for file in files):
        raise LoadError(
            f"{name} has its weights in pickle files only, and those can run code when opened; "
            "choose a copy with safetensors."
        )
    raise LoadError(f"{name} has no weights in safetensors; choose another repository.")


def _cached(name: str, revision: str | None) -> Path:
    """The snapshot in the hub's cache. Raises HubUnreachable where there is no whole one."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(
            snapshot_download(name, revision=revision, local_files_only=True, allow_patterns=["*.safetensors"])
        )
    except LocalEntryNotFoundError as error:
        raise _unreachable(name) from error
    # other programs fetch a config alone
    if not any((folder / file).exists() for file in _WEIGHTS):
        raise _unreachable(name)
    return folder


def _download(name: str, revision: str | None, listing: _Listing, progress: Progress) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.constants import HF_HUB_CACHE

    sentence = f"Fetching {name}: {size(listing.bytes)} in all."
    progress(0.0, sentence)
    if not _have(name, listing):
        require_space(Path(HF_HUB_CACHE), listing.bytes, f"fetching {name}")
    with _in_words(name, revision):
        # by the name that was asked for, so that the cache can answer to it when the hub does not
        folder = snapshot_download(
            name,
            revision=revision,
            allow_patterns=list(listing.files),
            tqdm_class=_reporting_bar(progress, sentence, listing.bytes),
        )
    progress(1.0, f"{name} is here.")
    return Path(folder)


def _have(name: str, listing: _Listing) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return all(isinstance(try_to_load_from_cache(name, file, revision=listing.commit), str) for file in listing.files)


def _reporting_bar(progress: Progress, sentence: str, total: int) -> type:
    """A bar class for the hub's client that draws nothing and reports bytes to `progress`."""
    from tqdm import tqdm

    # one bar counts what came over the network, another what is on disk
    most = 0.0

    class ReportingBar(tqdm):
        def display(self, *args: Any, **kwargs: Any) -> None:
            return None

        def update(self, n: float | None = 1) -> bool | None:
            nonlocal most
            updated = super().update(n)
            if self.unit == "B" and total and self.n / total > most:
                most = min(self.n / total, 1.0)
                progress(most, sentence)
            return updated

    return ReportingBar


def _unreachable(name: str) -> HubUnreachable:
    return HubUnreachable(
        f"The hub does not answer and {name} is not in its cache on this machine; connect to the network, "
        "or use embedded, path:FOLDER or gguf:FILE."
    )


@contextmanager
def _in_words(name: str, revision: str | None) -> Iterator[None]:
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise LoadError(
            f"{name} is gated: accept its terms on the hub, then log in with 'hf auth login' or set HF_TOKEN."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise LoadError(f"{name} has no revision '{revision}'; check what follows the @.") from error
    except errors.RepositoryNotFoundError as error:
        raise LoadError(f"The hub has no model '{name}', or it is private; check the id, or set HF_TOKEN.") from error
    except errors.HFValidationError as error:
        raise LoadError(f"'{name}' is not a hub id; write it as owner/name.") from error
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        if status in (401, 403):
            raise LoadError(f"The hub refuses {name}; log in with 'hf auth login' or set a valid HF_TOKEN.") from error
        raise _unreachable(name) from error
    except (errors.HTTPError, errors.XetDownloadError, OSError) as error:
        if is_disk_full(error):
            raise LoadError(
                "The disk is full. Free some space, or set HF_HOME to a folder on a larger disk."
            ) from error
        raise _unreachable(name) from error
