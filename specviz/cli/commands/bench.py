"""Measure this machine: how fast both lanes are against others, passes, the page, start-up and memory.

Parts: generate (the standard lane against transformers' generate), assisted (drafting lanes against transformers'),
verify (the verify curve), roofline (a pass against reading its weights), page (the engine with the page against
headless), startup (process start to first token, memory), and with --peers those of other libraries that are installed.
Compared things are timed in turn; results are medians with quartiles. Let nothing else run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import sys

from specviz.cli.escaping import one_line
from specviz.spelling import number


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="measure this part; repeatable")
    parser.add_argument("--target", default="embedded", metavar="SOURCE", help="the target (default embedded)")
    parser.add_argument("--draft", metavar="SOURCE", help="a draft model, for the comparisons that take one")
    parser.add_argument("-k", type=number, default=5, metavar="N", help="tokens drafted in a round (default 5)")
    parser.add_argument("--device", default="auto", help="auto, cuda, mps or cpu (default auto)")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16 (default auto)")
    parser.add_argument("--peers", action="store_true", help="compare with economize and flashspec too, if installed")
    parser.add_argument("--minutes", type=number, metavar="N", help="about how long it may take in all (default 12)")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it works")
    parser.add_argument("--json", action="store_true", help="print one JSON object with every sample, nothing else")


def run(arguments: argparse.Namespace) -> int:
    # imported here so that --help loads no torch
    from transformers.utils import logging

    from specviz.bench.bed import Plan
    from specviz.bench.effort import effort_of
    from specviz.bench.run import chosen_parts, run_bench
    from specviz.sources import TerminalBar

    parts = chosen_parts(arguments.only, arguments.peers)
    effort = effort_of(arguments.minutes, arguments.quick)
    plan = Plan(arguments.target, arguments.draft, arguments.device, arguments.dtype, arguments.k, effort)
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
        _print(result)
    return 0


def _tell(words: str) -> None:
    print(one_line(words), file=sys.stderr, flush=True)


def _print(result: dict) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from specviz.bench.report import closing, facts, sections
    from specviz.cli.report import say
    from specviz.cli.show import console

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
