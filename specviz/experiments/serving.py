"""The app in a process of its own, and a client of it: what the page costs the engine that it shows."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from gradio_client import Client

from specviz.core.errors import SpecvizError
from specviz.experiments.engine_speed import EngineSpeed
from specviz.experiments.processes import ROOT
from specviz.traces import Event, event_from_json

SCRIPT = ROOT / "scripts" / "bench_server.py"
_CPU_EVERY_SECONDS = 1.0
_NEWS_EVERY_SECONDS = 0.25
_END_SECONDS = 20.0


class ServerFailed(SpecvizError):
    """The app did not start or died; what it said stands above, on stderr."""


class Server:
    """`scripts/bench_server.py`, started and spoken to; `address` is where its page is. Close it."""

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
        """Waits until the page is up and the target loaded. Raises ServerFailed."""
        if self._address is None:
            self._address = self._answer()["address"]
        return self._address

    def headless(self, prompt: str, drafts: list[str], settings: dict[str, Any]) -> dict[str, Any]:
        return self._ask({"do": "headless", "prompt": prompt, "drafts": drafts, "settings": settings})

    def cpu(self) -> dict[str, Any]:
        return self._ask({"do": "cpu"})

    def close(self) -> None:
        """Ask it to end, and end it where it does not."""
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
            raise ServerFailed("The app ended before its measurement was over.") from error
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            raise ServerFailed("The app could not be measured: its process ended; its last words stand above.")
        return json.loads(line)


class Consumer:
    """A client of `/race`, as a program of a user's would be."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._client = Client(server.address, verbose=False)

    def race(self, prompt: str, drafts: list[str], settings: dict[str, Any]) -> dict[str, Any]:
        """The numbers of a race as its events give them, when the first round came, and the server's other work."""
        start = time.monotonic()
        first: float | None = None
        speed, looks, looked = EngineSpeed(), [], 0.0
        for event in self._events(prompt, drafts, settings):
            speed.add(event)
            now = time.monotonic()
            if speed.rounds and first is None:
                first = now - start
            if speed.rounds and now - looked > _CPU_EVERY_SECONDS:
                looks.append(self._server.cpu())
                looked = time.monotonic()
        return {
            **speed.numbers(),
            "first_seconds": first,
            "seconds": time.monotonic() - start,
            "outside": outside_engine(looks),
        }

    def _events(self, prompt: str, drafts: list[str], settings: dict[str, Any]) -> Iterator[Event]:
        """Looks for news four times a second; iterating over a job looks each millisecond, and slows the engine."""
        job = self._client.submit(prompt=prompt, drafts=drafts, **settings, api_name="/race")
        read, over = 0, False
        while not over:
            time.sleep(_NEWS_EVERY_SECONDS)
            over = job.done()
            messages = job.outputs()[read:]
            read += len(messages)
            yield from (event_from_json(event) for message in messages for event in message)
        job.result()


def outside_engine(looks: list[dict[str, Any]]) -> float | None:
    """Cores that a process used for other things than its engine, between the first and the last look at a race.

    None where there were fewer than two looks at the same engine, or the system does not tell.
    """
    engine = next((look["thread"] for look in looks if look["thread"] is not None), None)
    during = [look for look in looks if engine is not None and look["thread"] == engine]
    if len(during) < 2:
        return None
    first, last = during[0], during[-1]
    spent = (last["process"] - first["process"]) - (last["engine"] - first["engine"])
    return spent / (last["clock"] - first["clock"])
