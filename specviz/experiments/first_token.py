"""A process that loads what is to be measured and decodes; the bench starts it.

`python -m specviz.experiments.first_token` prints `first` as soon as the target has decoded a token, and `done` after a
short race of every lane asked for.
"""

from __future__ import annotations

import argparse
import sys

FIRST, DONE = "first", "done"
_PROMPT = "Name three colours."
_TOKENS = 32


def main() -> int:
    arguments = _parse()
    from specviz.core.errors import SpecvizError

    try:
        _decode(arguments)
    except SpecvizError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _decode(arguments: argparse.Namespace) -> None:
    from specviz.core.settings import Settings
    from specviz.decoding.engine import decode
    from specviz.drafting import make_draft
    from specviz.experiments.bench_context import Bed, Plan
    from specviz.experiments.effort import QUICK
    from specviz.races.lanes import read_drafts
    from specviz.races.prompts import make_prompt
    from specviz.races.request import RaceRequest

    plan = Plan(arguments.target, arguments.draft, arguments.device, arguments.dtype, arguments.k, QUICK)
    bed = Bed(plan, lambda words: None)
    ids = make_prompt(bed.target, _PROMPT).ids
    settings = Settings(k=plan.k, max_new_tokens=_TOKENS, ignore_eos=True)
    next(decode(bed.target, make_draft("none", bed.target), ids, settings))
    print(FIRST, flush=True)
    drafts = ["prompt-lookup"] + ([f"draft-model={plan.draft}"] if plan.draft else [])
    request = RaceRequest(_PROMPT, read_drafts(drafts), bed.target.source, settings)
    for _ in request.events(lambda source: bed.target if source == bed.target.source else bed.draft):
        pass
    print(DONE, flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("target", "device", "dtype"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--draft")
    parser.add_argument("-k", type=int, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
