"""Measure this machine: how fast both lanes are against others, passes, the page, start-up and memory.

Parts: generate (the standard lane against transformers' generate), assisted (drafting lanes against transformers'),
verify (the verify curve), roofline (a pass against reading its weights), page (the engine with the page against
headless), startup (process start to first token, memory), and with --peers those of other libraries that are installed.
Compared things are timed in turn; results are medians with quartiles. Let nothing else run meanwhile.

On its own, --only drafts compares drafts on twelve fixed prompts, each lane in a race with standard decoding. A draft
is spelt as in the command race, and runs at every k of -k if it names none:

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
    from specviz.experiments.bench_context import Plan

_CONTEST = ("drafts",)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="measure this part; repeatable")
    parser.add_argument("--target", default="embedded", metavar="SOURCE", help="the target (default embedded)")
    words = "a draft model, for the comparisons that take one; with --only drafts a draft, repeatable"
    parser.add_argument("--draft", action="append", default=[], metavar="SOURCE", help=words)
    words = "tokens drafted in a round (default 5); with --only drafts also several, as in 2,4,8"
    parser.add_argument("-k", default="5", metavar="N", help=words)
    parser.add_argument("--device", default="auto", help="auto, cuda, mps or cpu (default auto)")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16 (default auto)")
    parser.add_argument("--peers", action="store_true", help="compare with economize and flashspec too, if installed")
    words = "about how long it may take in all (default 12; --only drafts: as long as it takes)"
    parser.add_argument("--minutes", type=number, metavar="N", help=words)
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it works")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print one JSON object with every sample, nothing else")
    shown.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    contest = parser.add_argument_group("with --only drafts")
    contest.add_argument("--tokens", type=number, metavar="N", help="the longest reply (default 128)")
    contest.add_argument("--repeats", type=number, metavar="N", help="races of each prompt (default 3)")
    contest.add_argument(
        "--out", type=Path, metavar="FILE", help="keep each race in this file, and go on where it ends"
    )


def run(arguments: argparse.Namespace) -> int:
    # imported here so that --help loads no torch
    from transformers.utils import logging

    from specviz.experiments.benchmark import chosen_parts, run_bench
    from specviz.sources import TerminalBar

    parts = chosen_parts(arguments.only, arguments.peers)
    plan = _contest_plan(arguments) if parts == _CONTEST else _plan(arguments)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    bar = TerminalBar(sys.stderr)
    try:
        result = run_bench(plan, parts, _tell, bar)
    finally:
        bar.close()
    if arguments.json:
        print(json.dumps(result, allow_nan=False))
    else:
        (_print_markdown if arguments.markdown else _print)(result)
    return 0


def _plan(arguments: argparse.Namespace) -> Plan:
    """What the usual parts measure. Raises InputError for what only the contest of drafts takes."""
    from specviz.experiments.bench_context import Plan
    from specviz.experiments.effort import effort_of

    if len(arguments.draft) > 1:
        raise InputError("These parts take one draft model; --only drafts compares several drafts.")
    given = next((name for name in ("tokens", "repeats", "out") if getattr(arguments, name) is not None), None)
    if given is not None:
        raise InputError(f"--{given} is for --only drafts; leave it out.")
    effort = effort_of(arguments.minutes, arguments.quick)
    draft = arguments.draft[0] if arguments.draft else None
    return Plan(arguments.target, draft, arguments.device, arguments.dtype, number(arguments.k), effort)


def _contest_plan(arguments: argparse.Namespace) -> Plan:
    """What the contest of drafts measures. Raises SpecvizError for drafts and numbers that cannot be."""
    from specviz.core.settings import Settings
    from specviz.experiments.bench_context import Plan
    from specviz.experiments.comparison import Contest, make_entries
    from specviz.experiments.effort import effort_of

    effort = effort_of(arguments.minutes, arguments.quick)
    entries = make_entries(arguments.draft, arguments.k.split(","))
    settings = Settings(max_new_tokens=_or(arguments.tokens, effort.tokens), telemetry=False)
    seconds = math.inf if arguments.minutes is None else effort.seconds
    contest = Contest(entries, settings, _or(arguments.repeats, effort.repeats), seconds, arguments.out)
    return Plan(arguments.target, None, arguments.device, arguments.dtype, entries[0].k, effort, contest)


def _or(given: Any, usual: Any) -> Any:
    return usual if given is None else given


def _tell(words: str) -> None:
    print(one_line(words), file=sys.stderr, flush=True)


def _print_markdown(result: dict) -> None:
    from specviz.experiments.bench_report import closing, facts, markdown, sections

    for line in (*facts(result), "", *map(markdown, sections(result)), *closing(result)):
        print(line)


def _print(result: dict) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from specviz.experiments.bench_report import closing, facts, sections
    from specviz.views.terminal.printed_report import say
    from specviz.views.terminal.show import console

    out = console()
    tell = say(out)
    for line in facts(result):
        tell(one_line(line))
    for title, head, rows in sections(result):
        table = Table(title=Text(title, "bold"), title_justify="left", box=box.SIMPLE_HEAD, show_header=any(head))
        for index, name in enumerate(head):
            table.add_column(Text(name), justify="left" if index == 0 else "right", no_wrap=True)
        for row in rows:
            table.add_row(*(Text(one_line(cell)) for cell in row))
        out.print(table)
    for line in closing(result):
        tell(one_line(line))
