"""Where Chromium is: found, or installed, for the browser tests.

The order: $SPECVIZ_CHROMIUM, a Chromium or Chrome of the system, playwright's own. `--install` installs one where none
is found: from Debian's packages as root, else by playwright.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ADVICE = (
    "No Chromium for the browser tests. Install it (on Debian: sudo apt-get install chromium), "
    "or set SPECVIZ_CHROMIUM to the path of a Chromium or Chrome."
)


def find_chromium() -> str | None:
    """The path of an executable Chromium, or None."""
    chosen = os.environ.get("SPECVIZ_CHROMIUM")
    if chosen:
        return chosen if os.access(chosen, os.X_OK) else None
    found = (shutil.which(name) for name in NAMES)
    return next((path for path in found if path and _works(path)), None) or _playwrights_own()


def install_chromium() -> str | None:
    """Install Chromium by the first way that works; the path, or None where none did."""
    for command in _ways():
        print(f"Installing Chromium: {' '.join(command)}", file=sys.stderr)
        # on Ubuntu the package is a shim for a snap that may not start, so what was installed must be found
        if subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0 and (path := find_chromium()):
            return path
    return None


def _ways() -> list[list[str]]:
    playwright = [sys.executable, "-m", "playwright", "install"]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        debian = ["sh", "-c", "apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium"]
        return [debian, [*playwright, "--with-deps", "chromium"]]
    return [[*playwright, "chromium"]]


def _works(path: str) -> bool:
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _playwrights_own() -> str | None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


def main() -> int:
    parser = argparse.ArgumentParser(description="Find Chromium for the browser tests.")
    parser.add_argument("--install", action="store_true", help="install it where none is found")
    install = parser.parse_args().install
    path = find_chromium()
    if path is None and install and "SPECVIZ_CHROMIUM" not in os.environ:
        path = install_chromium()
    print(path or ADVICE, file=sys.stdout if path else sys.stderr)
    return 0 if path else 1


if __name__ == "__main__":
    sys.exit(main())
