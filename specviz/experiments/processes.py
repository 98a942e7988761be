"""The memory of a process and its children, as /proc tells it; None on other systems. Standard library only."""

from __future__ import annotations

import os
import threading
from pathlib import Path

_EVERY_SECONDS = 0.05
_PROC = Path("/proc")

# the folder from which `python -m specviz` runs
ROOT = Path(__file__).resolve().parents[2]


class PeakMemory:
    """The largest resident memory of a process tree, sampled while the context is open.

    `bytes` is never below the root's own high-water mark, which the system keeps.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)
        self.bytes: int | None = None

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            now = max(tree_bytes(self._pid) or 0, _field(self._pid, "VmHWM") or 0)
            if now:
                self.bytes = max(now, self.bytes or 0)
            if self._over.wait(_EVERY_SECONDS):
                return


def tree_bytes(pid: int) -> int | None:
    """Resident bytes of a process and its descendants; shared pages count in each."""
    sizes = [size for each in (pid, *_below(pid)) if (size := _field(each, "VmRSS")) is not None]
    return sum(sizes) if sizes else None


def _below(pid: int) -> tuple[int, ...]:
    try:
        tasks = os.listdir(_PROC / str(pid) / "task")
        children = [int(c) for t in tasks for c in (_PROC / f"{pid}/task/{t}/children").read_text().split()]
    except OSError:  # the process is gone, or there is no /proc
        return ()
    return (*children, *(grandchild for child in children for grandchild in _below(child)))


def _field(pid: int, name: str) -> int | None:
    """A size in bytes from /proc/PID/status."""
    try:
        for line in (_PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
