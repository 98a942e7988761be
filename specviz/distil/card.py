"""The card of a draft: what it was made from and how, what it is worth, and the command that makes it again.

`card.json` holds the facts, `card.md` presents them.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

from specviz import __version__
from specviz.core.errors import InputError
from specviz.distil.corpus import Corpus
from specviz.distil.job import Trained
from specviz.distil.plan import Plan
from specviz.distil.teacher import Teacher

JSON, MARKDOWN = "card.json", "card.md"


def check_folder(out: Path, kind: str) -> None:
    """Raises InputError where `out` holds a draft of another kind: a folder has one draft, and one card."""
    try:
        there = json.loads((out / JSON).read_text(encoding="utf-8")).get("kind")
    except FileNotFoundError:
        return
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"The card in {out} cannot be read ({error}); choose another folder with --out.") from error
    if there != kind:
        raise InputError(f"{out} holds a draft of the kind '{there}'; choose another folder with --out.")


def card_facts(plan: Plan, teacher: Teacher, corpus: Corpus, minutes: float, trained: Trained) -> dict[str, Any]:
    """Everything on the card but the results of the races. `minutes` went into the draft itself.

    The command gives numbers of tokens and steps: what fits a time depends on the machine.
    """
    checkpoint, steps = teacher.checkpoint, trained.facts.get("steps")
    again = replace(plan, tokens=max(1, corpus.tokens), text=None, minutes=minutes, steps=steps)
    return {
        "kind": plan.kind,
        "licence": checkpoint.licence,
        "command": again.command,
        "target": {**teacher.facts, "source": plan.source, "revision": checkpoint.revision},
        "text": {
            "conversations": len(corpus),
            "reply_tokens": corpus.tokens,
            "held_out_conversations": len(corpus.held_out()),
            "batches": corpus.batches,
            "seconds": round(corpus.seconds),
            **{name: corpus.facts[name] for name in ("seed", "dtype", "settings")},
        },
        "versions": {
            "specviz": __version__,
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("torch", "transformers", "numpy")},
        },
        "draft": trained.facts,
        "curve": list(trained.curve),
        "curve_note": trained.curve_note,
    }


def write_card(out: Path, facts: Mapping[str, Any]) -> None:
    """Write both files, each whole or not at all."""
    for name, text in ((JSON, json.dumps(facts, indent=2, ensure_ascii=False) + "\n"), (MARKDOWN, markdown(facts))):
        path = out / name
        scratch = path.with_name(f"{name}.part")
        scratch.write_text(text, encoding="utf-8")
        os.replace(scratch, path)


def markdown(facts: Mapping[str, Any]) -> str:
    """The card as Markdown; lists and tables keep the order of `facts`."""
    target = facts["target"]
    lines = [
        f"# A draft for {target['name']}: {facts['kind']}",
        "",
        f"Made from text that the target wrote itself. Licence: {facts['licence'] or 'that of the target'}.",
        "",
        "```sh",
        facts["command"],
        "```",
    ]
    for title, name in (("Text", "text"), ("Draft", "draft"), ("Target", "target"), ("Made with", "versions")):
        lines += ["", f"## {title}", "", *_list(facts[name])]
    lines += [
        "",
        "## Results on held-out prompts",
        "",
        _HELD_OUT.format(**facts["held_out"]),
        "",
        *_table(facts["worth"]),
    ]
    if facts["curve"]:
        note = facts["curve_note"]
        lines += ["", "## Curve", "", *([note, ""] if note else []), *_table(facts["curve"])]
    return "\n".join(lines) + "\n"


_HELD_OUT = (
    "Greedy races against standard decoding on {prompts} prompts that the draft was not made from, with at most "
    "{new_tokens} new tokens each, on {device} with {threads} threads in {dtype}. tau: tokens per target pass; alpha: "
    "accepted / tested; c: cost of a drafted token in one-token target passes. Speed-ups are medians over the prompts."
)


def _list(values: Mapping[str, Any]) -> list[str]:
    return [f"- {_words(name)}: {_value(value)}" for name, value in values.items() if value is not None]


def _table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [_row(_words(name) for name in names), _row("---" for _ in names)]
    return lines + [_row(_value(row.get(name)) for name in names) for row in rows]


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{_words(name)} {_value(each)}" for name, each in value.items())
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return "-" if value is None else str(value)
