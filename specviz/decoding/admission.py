"""Check what a strategy proposes before the target reads it.

Anybody may write a strategy, and an id that the target lacks would crash a GPU process, not just fail a lane.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import torch
from torch import Tensor

from specviz.core.errors import InputError, PairError
from specviz.core.trees import Tree
from specviz.drafting import Proposal, Strategy
from specviz.models import LanguageModel


def admit(proposal: Proposal, k: int, strategy: Strategy, target: LanguageModel) -> tuple[Tensor, Tree | None]:
    """The drafted ids (n,) on the target's device, and their tree (None: a chain).

    Raises PairError, naming the strategy, for more than k tokens or for a block that is neither a chain nor a tree. The
    ids may still be in transfer to the device: `check_ids` checks them when the round is read.
    """
    try:
        ids = _ids(proposal.ids, target.device)
        tree = None if proposal.parents is None else Tree(tuple(proposal.parents))
    except (TypeError, ValueError, RuntimeError, InputError) as error:
        raise _refusal(strategy, f"something that is not a block of tokens ({error})") from error
    if len(ids) > k:
        raise _refusal(strategy, f"{len(ids)} tokens, but at most {k} were asked for")
    if tree is not None and len(tree) != len(ids):
        raise _refusal(strategy, f"{len(ids)} tokens with the parents of {len(tree)}")
    if proposal.probs is not None and proposal.probs.shape != (len(ids), target.vocabulary):
        raise _refusal(strategy, f"probabilities of the shape {tuple(proposal.probs.shape)} for {len(ids)} tokens")
    return ids, None if tree is None or tree.is_chain else tree


def harmless(ids: Tensor, target: LanguageModel) -> Tensor:
    """Replace ids that the target lacks, so that a pass is safe before the ids have been checked."""
    return ids.clamp(0, target.vocabulary - 1)


def check_ids(ids: Sequence[int], strategy: Strategy, target: LanguageModel) -> None:
    """Raises PairError, naming the strategy, for an id that the target does not have."""
    strange = next((token for token in ids if not 0 <= token < target.vocabulary), None)
    if strange is not None:
        last = target.vocabulary - 1
        raise _refusal(strategy, f"the token id {strange}, which {target.name} does not have (0 to {last})")


def _ids(ids: Tensor | Sequence[int], device: torch.device) -> Tensor:
    if not isinstance(ids, Tensor):
        return torch.tensor([operator.index(token) for token in ids], dtype=torch.long, device=device)
    if ids.is_floating_point() or ids.dim() != 1:
        raise TypeError(f"ids of the shape {tuple(ids.shape)} and the type {ids.dtype}")
    return ids.to(device, torch.long)


def _refusal(strategy: Strategy, what: str) -> PairError:
    name = strategy.name or type(strategy).__name__
    return PairError(f"The draft '{name}' proposed {what}; choose another draft, or fix this one.")
