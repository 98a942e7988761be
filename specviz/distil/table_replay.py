"""Replay known replies to get the tau of drafts that run no model, without a pass of the target per draft.

The target's own successors at every position are computed once, in batches. A real run also shows a draft the
successors after rejected tokens, so a strategy that keeps them does slightly better than its replay says.
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

_CONVERSATIONS = 4  # per pass, whose logits are held whole


@dataclass(frozen=True, slots=True)
class ReplayText:
    """A conversation, and the target's successors `choices` (tokens, 8) after each of its tokens, best first."""

    conversation: Conversation
    choices: Tensor


@torch.inference_mode()
def replay_texts(teacher: Teacher, conversations: Sequence[Conversation]) -> tuple[ReplayText, ...]:
    """Compute what the target predicts after every token of these conversations."""
    found = []
    for start in range(0, len(conversations), _CONVERSATIONS):
        part = conversations[start : start + _CONVERSATIONS]
        longest = max(len(each.ids) for each in part)
        # padded on the right, where causal attention hides it
        rows = [[*each.ids, *[0] * (longest - len(each.ids))] for each in part]
        logits = teacher.module(torch.tensor(rows, device=teacher.module.device)).logits
        choices = logits.topk(min(CHOICES, logits.shape[-1]), dim=-1).indices.cpu()
        found += [ReplayText(each, choices[row, : len(each.ids)]) for row, each in enumerate(part)]
    return tuple(found)


def replayed_tau(strategy: Strategy, texts: Sequence[ReplayText], k: int) -> float:
    """Tokens per target pass over these replies, greedy, with k tokens drafted per round."""
    tokens = sum(len(each.conversation.reply) for each in texts)
    return tokens / sum(_rounds(strategy.start(None), each, k) for each in texts)


def _rounds(drafter: Drafter, text: ReplayText, k: int) -> int:
    """How many rounds this reply takes; each keeps the right drafted tokens and one of the target's."""
    ids, at = text.conversation.ids, text.conversation.reply_start
    drafter.observe(ids[:at], Seen(ids[: at - 1], choices=text.choices[: at - 1]))
    rounds = 0
    while at < len(ids):
        kept = 1 + _agreed(*_drafted(drafter, k), ids[at:])
        seen = slice(at - 1, at - 1 + kept)
        drafter.observe(ids[at : at + kept], Seen(ids[seen], None, text.choices[seen]))
        at, rounds = at + kept, rounds + 1
    return rounds


def _drafted(drafter: Drafter, k: int) -> tuple[list[int], list[int]]:
    """(ids, parents) of the next block."""
    proposal = drafter.propose(k)
    ids = [int(token) for token in proposal.ids]
    return ids, list(proposal.parents or range(-1, len(ids) - 1))


def _agreed(ids: list[int], parents: list[int], text: tuple[int, ...]) -> int:
    """How many tokens of `text`, its last excluded, the drafted chain or tree holds from its root on."""
    child = {(parent, token): node for node, (token, parent) in enumerate(zip(ids, parents, strict=True))}
    node, depth = -1, 0
    while depth < len(text) - 1 and (node, text[depth]) in child:
        node, depth = child[node, text[depth]], depth + 1
    return depth
