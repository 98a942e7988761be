"""The folder in which specviz keeps what it fetched and converted, and the one way to put something there.

A folder is built aside under a lock and renamed when it is whole, so that a half-written one is never taken and two
processes that want the same one do the work once. Knows nothing of models.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from specviz.core.errors import LoadError
from specviz.sources.progress import Progress, silent, size


def cache_root() -> Path:
    """$SPECVIZ_CACHE, else the user's cache folder of this platform."""
    if chosen := os.environ.get("SPECVIZ_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "specviz" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "specviz"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specviz"


def build_folder(final: Path, build: Callable[[Path], None], progress: Progress = silent) -> Path:
    """`final`, made by `build(empty folder)` where it is not there yet.

    Raises LoadError where the disk is full or the folder cannot be written; nothing is left behind then.
    """
    if final.is_dir():
        return final
    with locked(final, progress):
        if final.is_dir():
            return final
        # a fixed name, so that what a killed process left is swept by the next
        aside = final.with_name(f".{final.name}.partial")
        shutil.rmtree(aside, ignore_errors=True)
        try:
            with disk_errors(final):
                aside.mkdir(parents=True)
                build(aside)
                os.replace(aside, final)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return final


@contextmanager
def locked(path: Path, progress: Progress = silent) -> Iterator[None]:
    """Hold the lock of `path` among processes; it falls when its process ends, however it ends."""
    from filelock import FileLock, Timeout

    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_name(f".{path.name}.lock"))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            progress(0.0, f"Waiting for another process that prepares {path.name}.")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Says in words what a full or write-protected disk did."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise LoadError(_full(path)) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise LoadError(
                f"The cache folder {path.parent} cannot be written ({error.strerror}); "
                "set SPECVIZ_CACHE to a folder that can."
            ) from error
        raise


def is_disk_full(error: BaseException) -> bool:
    """Whether the disk, or the user's share of it, was full; safetensors says so in its text only."""
    full = (errno.ENOSPC, errno.EDQUOT)
    return getattr(error, "errno", None) in full or any(f"os error {code}" in str(error) for code in full)


def require_space(path: Path, count: int, what: str) -> None:
    """Raise LoadError unless the disk of `path` has `count` bytes free for `what`."""
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    if free < count:
        raise LoadError(
            f"The disk is too full: {what} needs {size(count)} and {existing} has {size(free)} free. "
            "Free some space, or set SPECVIZ_CACHE to a folder on a larger disk."
        )


def _full(path: Path) -> str:
    return f"The disk is full ({path.parent}). Free some space, or set SPECVIZ_CACHE to a folder on a larger disk."
