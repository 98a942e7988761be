"""Lessons: what the target says at each position of a corpus' replies, worked out once and kept on the disk.

Training reads a text many times, and a pass of the target costs more than one of the draft that learns from it. Flat
files that only grow hold the target's most probable successors and, for a draft that reads them, its last hidden
states; a killed run goes on behind the last whole conversation. Rows are numbered through the conversations in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from specviz.distil.corpus import Conversation

TOP = 32  # successors kept of each position
LONGEST = 1024  # tokens of a conversation; what is beyond is left out
_PASS = 4096  # tokens of one pass of the target
_ROWS = 512  # rows of logits at a time: a whole vocabulary each


@dataclass(frozen=True, slots=True)
class Batch:
    """Conversations side by side, padded on the right: what a step learns from.

    `ids` (b, t); `rows` (m,): the places in (b * t) that come before a token of a reply; there the target's most
    probable successors `top_ids` (m, 32) and `top_probs` (m, 32), of the whole distribution. `features` (b, t, width):
    the target's last hidden states, or None.
    """

    ids: Tensor
    rows: Tensor
    top_ids: Tensor
    top_probs: Tensor
    features: Tensor | None


class Head:
    """The target's output head over its own ids, or over `ids` (n,) alone: states (rows, width) -> logits (rows, n)."""

    def __init__(self, module: nn.Module, ids: Tensor | None) -> None:
        head = module.get_output_embeddings()
        bias = getattr(head, "bias", None)
        self.weight = head.weight.detach() if ids is None else head.weight.detach()[ids]
        self._bias = bias if bias is None or ids is None else bias.detach()[ids]
        self._cap = getattr(module.config, "final_logit_softcapping", None)
        self._place: Tensor | None = None  # id -> its place among `ids`, -1 for the others
        if ids is not None:
            self._place = torch.full((len(head.weight),), -1, device=ids.device).index_copy(
                0, ids, torch.arange(len(ids), device=ids.device)
            )

    def __call__(self, states: Tensor) -> Tensor:
        logits = functional.linear(states.to(self.weight.dtype), self.weight, self._bias).float()
        return logits if self._cap is None else self._cap * torch.tanh(logits / self._cap)

    def places(self, ids: Tensor) -> Tensor:
        """Where `ids` stand among the head's outputs; -1 for those it cannot say."""
        return ids if self._place is None else self._place[ids]


class Lessons:
    """The lessons of `conversations` for a target's module, in `folder`. `features`: hidden states are kept too."""

    def __init__(
        self, folder: Path, module: nn.Module, conversations: Iterable[Conversation], features: bool = False
    ) -> None:
        self._module, self._head = module, Head(module, None)
        self._texts = [_clipped(each) for each in conversations if each.reply_start < LONGEST]
        self._replies = _starts(len(text) - start for text, start in self._texts)
        self._positions = _starts(len(text) for text, _ in self._texts)
        width = self._head.weight.shape[1]
        top = min(TOP, len(self._head.weight))
        folder.mkdir(parents=True, exist_ok=True)
        self._ids = _Column(folder / "ids", top, numpy.int32)
        self._probs = _Column(folder / "probs", top, numpy.float16)
        self._states = _Column(folder / "features", width, numpy.int16) if features else None

        self._ready = self._settled()

    def __len__(self) -> int:
        """Conversations whose lessons are there."""
        return self._ready

    @property
    def lengths(self) -> list[int]:
        """Tokens of each of them."""
        return [len(text) for text, _ in self._texts[: self._ready]]

    @property
    def tokens(self) -> int:
        """Reply tokens of them all."""
        return self._replies[self._ready]

    def prepare(self, deadline: float, progress: Callable[[float, str], None] = lambda *_: None) -> None:
        """Work out what the disk does not hold yet, the first in any case, until `deadline` (of time.monotonic)."""
        while self._ready < len(self._texts) and (not self._ready or time.monotonic() < deadline):
            count = self._pass_from(self._ready)
            self._add(range(self._ready, self._ready + count))
            self._ready += count
            share = self._ready / len(self._texts)
            progress(share, f"Asking the target what it says of its text: {self.tokens:,} tokens, {share:.0%}")

    def batch(self, picked: Sequence[int]) -> Batch:
        """The conversations of these numbers, side by side."""
        device = self._head.weight.device
        longest = max(len(self._texts[one][0]) for one in picked)
        ids = torch.zeros(len(picked), longest, dtype=torch.long)
        rows, top_ids, top_probs = [], [], []
        features = None if self._states is None else torch.zeros(len(picked), longest, self._states.width)
        for place, one in enumerate(picked):
            text, start = self._texts[one]
            ids[place, : len(text)] = torch.from_numpy(text.astype(numpy.int64))
            rows.append(torch.arange(start - 1, len(text) - 1) + place * longest)
            span = self._replies[one], self._replies[one + 1]
            top_ids.append(torch.from_numpy(self._ids.read(*span).astype(numpy.int64)))
            top_probs.append(torch.from_numpy(self._probs.read(*span).astype(numpy.float32)))
            if features is not None:
                states = self._states.read(self._positions[one], self._positions[one + 1])
                features[place, : len(text)] = torch.from_numpy(states.copy()).view(torch.bfloat16).float()
        joined = (torch.cat(part).to(device) for part in (rows, top_ids, top_probs))
        return Batch(ids.to(device), *joined, None if features is None else features.to(device))

    def frequencies(self) -> NDArray[numpy.int64]:
        """(vocabulary,): how often each token stands in these texts."""
        counts = numpy.zeros(len(self._head.weight), dtype=numpy.int64)
        for text, _ in self._texts[: self._ready]:
            numpy.add.at(counts, text, 1)
        return counts

    def _settled(self) -> int:
        """Conversations that every file holds whole; what lies beyond them is cut off."""
        replies = min(self._ids.rows, self._probs.rows)
        positions = None if self._states is None else self._states.rows
        done = 0
        while done < len(self._texts) and self._replies[done + 1] <= replies:
            if positions is not None and self._positions[done + 1] > positions:
                break
            done += 1
        for column in (self._ids, self._probs):
            column.cut(self._replies[done])
        if self._states is not None:
            self._states.cut(self._positions[done])
        return done

    def _pass_from(self, first: int) -> int:
        """How many conversations from `first` on one pass of the target takes, padding counted."""
        count, longest = 0, 0
        while first + count < len(self._texts):
            longest = max(longest, len(self._texts[first + count][0]))
            if count and longest * (count + 1) > _PASS:
                break
            count += 1
        return count

    @torch.inference_mode()
    def _add(self, picked: range) -> None:
        device = self._head.weight.device
        longest = max(len(self._texts[one][0]) for one in picked)
        ids = torch.zeros(len(picked), longest, dtype=torch.long)
        for place, one in enumerate(picked):
            ids[place, : len(self._texts[one][0])] = torch.from_numpy(self._texts[one][0].astype(numpy.int64))
        states = self._module.base_model(input_ids=ids.to(device), use_cache=False).last_hidden_state
        for place, one in enumerate(picked):
            text, start = self._texts[one]
            self._append(states[place, : len(text)], start)

    def _append(self, states: Tensor, reply_start: int) -> None:
        for part in states[reply_start - 1 : -1].split(_ROWS):
            top = self._head(part).softmax(-1).topk(self._ids.width)
            self._ids.append(top.indices.int().cpu().numpy())
            self._probs.append(top.values.half().cpu().numpy())
        if self._states is not None:
            self._states.append(states.bfloat16().view(torch.int16).cpu().numpy())


class _Column:
    """A file of rows of `width` numbers, to which rows are added."""

    def __init__(self, path: Path, width: int, kind: Any) -> None:
        self._path, self.width, self._kind = path, width, numpy.dtype(kind)
        path.touch()

    @property
    def rows(self) -> int:
        return self._path.stat().st_size // (self.width * self._kind.itemsize)

    def cut(self, rows: int) -> None:
        with open(self._path, "r+b") as file:
            file.truncate(rows * self.width * self._kind.itemsize)

    def append(self, rows: NDArray[Any]) -> None:
        with open(self._path, "ab") as file:
            file.write(numpy.ascontiguousarray(rows, dtype=self._kind).tobytes())

    def read(self, start: int, stop: int) -> NDArray[Any]:
        size = self.width * self._kind.itemsize
        with open(self._path, "rb") as file:
            file.seek(start * size)
            return numpy.frombuffer(file.read((stop - start) * size), dtype=self._kind).reshape(-1, self.width)


def _clipped(conversation: Conversation) -> tuple[NDArray[numpy.int32], int]:
    return numpy.array(conversation.ids[:LONGEST], dtype=numpy.int32), conversation.reply_start


def _starts(counts: Iterable[int]) -> list[int]:
    """Running sums from 0, one more than there are counts."""
    return list(accumulate(counts, initial=0))
