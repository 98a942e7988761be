"""The n-gram table of a corpus: counted, pruned to a size in bytes, and what more text or a larger file would bring.

Prompts are counted beside replies, for a reply takes up the words of its prompt. Nothing is trained: a killed run
counts again, which takes seconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from specviz.core.errors import InputError
from specviz.distil.corpus import Conversation
from specviz.distil.favourites import best_prefix, favourites
from specviz.distil.files import teacher_facts
from specviz.distil.job import NO_REPLIES, Job, Trained, Trial
from specviz.distil.table_replay import Recorded, record, replayed_tau
from specviz.drafting.ngram_file import save_table
from specviz.drafting.ngrams import NgramTable, count_ngrams
from specviz.drafts.cascade import Cascade
from specviz.sources import Progress
from specviz.sources.progress import part

FILE = "ngrams.npz"
ALONE = 8  # successors kept of each token alone
CHAIN, TREE = 4, 16  # tokens drafted in a round, where tau is reported
_SAMPLE = 16  # conversations, for the token before the others
_REPLAYED = 24  # held-out replies
_SHARES = (0.125, 0.25, 0.5, 1.0)  # of the text, and of the size
_TRIES = 8  # at a size
_CURVE_NOTE = "Tau of cascade, replayed on held-out replies, by the length of the text and by the size of the file."


@dataclass(frozen=True, slots=True)
class _Counter:
    """Counts a text into a table of at most so many bytes, always with the same successors of tokens alone."""

    alone: Tensor
    facts: dict[str, Any]
    scratch: Path

    def table(self, conversations: Sequence[Conversation], size: float) -> tuple[NgramTable, int] | None:
        """(the table, its bytes), written to `scratch`; None where no table is as small as `size` bytes."""
        entries = None
        for _ in range(_TRIES):
            table = count_ngrams((each.ids for each in conversations), entries=entries).with_alone(self.alone)
            save_table(table, self.scratch, self.facts)
            written = self.scratch.stat().st_size
            if written <= size:
                return table, written
            entries = int(len(table) * min(0.9, 0.97 * size / written))
        return None


def make_table(job: Job) -> Trained:
    """Count the corpus into `ngrams.npz`; the curve is tau by text and by size, replayed on held-out replies.

    Raises InputError where there is nothing to count or to replay, and where no table is as small as is asked.
    """
    conversations, held_out = list(job.corpus.training()), job.corpus.held_out()[:_REPLAYED]
    if not conversations or not any(each.reply for each in held_out):
        raise InputError(NO_REPLIES)
    job.out.mkdir(parents=True, exist_ok=True)
    prefix = best_prefix(job.teacher, conversations[:_SAMPLE], ALONE, part(job.progress, 0.0, 0.1))
    alone = favourites(job.teacher, ALONE, prefix, part(job.progress, 0.1, 0.5))
    counter = _Counter(alone, _table_facts(job, conversations), job.out / f"{FILE}.part")
    recorded = record(job.teacher, held_out)
    curve = tuple(_curve(counter, conversations, recorded, job.megabytes, part(job.progress, 0.5, 1.0)))
    fitting = counter.table(conversations, 1e6 * job.megabytes)  # last, so that the scratch file is this table
    if fitting is None:
        counter.scratch.unlink()
        raise InputError(f"A table does not fit into {job.megabytes:g} MB; allow more with --mb.")
    table, written = fitting
    path = job.out / FILE
    os.replace(counter.scratch, path)
    facts = {
        "entries": len(table),
        "contexts": table.rows,
        "file_bytes": written,
        "counted_tokens": counter.facts["counted_tokens"],
        "alone_after": job.teacher.tokenizer.convert_ids_to_tokens(list(prefix)),
        "replayed_replies": len(recorded),
        "tau_without_table": _taus(None, recorded),
    }
    return Trained((path,), facts, _trials(path), curve, _CURVE_NOTE)


def _table_facts(job: Job, conversations: Sequence[Conversation]) -> dict[str, Any]:
    """What the file says of itself: the target that it was made for, and what was counted."""
    return {
        "target": teacher_facts(job.teacher),
        "counted_tokens": sum(len(each.ids) for each in conversations),
        "licence": job.teacher.checkpoint.licence,
        "seed": job.seed,
    }


def _curve(
    counter: _Counter,
    conversations: list[Conversation],
    recorded: Sequence[Recorded],
    megabytes: float,
    progress: Progress,
) -> Iterable[dict[str, float]]:
    """Tau by length of text at the full size, then by size with all of the text; each table once."""
    known: list[dict[str, float]] = []
    points = [(share, 1.0) for share in _SHARES] + [(1.0, share) for share in _SHARES[:-1]]
    for number, (text, size) in enumerate(points):
        progress(number / len(points), "Replaying held-out replies with tables of several sizes")
        counted = conversations[: max(1, round(text * len(conversations)))]
        fitting = counter.table(counted, 1e6 * size * megabytes)
        if fitting is not None:
            table, written = fitting
            tokens = sum(len(each.reply) for each in counted)
            row = {"reply_tokens": tokens, "megabytes": round(written / 1e6, 2), "entries": len(table)}
            if row not in known:  # else the size cut nothing
                known.append(row)
                yield row | _taus(table, recorded)


def _taus(table: NgramTable | None, recorded: Sequence[Recorded]) -> dict[str, float]:
    """Tau of `cascade`, as a chain and as a tree."""
    shapes = (("chain", CHAIN), ("tree", TREE))
    return {
        f"tau_{shape}_{k}": round(replayed_tau(Cascade(shape=shape, counted=table), recorded, k), 3)
        for shape, k in shapes
    }


def _trials(path: Path) -> tuple[Trial, ...]:
    table = str(path)
    return (
        Trial("cascade", {"shape": "chain", "table": table}, CHAIN),
        Trial("cascade", {"shape": "tree", "table": table}, TREE),
        Trial("ngram-table", {"table": table}, CHAIN),
    )
