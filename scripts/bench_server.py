"""The app as `python app.py` serves it, and races without it on the same weights, for `python -m specviz bench`.

Reads commands as JSON lines from stdin and answers each with a JSON line on stdout: `{"do": "headless", ...}` runs a
race in its own thread and returns its EngineSpeed, `{"do": "cpu"}` returns the CpuTimes so far, `{"do": "end"}` ends.
The first line on stdout gives the page's address. All other output goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

ENGINE = "engine"  # the name of the thread that a race runs in, here and in the app


def main() -> int:
    arguments = _parse()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    from app import QUIET

    os.environ.update(QUIET)
    from specviz.views.web.app import Options, build_app, launch_options

    app = build_app(Options(arguments.target, arguments.device, arguments.dtype))
    app.begin_loading()
    _, address, _ = app.blocks.launch(server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, **launch_options())
    model = app.store.begin(app.target).result()
    print(json.dumps({"address": address}), file=answers)
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "end":
            break
        answer = _cpu() if command["do"] == "cpu" else _headless(model, command)
        print(json.dumps(answer), file=answers)
    app.blocks.close(verbose=False)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("target", "device", "dtype"):
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args()


def _headless(model: Any, command: dict[str, Any]) -> dict[str, Any]:
    """The race that `/race` runs, read by nobody: its EngineSpeed, counted as the client counts it."""
    from specviz.experiments.engine_speed import SpeedCounter
    from specviz.races.request import make_request

    counter = SpeedCounter()
    request = make_request(command["prompt"], command["drafts"], model.source, command["settings"])

    def run() -> None:
        for event in request.events(lambda _: model):
            counter.add(event)

    thread = threading.Thread(target=run, name=ENGINE)
    thread.start()
    thread.join()
    return asdict(counter.speed())


def _cpu() -> dict[str, Any]:
    """CpuTimes of this process. Its engine is the thread that bears the name, and all threads of no Python code.

    The latter are the workers that the engine's matrix products run on.
    """
    from specviz.experiments.engine_speed import CpuTimes

    python = {thread.native_id: thread.name for thread in threading.enumerate()}
    engine = next((native for native, name in python.items() if name == ENGINE), None)
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():  # not Linux
        return asdict(CpuTimes(None))
    ids = [int(entry.name) for entry in tasks.iterdir()]
    own = sum(_task_seconds(each) for each in ids if each == engine or each not in python)
    return asdict(CpuTimes(engine, own, time.process_time(), time.monotonic()))


def _task_seconds(task: int) -> float:
    try:
        return int(Path(f"/proc/self/task/{task}/schedstat").read_text().split()[0]) / 1e9
    except OSError:  # it has just ended
        return 0.0


if __name__ == "__main__":
    sys.exit(main())
