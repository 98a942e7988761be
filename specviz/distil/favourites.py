"""What a target favours after each token if it knows nothing else: the last resort of a free draft.

At the very first position many models say little that makes sense, so a token or none goes before: the one after which
the favourites come true most often in a sample of the target's own text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from specviz.distil.corpus import Conversation
from specviz.distil.teacher import Teacher
from specviz.sources import Progress
from specviz.sources.progress import part

_ROWS = 256  # of a pass: each gives logits over the whole vocabulary
_FREQUENT = 4  # of the text's most frequent tokens are tried
Prefix = tuple[int, ...]


def favourites(teacher: Teacher, count: int, prefix: Prefix, progress: Progress) -> Tensor:
    """(vocabulary, count): the best successors of each token that stands alone, after `prefix`, best first."""
    return _after(teacher, torch.arange(teacher.vocabulary), count, prefix, progress)


def best_prefix(teacher: Teacher, sample: Sequence[Conversation], count: int, progress: Progress) -> Prefix:
    """Nothing, a special token, or a frequent one of the text: what makes most of the `count` favourites come true."""
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


def _hits(teacher: Teacher, pairs: Counter[tuple[int, int]], count: int, prefix: Prefix, progress: Progress) -> int:
    """How many of the pairs (token, next token) have the next among the favourites."""
    tokens = sorted({token for token, _ in pairs})
    found = _after(teacher, torch.tensor(tokens, dtype=torch.long), count, prefix, progress).tolist()
    known = dict(zip(tokens, map(set, found), strict=True))
    return sum(times for (token, after), times in pairs.items() if after in known[token])


@torch.inference_mode()
def _after(teacher: Teacher, ids: Tensor, count: int, prefix: Prefix, progress: Progress) -> Tensor:
    found, device = [torch.empty(0, min(count, teacher.vocabulary), dtype=torch.long)], teacher.module.device
    for start in range(0, len(ids), _ROWS):
        progress(start / len(ids), "Asking the target what it favours after each token alone")
        rows = ids[start : start + _ROWS].to(device)
        before = torch.tensor(prefix, dtype=torch.long, device=device).expand(len(rows), -1)
        logits = teacher.module(torch.cat([before, rows[:, None]], dim=1), logits_to_keep=1).logits[:, -1]
        found.append(logits.topk(min(count, logits.shape[-1]), dim=-1).indices.cpu())
    return torch.cat(found)
