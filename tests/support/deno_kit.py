"""The race view's JavaScript modules in deno: what needs no page is tested without a browser."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from specviz.views.web.race_view.bundle import FOLDER


def deno() -> str:
    """The path of deno; skips the test where it is not installed."""
    found = shutil.which("deno", path=sysconfig.get_path("scripts")) or shutil.which("deno")
    return found or pytest.skip("deno is not installed: pip install -r requirements-dev.txt")


class Modules:
    """A deno process in which `M` holds what the race view's modules export."""

    def __init__(self) -> None:
        command = [deno(), "run", "--quiet", "--no-remote", "--no-npm", f"--allow-read={FOLDER}"]
        script = Path(__file__).with_name("evaluate.js")
        self._process = subprocess.Popen(
            [*command, str(script), str(FOLDER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def evaluate(self, code: str, argument: Any = None) -> Any:
        """The JSON value of an expression; a function is called with `argument`, a promise awaited."""
        self._process.stdin.write(json.dumps({"code": code, "argument": argument}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "deno ended; its error is above"
        reply = json.loads(line)
        assert "error" not in reply, reply["error"]
        return reply["value"]

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(10)
