"""Tau of drafts that run no model, by replaying replies that are known: no pass of the target for each draft tried.

The target's own successors at every position are worked out once, in batches. A real run shows a draft some more of
them, those after rejected tokens, so a strategy that keeps them does slightly better than its replay says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.decoding.engine import CHOICES
from specviz.distil.corpus import Conversation
from specviz.distil.teacher import Teacher
from specviz.drafting import Drafter, Seen, Strategy

_CONVERSATIONS = 4  # of one pass: their logits are held whole


@dataclass(frozen=True, slots=True)
class Recorded:
    """A conversation, and the target's successors (tokens, 8) after each of its tokens, best first."""

    conversation: Conversation
    choices: Tensor


@torch.inference_mode()
def record(teacher: Teacher, conversations: Sequence[Conversation]) -> tuple[Recorded, ...]:
    """What the target says after every token of these conversations."""
    found = []
    for start in range(0, len(conversations), _CONVERSATIONS):
        part = conversations[start : start + _CONVERSATIONS]
        longest = max(len(each.ids) for each in part)
        rows = [[*each.ids, *[0] * (longest - len(each.ids))] for each in part]
        # padded on the right, where no token of a row sees it
        logits = teacher.module(torch.tensor(rows, device=teacher.module.device)).logits
        choices = logits.topk(min(CHOICES, logits.shape[-1]), dim=-1).indices.cpu()
        found += [Recorded(each, choices[row, : len(each.ids)]) for row, each in enumerate(part)]
    return tuple(found)


def replayed_tau(strategy: Strategy, recorded: Sequence[Recorded], k: int) -> float:
    """Kept tokens a target pass over these replies, greedy, with k tokens drafted in a round."""
    tokens = sum(len(each.conversation.reply) for each in recorded)
    return tokens / sum(_rounds(strategy.start(None), each, k) for each in recorded)


def _rounds(drafter: Drafter, recorded: Recorded, k: int) -> int:
    """Rounds that this reply takes: each keeps what was drafted right, and a token of the target's."""
    ids, at = recorded.conversation.ids, recorded.conversation.reply_start
    drafter.observe(ids[:at], Seen(ids[: at - 1], choices=recorded.choices[: at - 1]))
    rounds = 0
    while at < len(ids):
        kept = 1 + _agreed(*_drafted(drafter, k), ids[at:])
        drafter.observe(
            ids[at : at + kept], Seen(ids[at - 1 : at - 1 + kept], None, recorded.choices[at - 1 : at - 1 + kept])
        )
        at, rounds = at + kept, rounds + 1
    return rounds


def _drafted(drafter: Drafter, k: int) -> tuple[list[int], list[int]]:
    """(ids, parents) of what is drafted next."""
    proposal = drafter.propose(k)
    ids = [int(token) for token in proposal.ids]
    return ids, list(proposal.parents or range(-1, len(ids) - 1))


def _agreed(ids: list[int], parents: list[int], text: tuple[int, ...]) -> int:
    """How many tokens of `text`, its last left out, the drafted chain or tree holds from its root on."""
    child = {(parent, token): node for node, (token, parent) in enumerate(zip(ids, parents, strict=True))}
    node, depth = -1, 0
    while depth < len(text) - 1 and (node, text[depth]) in child:
        node, depth = child[node, text[depth]], depth + 1
    return depth
