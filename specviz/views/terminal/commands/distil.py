"""Make a draft from a target alone: the target writes text, a draft learns from it and is raced on held-out prompts.

No data set is needed: an instruct model writes prompts and answers them, a base model continues from its first token.
The folder receives the draft, its card (card.md and card.json) and the text. To stop, press Ctrl-C; to resume, run the
same command again.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import MISSING, Field
from pathlib import Path
from typing import Any

from specviz.core.spelling import number
from specviz.distil.kinds import KINDS
from specviz.distil.plan import Flag, Plan, flags
from specviz.sources import EMBEDDED


def configure(parser: argparse.ArgumentParser) -> None:
    kinds = "\n".join(f"  {kind.name:<14} {kind.help}" for kind in KINDS)
    parser.description = f"{__doc__}\nKinds of draft:\n{kinds}\n"
    for each, flag in flags():
        parser.add_argument(flag.name, dest=each.name, metavar=flag.metavar, **_argument(each, flag))


def _argument(each: Field, flag: Flag) -> dict[str, Any]:
    default = EMBEDDED if each.name == "source" else each.default
    usual = "" if default in (None, MISSING) else f" (default {default})"
    kind = number if flag.bounds else Path if flag.metavar == "DIR" else str
    given = {"required": True} if default is MISSING else {"default": default}
    return {"type": kind, "help": f"{flag.help}{usual}", **given}


def run(arguments: argparse.Namespace) -> int:
    # imported here so that --help loads no torch
    from specviz.distil.card import MARKDOWN
    from specviz.distil.pipeline import run_distil
    from specviz.sources import TerminalBar
    from specviz.views.terminal.escaping import one_line

    plan = Plan(**{each.name: getattr(arguments, each.name) for each, _ in flags()})
    bar = TerminalBar(sys.stderr)
    try:
        run_distil(plan, bar)
    finally:
        bar.close()
    print(one_line(f"{plan.out / MARKDOWN} says what the draft is worth:"), file=sys.stderr)
    print((plan.out / MARKDOWN).read_text(encoding="utf-8"), end="")
    return 0
