"""Write the Space's settings from spaces.yaml into the README, or check that they agree.

spaces.yaml is the single source: `sync` writes the README's front matter from it, `check` says what differs.
"""

from __future__ import annotations

import argparse
import sys

from specviz.catalogue.catalog import load_catalog
from specviz.catalogue.front_matter import check, sync
from specviz.core.paths import PROJECT


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("sync",), default="sync", help="write the front matter")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where something differs")


def run(arguments: argparse.Namespace) -> int:
    catalog = load_catalog()
    if not arguments.check:
        print("README.md is written anew." if sync(catalog, PROJECT) else "README.md agrees with spaces.yaml.")
        return 0
    problems = check(catalog, PROJECT)
    print("\n".join(problems) or "README.md, requirements.txt and spaces.yaml agree.", file=sys.stderr)
    return 1 if problems else 0
