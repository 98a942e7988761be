"""The app in a process of its own, and a client of it: what the page costs the engine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gradio_client import Client

from specviz.core.errors import SpecvizError
from specviz.experiments.engine_speed import CpuTimes, EngineSpeed, SpeedCounter, cores_outside_engine
from specviz.experiments.processes import ROOT
from specviz.traces import Event, event_from_json

SCRIPT = ROOT / "scripts" / "bench_server.py"
_CPU_EVERY_SECONDS = 1.0
_NEWS_EVERY_SECONDS = 0.25
_END_SECONDS = 20.0


class ServerFailed(SpecvizError):
    """The app did not start, or it died; its last words are on stderr."""


class Server:
    """`scripts/bench_server.py` as a child process. Close it."""

    def __init__(self, target: str, device: str, dtype: str) -> None:
        self.started = time.perf_counter()
        command = [sys.executable, str(SCRIPT), "--target", target, "--device", device, "--dtype", dtype]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
        )
        self.pid = self._process.pid
        self._address: str | None = None

    @property
    def address(self) -> str:
        """The page's URL. Waits until the page is up and the target loaded. Raises ServerFailed."""
        if self._address is None:
            self._address = self._answer()["address"]
        return self._address

    def headless(self, prompt: str, drafts: Sequence[str], settings: dict[str, Any]) -> EngineSpeed:
        """Run a race that nobody reads."""
        return EngineSpeed(**self._ask({"do": "headless", "prompt": prompt, "drafts": drafts, "settings": settings}))

    def cpu(self) -> CpuTimes:
        return CpuTimes(**self._ask({"do": "cpu"}))

    def close(self) -> None:
        """Ask the process to end, and kill it if it does not."""
        try:
            self._process.communicate(json.dumps({"do": "end"}) + "\n", timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        try:
            print(json.dumps(command), file=self._process.stdin, flush=True)
        except OSError as error:
            raise ServerFailed("The app ended during its measurement; read its last words above.") from error
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            raise ServerFailed("The app cannot be measured: its process ended; read its last words above.")
        return json.loads(line)


@dataclass(frozen=True, slots=True)
class ConsumedRace:
    """A race as its client saw it: seconds until the first round and until the end, and the server's other work."""

    speed: EngineSpeed
    first_seconds: float | None
    seconds: float
    cores_outside_engine: float | None


class Consumer:
    """A client of `/race`, as a user's program would be."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._client = Client(server.address, verbose=False)

    def race(self, prompt: str, drafts: Sequence[str], settings: dict[str, Any]) -> ConsumedRace:
        start = time.monotonic()
        first: float | None = None
        counter, samples, sampled = SpeedCounter(), [], 0.0
        for event in self._events(prompt, drafts, settings):
            counter.add(event)
            now = time.monotonic()
            if counter.rounds and first is None:
                first = now - start
            if counter.rounds and now - sampled > _CPU_EVERY_SECONDS:
                samples.append(self._server.cpu())
                sampled = time.monotonic()
        return ConsumedRace(counter.speed(), first, time.monotonic() - start, cores_outside_engine(samples))

    def _events(self, prompt: str, drafts: Sequence[str], settings: dict[str, Any]) -> Iterator[Event]:
        """Polls four times per second: iterating over a job polls every millisecond, which slows the engine."""
        job = self._client.submit(prompt=prompt, drafts=list(drafts), **settings, api_name="/race")
        read, over = 0, False
        while not over:
            time.sleep(_NEWS_EVERY_SECONDS)
            over = job.done()
            messages = job.outputs()[read:]
            read += len(messages)
            yield from (event_from_json(event) for message in messages for event in message)
        job.result()
