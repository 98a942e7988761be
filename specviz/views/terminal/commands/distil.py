"""Make a draft from a target alone: the target writes text, a draft is made of the text, and raced on held-out prompts.

No data set is needed: an instruct model writes prompts and answers them, a base model goes on from its first token.
Kinds:
  ngram          a table of n-grams of the target's own text, for the drafts cascade and ngram-table
  student        a few layers trained to say what the target says, under its own embedding and head
  feature-head   one layer trained on the target's last hidden states

The folder gets the draft, card.md and card.json, and the text. Stop it with Ctrl-C and run it again: it goes on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from specviz.core.spelling import number


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", default="embedded", metavar="SOURCE", help="the target (default embedded)")
    parser.add_argument("--kind", required=True, metavar="KIND", help="ngram, student or feature-head")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="the folder of the draft")
    parser.add_argument("--minutes", type=number, default=60, metavar="N", help="for text and draft (default 60)")
    parser.add_argument("--seed", type=number, default=0, metavar="N", help="of every draw (default 0)")
    words = "write so many tokens of replies, however long it takes; the minutes are then the draft's alone"
    parser.add_argument("--tokens", type=number, metavar="N", help=words)
    words = "where the text is kept (default DIR/text); what is there, and what it took, counts"
    parser.add_argument("--text", type=Path, metavar="DIR", help=words)
    parser.add_argument(
        "--vocabulary", type=number, metavar="N", help="a neural draft says only the N most frequent tokens"
    )
    words = "train a neural draft for so many steps, however long it takes (default: as many as fit the minutes)"
    parser.add_argument("--steps", type=number, metavar="N", help=words)
    parser.add_argument("--mb", type=number, default=8, metavar="N", help="the largest n-gram table, in MB (default 8)")
    parser.add_argument("--held-out", type=number, default=12, metavar="N", help="prompts to race on (default 12)")
    parser.add_argument("--device", default="auto", help="auto, cuda, mps or cpu (default auto)")
    parser.add_argument(
        "--dtype", default="auto", help="of the target as it writes: auto, float32, bfloat16 or float16"
    )


def run(arguments: argparse.Namespace) -> int:
    # imported here so that --help loads no torch
    from specviz.distil.card import MARKDOWN
    from specviz.distil.pipeline import Plan, run_distil
    from specviz.sources import TerminalBar
    from specviz.views.terminal.escaping import one_line

    plan = Plan(
        arguments.target,
        arguments.kind,
        arguments.out,
        minutes=arguments.minutes,
        seed=arguments.seed,
        tokens=arguments.tokens,
        text=arguments.text,
        vocabulary=arguments.vocabulary,
        megabytes=arguments.mb,
        steps=arguments.steps,
        held_out=arguments.held_out,
        device=arguments.device,
        dtype=arguments.dtype,
    )
    bar = TerminalBar(sys.stderr)
    try:
        run_distil(plan, bar)
    finally:
        bar.close()
    print(one_line(f"{plan.out / MARKDOWN} says what it is worth:"), file=sys.stderr)
    print((plan.out / MARKDOWN).read_text(encoding="utf-8"), end="")
    return 0
