"""Training examples: what the target predicts at each position of a corpus' replies, computed once, kept on the disk.

Training reads a text many times, and a pass of the target costs more than one of the draft that learns from it. Files
that only grow hold the target's most probable successors and, for a draft that reads them, its last hidden states. A
killed run continues after the last whole conversation. Rows are numbered through the conversations in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from specviz.distil.corpus import Conversation
from specviz.distil.losses import OutputHead

TOP = 32  # successors kept per position
LONGEST = 1024  # tokens of a conversation; the rest is left out
_PASS = 4096  # tokens per pass of the target, padding included
_ROWS = 512  # rows of logits at a time, each over the whole vocabulary
_SORTED_BATCHES = 64  # batches that are sorted by length among themselves


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """Conversations side by side, padded on the right: the input of one step.

    `ids` (b, t); `rows` (m,): the positions in (b * t) that precede a token of a reply, and for each the target's most
    probable successors `top_ids` (m, 32) with `top_probs` (m, 32) of the whole distribution. `features` (b, t, width):
    the target's last hidden states, or None.
    """

    ids: Tensor
    rows: Tensor
    top_ids: Tensor
    top_probs: Tensor
    features: Tensor | None


class TrainingExamples:
    """What a target's `module` predicts in `conversations`, kept in `folder`; its hidden states too, with `features`.

    `len()` counts the conversations whose examples are ready.
    """

    def __init__(
        self, folder: Path, module: nn.Module, conversations: Iterable[Conversation], features: bool = False
    ) -> None:
        self._module, self._head = module, OutputHead(module, None)
        self._texts = [_clipped(each) for each in conversations if each.reply_start < LONGEST]
        self._replies = _offsets(len(text) - start for text, start in self._texts)
        self._positions = _offsets(len(text) for text, _ in self._texts)
        width = self._head.weight.shape[1]
        top = min(TOP, len(self._head.weight))
        folder.mkdir(parents=True, exist_ok=True)
        self._ids = _Column(folder / "ids", top, numpy.int32)
        self._probs = _Column(folder / "probs", top, numpy.float16)
        self._states = _Column(folder / "features", width, numpy.int16) if features else None
        self._ready = self._keep_whole()

    def __len__(self) -> int:
        return self._ready

    @property
    def lengths(self) -> list[int]:
        """Tokens of each conversation that is ready."""
        return [len(text) for text, _ in self._texts[: self._ready]]

    @property
    def tokens(self) -> int:
        """Reply tokens of all conversations that are ready."""
        return self._replies[self._ready]

    def prepare(self, deadline: float, progress: Callable[[float, str], None] = lambda *_: None) -> None:
        """Compute what the disk does not hold yet until `deadline` (of time.monotonic), the first pass in any case."""
        while self._ready < len(self._texts) and (not self._ready or time.monotonic() < deadline):
            count = self._pass_size(self._ready)
            self._compute(range(self._ready, self._ready + count))
            self._ready += count
            share = self._ready / len(self._texts)
            progress(share, f"Reading the text with the target: {self.tokens:,} reply tokens, {share:.0%}")

    def batch(self, picked: Sequence[int]) -> TrainingBatch:
        """The conversations of these numbers, side by side."""
        device = self._head.weight.device
        ids = self._padded(picked)
        longest = ids.shape[1]
        rows, top_ids, top_probs = [], [], []
        features = None if self._states is None else torch.zeros(len(picked), longest, self._states.width)
        for place, one in enumerate(picked):
            text, start = self._texts[one]
            rows.append(torch.arange(start - 1, len(text) - 1) + place * longest)
            span = self._replies[one], self._replies[one + 1]
            top_ids.append(torch.from_numpy(self._ids.read(*span).astype(numpy.int64)))
            top_probs.append(torch.from_numpy(self._probs.read(*span).astype(numpy.float32)))
            if features is not None:
                states = self._states.read(self._positions[one], self._positions[one + 1])
                features[place, : len(text)] = torch.from_numpy(states.copy()).view(torch.bfloat16).float()
        joined = (torch.cat(part).to(device) for part in (rows, top_ids, top_probs))
        return TrainingBatch(ids.to(device), *joined, None if features is None else features.to(device))

    def frequencies(self) -> NDArray[numpy.int64]:
        """(vocabulary,): how often each token occurs in the conversations that are ready."""
        counts = numpy.zeros(len(self._head.weight), dtype=numpy.int64)
        for text, _ in self._texts[: self._ready]:
            numpy.add.at(counts, text, 1)
        return counts

    def _keep_whole(self) -> int:
        """How many conversations every file holds whole; what lies beyond them is cut off."""
        replies = min(self._ids.rows, self._probs.rows)
        positions = None if self._states is None else self._states.rows
        whole = 0
        while whole < len(self._texts) and self._replies[whole + 1] <= replies:
            if positions is not None and self._positions[whole + 1] > positions:
                break
            whole += 1
        for column in (self._ids, self._probs):
            column.cut(self._replies[whole])
        if self._states is not None:
            self._states.cut(self._positions[whole])
        return whole

    def _pass_size(self, first: int) -> int:
        """How many conversations, from `first` on, one pass of the target takes."""
        count, longest = 0, 0
        while first + count < len(self._texts):
            longest = max(longest, len(self._texts[first + count][0]))
            if count and longest * (count + 1) > _PASS:
                break
            count += 1
        return count

    @torch.inference_mode()
    def _compute(self, picked: range) -> None:
        ids = self._padded(picked).to(self._head.weight.device)
        states = self._module.base_model(input_ids=ids, use_cache=False).last_hidden_state
        for place, one in enumerate(picked):
            text, start = self._texts[one]
            self._append(states[place, : len(text)], start)

    def _padded(self, picked: Sequence[int]) -> Tensor:
        """(b, t) ids of these conversations, padded on the right with 0."""
        ids = torch.zeros(len(picked), max(len(self._texts[one][0]) for one in picked), dtype=torch.long)
        for place, one in enumerate(picked):
            text, _ = self._texts[one]
            ids[place, : len(text)] = torch.from_numpy(text.astype(numpy.int64))
        return ids

    def _append(self, states: Tensor, reply_start: int) -> None:
        for part in states[reply_start - 1 : -1].split(_ROWS):
            top = self._head(part).softmax(-1).topk(self._ids.width)
            self._ids.append(top.indices.int().cpu().numpy())
            self._probs.append(top.values.half().cpu().numpy())
        if self._states is not None:
            self._states.append(states.bfloat16().view(torch.int16).cpu().numpy())


def batches(lengths: list[int], key: tuple[int, int] | None, tokens: int) -> list[list[int]]:
    """Group texts of these lengths into batches of at most `tokens` tokens, padding included; returns their numbers.

    `key` seeds the order; None keeps it. Neighbouring batches are sorted by length, so that little is padded.
    """
    order = numpy.arange(len(lengths))
    generator = None if key is None else numpy.random.default_rng(key)
    if generator is not None:
        generator.shuffle(order)
    span = max(1, _SORTED_BATCHES * tokens // max(1, int(numpy.mean(lengths)) if lengths else 1))
    made = [
        batch
        for start in range(0, len(order), span)
        for batch in _sorted_batches(order[start : start + span], lengths, tokens)
    ]
    if generator is not None:
        generator.shuffle(made)
    return made


def _sorted_batches(order: NDArray[Any], lengths: list[int], tokens: int) -> Iterator[list[int]]:
    batch: list[int] = []
    for one in sorted((int(one) for one in order), key=lengths.__getitem__):
        if batch and lengths[one] * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


class _Column:
    """A file of rows of `width` numbers, to which rows are added."""

    def __init__(self, path: Path, width: int, kind: Any) -> None:
        self._path, self.width, self._kind = path, width, numpy.dtype(kind)
        path.touch()

    @property
    def rows(self) -> int:
        return self._path.stat().st_size // self._row_bytes

    def cut(self, rows: int) -> None:
        with open(self._path, "r+b") as file:
            file.truncate(rows * self._row_bytes)

    def append(self, rows: NDArray[Any]) -> None:
        with open(self._path, "ab") as file:
            file.write(numpy.ascontiguousarray(rows, dtype=self._kind).tobytes())

    def read(self, start: int, stop: int) -> NDArray[Any]:
        with open(self._path, "rb") as file:
            file.seek(start * self._row_bytes)
            rows = numpy.frombuffer(file.read((stop - start) * self._row_bytes), dtype=self._kind)
        return rows.reshape(-1, self.width)

    @property
    def _row_bytes(self) -> int:
        return self.width * self._kind.itemsize


def _clipped(conversation: Conversation) -> tuple[NDArray[numpy.int32], int]:
    """(ids, start of the reply) of the conversation's first `LONGEST` tokens."""
    return numpy.array(conversation.ids[:LONGEST], dtype=numpy.int32), conversation.reply_start


def _offsets(counts: Iterable[int]) -> list[int]:
    """Running sums from 0, one more than there are counts."""
    return list(accumulate(counts, initial=0))
