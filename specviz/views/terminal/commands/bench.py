"""Measure this machine: decoding against other engines, target passes, the page, start-up and memory.

Parts: generate (the standard lane against transformers' generate), assisted (drafting lanes against transformers'),
verify (the verify curve), roofline (a pass against reading its weights), page (the engine with the page against
headless), startup (process start to first token, memory), and with --peers other libraries that are installed.
What is compared is timed in turn; results are medians with quartiles. Let nothing else run meanwhile.

--only drafts, on its own, compares drafts on twelve fixed prompts; every draft races against standard decoding. Write a
draft as for the command race; without a k of its own it runs at every k of -k:

  --only drafts --draft prompt-lookup --draft early-exit:layers=6 -k 2,4,8 --out FILE.jsonl
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specviz.core.errors import InputError
from specviz.core.spelling import number
from specviz.views.terminal.escaping import one_line

if TYPE_CHECKING:
    from specviz.experiments.bench_plan import BenchPlan
    from specviz.experiments.benchmark import BenchResult

_COMPARISON = ("drafts",)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="measure this part; repeatable")
    parser.add_argument("--target", default="embedded", metavar="SOURCE", help="the target (default embedded)")
    words = "a draft model for the parts that take one; with --only drafts, a draft to compare, repeatable"
    parser.add_argument("--draft", action="append", default=[], metavar="SOURCE", help=words)
    words = "tokens drafted per round (default 5); with --only drafts, also several, as in 2,4,8"
    parser.add_argument("-k", default="5", metavar="N", help=words)
    parser.add_argument("--device", default="auto", help="auto, cuda, mps or cpu (default auto)")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16 (default auto)")
    parser.add_argument("--peers", action="store_true", help="compare with economize and flashspec too, if installed")
    words = "the time that it may take, roughly (default 12; with --only drafts, no limit)"
    parser.add_argument("--minutes", type=number, metavar="N", help=words)
    parser.add_argument("--quick", action="store_true", help="measure little, only to see that every part works")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print one JSON object with every sample, nothing else")
    shown.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    comparison = parser.add_argument_group("with --only drafts")
    comparison.add_argument("--tokens", type=number, metavar="N", help="the longest reply, in tokens (default 128)")
    comparison.add_argument("--repeats", type=number, metavar="N", help="races of each prompt (default 3)")
    comparison.add_argument(
        "--out", type=Path, metavar="FILE", help="log each race in this file, and continue where the file ends"
    )


def run(arguments: argparse.Namespace) -> int:
    # imported here so that --help loads no torch
    from transformers.utils import logging

    from specviz.experiments.benchmark import chosen_parts, run_bench
    from specviz.sources import TerminalBar

    parts = chosen_parts(arguments.only, arguments.peers)
    plan = _comparison_plan(arguments) if parts == _COMPARISON else _plan(arguments)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    bar = TerminalBar(sys.stderr)
    try:
        result = run_bench(plan, parts, _tell, bar)
    finally:
        bar.close()
    _show(result, arguments)
    return 0


def _plan(arguments: argparse.Namespace) -> BenchPlan:
    """What the usual parts measure. Raises InputError for arguments that only a comparison of drafts takes."""
    from specviz.experiments.bench_plan import BenchPlan, effort_of

    if len(arguments.draft) > 1:
        raise InputError("These parts take one draft model; --only drafts compares several drafts.")
    given = next((name for name in ("tokens", "repeats", "out") if getattr(arguments, name) is not None), None)
    if given is not None:
        raise InputError(f"--{given} is for --only drafts; leave it out.")
    effort = effort_of(arguments.minutes, arguments.quick)
    draft = arguments.draft[0] if arguments.draft else None
    return BenchPlan(arguments.target, draft, arguments.device, arguments.dtype, number(arguments.k), effort)


def _comparison_plan(arguments: argparse.Namespace) -> BenchPlan:
    """What a comparison of drafts measures. Raises SpecvizError for drafts and numbers that cannot be used."""
    from specviz.core.settings import Settings
    from specviz.experiments.bench_plan import BenchPlan, effort_of
    from specviz.experiments.comparison import DraftComparison, compared_drafts

    effort = effort_of(arguments.minutes, arguments.quick)
    drafts = compared_drafts(arguments.draft, arguments.k.split(","))
    settings = Settings(max_new_tokens=_or(arguments.tokens, effort.tokens), telemetry=False)
    seconds = math.inf if arguments.minutes is None else effort.seconds
    comparison = DraftComparison(drafts, settings, _or(arguments.repeats, effort.repeats), seconds, arguments.out)
    return BenchPlan(arguments.target, None, arguments.device, arguments.dtype, drafts[0].k, effort, comparison)


def _or(given: Any, usual: Any) -> Any:
    return usual if given is None else given


def _tell(words: str) -> None:
    print(one_line(words), file=sys.stderr, flush=True)


def _show(result: BenchResult, arguments: argparse.Namespace) -> None:
    if arguments.json:
        from specviz.experiments.json_form import to_json

        print(json.dumps(to_json(result), allow_nan=False))
    elif arguments.markdown:
        from specviz.experiments.bench_report import markdown

        for line in (*result.facts(), "", *map(markdown, result.tables()), *result.closing()):
            print(line)
    else:
        _print(result)


def _print(result: BenchResult) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from specviz.views.terminal.printed_report import say
    from specviz.views.terminal.show import console

    out = console()
    tell = say(out)
    for line in result.facts():
        tell(one_line(line))
    for table in result.tables():
        shown = Table(
            title=Text(table.title, "bold"), title_justify="left", box=box.SIMPLE_HEAD, show_header=any(table.head)
        )
        for index, name in enumerate(table.head):
            shown.add_column(Text(name), justify="left" if index == 0 else "right", no_wrap=True)
        for row in table.rows:
            shown.add_row(*(Text(one_line(cell)) for cell in row))
        out.print(shown)
    for line in result.closing():
        tell(one_line(line))
