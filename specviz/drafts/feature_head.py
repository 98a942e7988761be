"""A feature head drafts: one layer reads the target's own hidden states and guesses the next ones (Li et al. 2024).

What the target has computed of the kept text is taken over after each round; inside a block the head goes on with its
own guesses in their place. So k tokens take k passes of one layer, and nothing is read back to the host in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from specviz.core.errors import PairError
from specviz.drafting.draft_weights import DraftWeights, check_shapes, load_weights, weights_path
from specviz.drafting.drawn_block import DrawnBlock, Restriction
from specviz.drafting.feature_pass import FeaturePass, HeadShape, width_of
from specviz.drafting.strategy import NOTHING, Drafter, Proposal, Run, Seen, Strategy, option
from specviz.drafting.vocabulary import vocabulary_of
from specviz.models import LanguageModel

KIND = "feature-head"
_CHUNK = 512


@dataclass(frozen=True)
class FeatureHead(Strategy):
    name: ClassVar[str] = KIND
    label: ClassVar[str] = "Feature head"
    help: ClassVar[str] = "One trained layer reads the target's own last hidden states and guesses on from them."
    needs: ClassVar[frozenset[str]] = frozenset({"hidden"})

    weights: str = option("", path=True, help="path of a feature head's weights (.safetensors); empty: the one bundled")
    head: FeaturePass | None = field(default=None, compare=False, repr=False)
    trained: DraftWeights | None = field(default=None, compare=False, repr=False)

    @classmethod
    def make(cls, target: LanguageModel, draft_model: LanguageModel | None, options: dict[str, Any]) -> Self:
        strategy = super().make(target, draft_model, options)
        path = weights_path(strategy.weights, KIND, target)
        trained = load_weights(path, KIND, target)
        shape = HeadShape.read(trained.facts.get("shape"))
        check_shapes(trained, shape.shapes(), str(path), target)
        if shape.width != width_of(target):
            raise PairError(
                f"The weights '{path}' read {shape.width} features and {target.name} has {width_of(target)}; "
                "use a file that was trained for this target."
            )
        return replace(strategy, head=FeaturePass(target, shape, trained.tensors, trained.ids), trained=trained)

    @property
    def note(self) -> str | None:
        return None if self.trained is None else self.trained.note

    def start(self, run: Run) -> Drafter:
        return _FeatureDrafter(self.head, run, vocabulary_of(run.target, self.trained.ids))


class _FeatureDrafter(Drafter):
    """Row t of its cache stands for token t of the text; drafted rows lie behind the kept ones and are overwritten."""

    def __init__(self, head: FeaturePass, run: Run, said: Restriction) -> None:
        self._head, self._run, self._said = head, run, said
        self._cache = head.new_cache(run.capacity)
        self._read = 0  # kept tokens in the cache
        self._unread: tuple[int, ...] = ()  # kept tokens that are not, and the target's features before each
        self._features: Tensor | None = None

    def observe(self, kept_ids: Sequence[int], seen: Seen) -> None:
        self._unread = (*self._unread, *kept_ids)
        known = [part for part in (self._features, self._before(seen)) if part is not None]
        self._features = torch.cat(known)[: len(self._unread)]
        if not self._read:
            self._prefill()

    def propose(self, k: int) -> Proposal:
        return self._draft(k) if k else NOTHING

    def _before(self, seen: Seen) -> Tensor:
        """The target's features at the positions before the tokens that were kept: (m, width)."""
        if self._features is not None or self._read:
            return seen.hidden
        nothing = torch.zeros(1, self._head.width, dtype=self._run.target.dtype, device=self._run.target.device)
        return nothing if seen.hidden is None else torch.cat([nothing, seen.hidden])

    @torch.inference_mode()
    def _prefill(self) -> None:
        """The head's own: every token of the prompt but the last, whose row drafts."""
        while len(self._unread) > 1:
            count = min(_CHUNK, len(self._unread) - 1)
            self._states(count)
            self._take(count)

    @torch.inference_mode()
    def _draft(self, k: int) -> Proposal:
        state = self._states(len(self._unread))[-1:]
        self._take(len(self._unread))
        block, place = DrawnBlock(self._run, self._said), self._read

        def read(token: Tensor) -> Tensor:
            nonlocal state, place
            state = self._head.states(state, token[None], place, self._cache)
            place += 1
            return self._head.logits(state)[0]

        count = block.fill(self._head.logits(state)[0], k, read)
        return block.proposal(None, count + 1)

    def _states(self, count: int) -> Tensor:
        """The features at the next `count` unread tokens: (count, width)."""
        ids = torch.tensor(self._unread[:count], device=self._run.target.device)
        return self._head.states(self._features[:count], ids, self._read, self._cache)

    def _take(self, count: int) -> None:
        self._read += count
        self._unread, self._features = self._unread[count:], self._features[count:]
