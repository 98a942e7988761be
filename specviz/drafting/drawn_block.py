"""The tokens of one proposal as a model's logits give them: penalised, filtered, drawn, and ended where it is unsure.

All of it stays on the device. On an accelerator each read makes the host wait, so a block under a stop rule is drafted
to its full length, then cut by that rule with one read at the end.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from specviz.drafting.strategy import Proposal, Run
from specviz.drafting.vocabulary import Restriction
from specviz.sampling.k_policies import stop_rule
from specviz.sampling.sampler import distribution, draw, penalise


class DrawnBlock:
    """The tokens of one round, drawn one by one."""

    def __init__(self, run: Run, common: Restriction) -> None:
        self._run, self._settings, self._common = run, run.settings, common
        self._stop = stop_rule(run.settings)
        self._reads_each = run.target.device.type == "cpu"
        self._ids: list[Tensor] = []
        self._probs: list[Tensor] = []
        self._logits: list[Tensor] = []
        self._unsure: list[Tensor] = []
        counts = run.counts
        self._seen = None if counts is None else counts.seen[: common.size].clone()
        self._written = None if counts is None else counts.written[: common.size].clone()

    def fill(self, logits: Tensor, k: int, read: Callable[[Tensor], Tensor]) -> int:
        """Draw up to `k` tokens, the first from `logits` (draft vocabulary,); returns how many of them were read.

        `read` takes a token () and gives the draft's logits after it.
        """
        token, count = self.next(logits), 0
        while token is not None and count < k - 1:
            token, count = self.next(read(token)), count + 1
        return count

    def next(self, logits: Tensor) -> Tensor | None:
        """Draw one token from the draft's logits (draft vocabulary,): an id (), or None where the block ends before."""
        logits = self._common.restrict(logits).float()
        self._logits.append(logits)
        used = self._penalised(logits)
        probs = None if self._settings.greedy else distribution(used, self._settings)
        if self._stop is not None and self._ends(used.softmax(-1) if probs is None else probs):
            return None
        token = used.argmax(-1) if probs is None else draw(probs[None], self._run.draws(1)).squeeze(0)
        self._take(token, probs)
        return token

    def proposal(self, previous: Tensor | None, passes: int) -> Proposal:
        """The block; `previous` is the draft's choice at the bonus position of the round before."""
        count = self._count()
        ended = count < len(self._logits)
        if not count:
            return Proposal((), previous_choice=previous, passes=passes, note=self._stop.note)
        missing = self._run.target.vocabulary - self._common.size
        return Proposal(
            torch.stack(self._ids[:count]),
            functional.pad(torch.stack(self._probs[:count]), (0, missing)) if self._probs else None,
            previous_choice=previous,
            logits=torch.stack(self._logits[:count]) if self._settings.telemetry else None,
            passes=passes,
            note=self._stop.note if ended else None,
        )

    def choice_after(self, count: int) -> Tensor | None:
        """The draft's choice after `count` tokens of the block, where it was looked at and not drafted."""
        return self._logits[count].argmax() if count < len(self._logits) else None

    def _ends(self, probs: Tensor) -> bool:
        unsure = self._stop.unsure(probs)
        if self._reads_each:
            return bool(unsure)
        self._unsure.append(unsure)
        return False

    def _count(self) -> int:
        """Tokens before the first position of which the draft is unsure."""
        if not self._unsure:
            return len(self._ids)
        return int((~torch.stack(self._unsure)).long().cumprod(0).sum())

    def _take(self, token: Tensor, probs: Tensor | None) -> None:
        self._ids.append(token)
        if probs is not None:
            self._probs.append(probs)
        if self._seen is not None:
            one = torch.ones(1, device=token.device)
            self._seen.index_add_(0, token[None], one)  # indexing with a token would make the host wait for it
            self._written.index_add_(0, token[None], one)

    def _penalised(self, logits: Tensor) -> Tensor:
        if self._seen is None:
            return logits
        nothing = torch.empty(0, dtype=torch.long, device=logits.device)
        return penalise(logits[None], self._settings, self._seen, self._written, nothing).squeeze(0)
