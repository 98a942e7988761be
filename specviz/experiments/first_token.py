"""A process for the part `startup`: it loads the models, decodes and says when.

`python -m specviz.experiments.first_token` prints `first` once the target has decoded a token, and `done` after a short
race of all lanes.
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
    from specviz.experiments.bench_plan import QUICK, BenchPlan
    from specviz.experiments.harness import Harness
    from specviz.races.lanes import read_drafts
    from specviz.races.prompts import make_prompt
    from specviz.races.request import RaceRequest

    plan = BenchPlan(arguments.target, arguments.draft, arguments.device, arguments.dtype, arguments.k, QUICK)
    harness = Harness(plan, lambda words: None)
    ids = make_prompt(harness.target, _PROMPT).ids
    settings = Settings(k=plan.k, max_new_tokens=_TOKENS, ignore_eos=True)
    next(decode(harness.target, make_draft("none", harness.target), ids, settings))
    print(FIRST, flush=True)
    drafts = ["prompt-lookup"] + ([f"draft-model={plan.draft}"] if plan.draft else [])
    target = harness.target
    request = RaceRequest(_PROMPT, read_drafts(drafts), target.source, settings)
    for _ in request.events(lambda source: target if source == target.source else harness.draft):
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
