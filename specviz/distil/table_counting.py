"""Make the n-gram table of a corpus: count, prune to a size in bytes, measure what more text or a larger file brings.

Prompts are counted beside replies, since a reply takes up the words of its prompt. The table also holds the target's
top successors of each token that stands alone, the last resort of a draft that runs no model. Nothing is trained: a
killed run counts again, which takes seconds.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import InputError
from specviz.distil.corpus import Conversation
from specviz.distil.job import NO_REPLIES, Job, Trained
from specviz.distil.table_replay import ReplayText, replay_texts, replayed_tau
from specviz.distil.teacher import Teacher
from specviz.drafting.ngram_file import save_table
from specviz.drafting.ngrams import NgramTable, count_ngrams
from specviz.drafts.cascade import Cascade
from specviz.sources import Progress
from specviz.sources.progress import part

FILE = "ngrams.npz"
ALONE = 8  # successors kept of each token alone
_CHAIN_K, _TREE_K = 4, 16  # where tau is reported
_SAMPLE = 16  # conversations on which prefixes are compared
_REPLAYED = 24  # held-out replies
_SHARES = (0.125, 0.25, 0.5, 1.0)  # of the text, and of the size
_SIZE_TRIES = 8
_PASS_ROWS = 256  # each gives logits over the whole vocabulary
_FREQUENT = 4  # of the text's most frequent tokens, tried as a prefix
_CURVE_NOTE = "Tau of cascade, replayed on held-out replies, by the length of the text and by the size of the file."

Prefix = tuple[int, ...]


def make_table(job: Job) -> Trained:
    """Count the corpus into `ngrams.npz`; its curve is tau by text and by size, replayed on held-out replies.

    Raises InputError where there is nothing to count or to replay, or where no table is small enough.
    """
    conversations, held_out = list(job.corpus.training()), job.corpus.held_out()[:_REPLAYED]
    if not conversations or not any(each.reply for each in held_out):
        raise InputError(NO_REPLIES)
    job.out.mkdir(parents=True, exist_ok=True)
    prefix = best_prefix(job.teacher, conversations[:_SAMPLE], ALONE, part(job.progress, 0.0, 0.1))
    alone = top_successors(job.teacher, ALONE, prefix, part(job.progress, 0.1, 0.5))
    counter = _Counter(alone, _table_facts(job, conversations), job.out / f"{FILE}.part")
    texts = replay_texts(job.teacher, held_out)
    curve = tuple(_curve(counter, conversations, texts, job.megabytes, part(job.progress, 0.5, 1.0)))
    fitting = counter.table(conversations, 1e6 * job.megabytes)  # last, so that the scratch file is this table
    if fitting is None:
        counter.scratch.unlink()
        raise InputError(f"No table fits into {job.megabytes:g} MB; allow more with --mb.")
    table, written = fitting
    path = job.out / FILE
    os.replace(counter.scratch, path)
    facts = {
        "entries": len(table),
        "contexts": table.rows,
        "file_bytes": written,
        "counted_tokens": counter.facts["counted_tokens"],
        "alone_after": job.teacher.tokenizer.convert_ids_to_tokens(list(prefix)),
        "replayed_replies": len(texts),
        "tau_without_table": _taus(None, texts),
    }
    return Trained((path,), facts, _drafts(path), curve, _CURVE_NOTE)


def top_successors(teacher: Teacher, count: int, prefix: Prefix, progress: Progress) -> Tensor:
    """(vocabulary, count): the target's likeliest successors of each token, read alone after `prefix`, best first."""
    return _successors(teacher, torch.arange(teacher.vocabulary), count, prefix, progress)


def best_prefix(teacher: Teacher, sample: Sequence[Conversation], count: int, progress: Progress) -> Prefix:
    """The prefix after which the `count` top successors predict the sample best: none, or a special or frequent token.

    At the very first position many models predict little that makes sense, so a token before may help.
    """
    replies = [each.ids[each.reply_start - 1 :] for each in sample]
    pairs = Counter(pair for reply in replies for pair in zip(reply, reply[1:], strict=False))
    frequent = Counter(token for reply in replies for token in reply).most_common(_FREQUENT)
    tried = list(dict.fromkeys([*teacher.tokenizer.all_special_ids, *(token for token, _ in frequent)]))
    prefixes: list[Prefix] = [(), *((token,) for token in tried if token < teacher.vocabulary)]
    hits = []
    for number, prefix in enumerate(prefixes):
        bar = part(progress, number / len(prefixes), (number + 1) / len(prefixes))
        hits.append(_hits(teacher, pairs, count, prefix, bar))
    return prefixes[hits.index(max(hits))]


@dataclass(frozen=True, slots=True)
class _Counter:
    """Counts a text into a table of a limited size; the successors of tokens `alone` are the same in each."""

    alone: Tensor
    facts: dict[str, Any]
    scratch: Path

    def table(self, conversations: Sequence[Conversation], size: float) -> tuple[NgramTable, int] | None:
        """(table, its bytes), written to `scratch`; None where no table is as small as `size` bytes."""
        entries = None
        for _ in range(_SIZE_TRIES):
            table = count_ngrams((each.ids for each in conversations), entries=entries).with_alone(self.alone)
            save_table(table, self.scratch, self.facts)
            written = self.scratch.stat().st_size
            if written <= size:
                return table, written
            entries = int(len(table) * min(0.9, 0.97 * size / written))
        return None


def _table_facts(job: Job, conversations: Sequence[Conversation]) -> dict[str, Any]:
    """What the file says of itself."""
    return {
        "target": job.teacher.facts,
        "counted_tokens": sum(len(each.ids) for each in conversations),
        "licence": job.teacher.checkpoint.licence,
        "seed": job.seed,
    }


def _curve(
    counter: _Counter,
    conversations: list[Conversation],
    texts: Sequence[ReplayText],
    megabytes: float,
    progress: Progress,
) -> Iterable[dict[str, float]]:
    """Tau by length of text at the full size, then by size with all of the text; no table twice."""
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
            if row not in known:  # the size may have pruned nothing
                known.append(row)
                yield row | _taus(table, texts)


def _taus(table: NgramTable | None, texts: Sequence[ReplayText]) -> dict[str, float]:
    """Tau of `cascade` as a chain and as a tree."""
    shapes = (("chain", _CHAIN_K), ("tree", _TREE_K))
    return {
        f"tau_{shape}_{k}": round(replayed_tau(Cascade(shape=shape, counted=table), texts, k), 3) for shape, k in shapes
    }


def _drafts(path: Path) -> tuple[DraftSpec, ...]:
    table = {"table": str(path)}
    return (
        DraftSpec("cascade", options={"shape": "chain", **table}, settings={"k": _CHAIN_K}),
        DraftSpec("cascade", options={"shape": "tree", **table}, settings={"k": _TREE_K}),
        DraftSpec("ngram-table", options=table, settings={"k": _CHAIN_K}),
    )


def _hits(teacher: Teacher, pairs: Counter[tuple[int, int]], count: int, prefix: Prefix, progress: Progress) -> int:
    """How many of the pairs (token, next token) have the next token among the top successors."""
    tokens = sorted({token for token, _ in pairs})
    found = _successors(teacher, torch.tensor(tokens, dtype=torch.long), count, prefix, progress).tolist()
    known = dict(zip(tokens, map(set, found), strict=True))
    return sum(times for (token, successor), times in pairs.items() if successor in known[token])


@torch.inference_mode()
def _successors(teacher: Teacher, ids: Tensor, count: int, prefix: Prefix, progress: Progress) -> Tensor:
    """(n, count) for `ids` (n,)."""
    found, device = [torch.empty(0, min(count, teacher.vocabulary), dtype=torch.long)], teacher.module.device
    for start in range(0, len(ids), _PASS_ROWS):
        progress(start / len(ids), "Finding the target's top successors of each token")
        rows = ids[start : start + _PASS_ROWS].to(device)
        before = torch.tensor(prefix, dtype=torch.long, device=device).expand(len(rows), -1)
        logits = teacher.module(torch.cat([before, rows[:, None]], dim=1), logits_to_keep=1).logits[:, -1]
        found.append(logits.topk(min(count, logits.shape[-1]), dim=-1).indices.cpu())
    return torch.cat(found)
