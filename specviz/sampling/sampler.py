"""One sampler for drafting and verifying: logits to the distribution used, and the accept / residual rule.

Pure tensor functions on `(rows, vocabulary)` float32 tensors; no model, no text, no host transfer. The same
`distribution` makes q for the draft and p for the target, so the rule and the sampler cannot disagree.

The rule is speculative sampling (Leviathan et al. 2023; Chen et al. 2023): keep a drafted token x iff
u < p(x) / q(x) for u uniform on [0, 1), else draw from norm(max(0, p - q)); after full acceptance draw from p.

In a tree the children of a node are tested in the order of their numbers, each against what the rejections before it
have left: a rejected child turns p into norm(max(0, p - q)) (SpecInfer, Miao et al. 2024; EAGLE, Li et al. 2024). So q
of a child must be what it was drawn from given its earlier siblings: renormalised without them where siblings differ by
construction. The rule descends into the first child that it keeps, and draws from what is left where it keeps none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy
import torch
from torch import Tensor

from specviz.core.settings import Settings
from specviz.core.trees import Tree

# Enough for any usual top-p; a full sort only where these hold less than top_p of the mass.
_NUCLEUS = 512
_SMALLEST = 1e-30  # a smaller temperature would be 0 in float32


@dataclass(frozen=True, slots=True)
class Decision:
    """What the rule decided about one block of drafts; tensors on the device, not yet read.

    `accepted` (): drafts kept before the first rejection; `target` (): the id that follows them;
    `draft_probs`, `target_probs` (n,): q and p of each drafted token; `draws` (n,): the u's, None when greedy.
    `draw_prob` (): the probability of `target` in what it was drawn from; `residual` (vocabulary,): that very
    distribution, None when greedy. Of a tree, else None: `path` (n,): whether a node was accepted; `overlaps` (n,):
    the chance that the rule, once at a node's parent, takes this child, so that siblings add up. In a tree
    `target_probs` are what is left of p when the node's turn comes.
    """

    accepted: Tensor
    target: Tensor
    draft_probs: Tensor | None
    target_probs: Tensor | None
    draws: Tensor | None
    draw_prob: Tensor | None
    residual: Tensor | None
    path: Tensor | None = None
    overlaps: Tensor | None = None


class Counts:
    """How often each id stands in prompt and output (`seen`), and in the output (`written`): (vocabulary,) each."""

    def __init__(self, prompt_ids: Sequence[int], vocabulary: int, device: torch.device) -> None:
        self.written = torch.zeros(vocabulary, device=device)
        self.seen = torch.zeros(vocabulary, device=device)
        self._add(self.seen, prompt_ids)

    def add(self, ids: Sequence[int]) -> None:
        """Count ids that were written."""
        self._add(self.seen, ids)
        self._add(self.written, ids)

    @staticmethod
    def _add(counts: Tensor, ids: Sequence[int]) -> None:
        index = torch.as_tensor(ids, dtype=torch.long, device=counts.device)
        counts.index_add_(0, index, torch.ones(len(index), device=counts.device))


class Draws:
    """A seeded stream of uniform numbers on [0, 1), made on the CPU in blocks so that a device need not wait.

    `stream` tells apart the streams of one seed: a lane's drafts and its verdicts never share numbers.
    """

    _BLOCK = 4096

    def __init__(self, seed: int, stream: int, device: torch.device) -> None:
        self._generator = numpy.random.default_rng((seed, stream))
        self._device, self._dtype = device, uniform_dtype(device)
        self._block = torch.empty(0, dtype=self._dtype, device=device)

    def __call__(self, count: int) -> Tensor:
        """The next `count` numbers: (count,)."""
        if count > len(self._block):
            fresh = torch.from_numpy(self._generator.random(max(self._BLOCK, count))).to(self._dtype)
            fresh = fresh.clamp_max(1 - torch.finfo(self._dtype).eps / 2)  # float32 may have rounded up to 1
            self._block = torch.cat([self._block, fresh.to(self._device, non_blocking=True)])
        taken, self._block = self._block[:count], self._block[count:]
        return taken


def uniform_dtype(device: torch.device) -> torch.dtype:
    """float64, so that no draw is coarser than the probability it meets; MPS has float32 only."""
    return torch.float32 if device.type == "mps" else torch.float64


def distribution(logits: Tensor, settings: Settings) -> Tensor:
    """The distribution that a token is drawn from: temperature, then top-k, then top-p, in float32.

    `logits` (rows, vocabulary), penalties already applied; returns the same shape, rows summing to 1.
    At temperature 0 it is a point mass on the argmax.
    """
    logits = logits.float()
    if settings.greedy:
        return torch.zeros_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
    # the maximum goes first: a tiny temperature then sends the others to -inf and overflows nothing
    scaled = (logits - logits.amax(-1, keepdim=True)) / max(settings.temperature, _SMALLEST)
    if 0 < settings.top_k < scaled.shape[-1]:
        smallest = scaled.topk(settings.top_k, dim=-1).values[..., -1:]
        scaled = scaled.masked_fill(scaled < smallest, -torch.inf)
    probs = scaled.softmax(-1)
    return keep_nucleus(probs, settings.top_p) if settings.top_p < 1.0 else probs


def keep_nucleus(probs: Tensor, top_p: float) -> Tensor:
    """The smallest set of most probable tokens whose mass reaches `top_p`, renormalised (Holtzman et al. 2020)."""
    width = min(_NUCLEUS, probs.shape[-1])
    top, index = probs.topk(width, dim=-1)
    # reading the mass would make the host wait, so an accelerator always sorts
    if width < probs.shape[-1] and (probs.device.type != "cpu" or bool((top.sum(-1) < top_p).any())):
        top, index = probs.sort(-1, descending=True)
    before = top.cumsum(-1) - top
    beyond = before >= top_p
    beyond[..., 0] = False  # the most probable token stays, however small top_p is
    top = top.masked_fill(beyond, 0.0)
    kept = torch.zeros_like(probs).scatter_(-1, index, top)
    return kept / kept.sum(-1, keepdim=True)


def penalise(
    logits: Tensor, settings: Settings, seen: Tensor, written: Tensor, drafts: Tensor, tree: Tree | None = None
) -> Tensor:
    """Logits after repetition (prompt and output), presence and frequency (output) penalties.

    `logits` (n + 1, vocabulary); `seen`, `written` (vocabulary,) count each id in prompt and output, and in the
    output; `drafts` (n,) are the tokens that rows 1.. come after: row i counts the first i of them, and in a tree
    those on the way to node i - 1, itself among them.
    Repetition as in CTRL (Keskar et al. 2019), presence and frequency as in the OpenAI API.
    """
    ahead = torch.zeros_like(logits, dtype=torch.float32)
    if drafts.numel():
        ways = numpy.tri(len(drafts), dtype=bool) if tree is None else tree.ancestors
        rows, nodes = torch.from_numpy(numpy.argwhere(ways)).to(logits.device).unbind(-1)
        ahead.index_put_((rows + 1, drafts[nodes]), ahead.new_ones(()), accumulate=True)  # repeats of an id add up
    logits = logits.float()
    if settings.repetition_penalty != 1.0:
        penalty = settings.repetition_penalty
        punished = torch.where(logits > 0, logits / penalty, logits * penalty)
        logits = torch.where(seen + ahead > 0, punished, logits)
    if settings.presence_penalty or settings.frequency_penalty:
        counts = written + ahead
        logits = logits - settings.frequency_penalty * counts - settings.presence_penalty * (counts > 0)
    return logits


def draw(probs: Tensor, u: Tensor) -> Tensor:
    """The token at the quantile `u` of each row: (rows, vocabulary), (rows,) -> (rows,) ids.

    The first index whose cumulative mass exceeds u times the total, so a token of probability 0 is never drawn.
    """
    cumulative = probs.to(u.dtype).cumsum(-1)
    total = cumulative[..., -1:]
    # u < 1 may still round up to the total
    point = torch.minimum(u[..., None] * total, torch.nextafter(total, torch.zeros_like(total)))
    found = torch.searchsorted(cumulative, point, right=True).squeeze(-1)
    return found.clamp_max(probs.shape[-1] - 1)  # beyond only where the numbers are none; the engine says so


def residual(p: Tensor, q: Tensor) -> Tensor:
    """norm(max(0, p - q)), or p where that has no mass: (..., vocabulary)."""
    rest = (p - q).clamp_min(0.0)
    mass = rest.sum(-1, keepdim=True)
    usable = torch.isfinite(mass) & (mass > 0)
    return torch.where(usable, rest / mass, p)


def decide_greedy(choices: Tensor, drafts: Tensor) -> Decision:
    """Argmax against argmax. `choices` (..., n + 1): the target's; `drafts` (..., n)."""
    matches = choices[..., :-1] == drafts
    accepted = matches.long().cumprod(-1).sum(-1)
    target = choices.gather(-1, accepted[..., None]).squeeze(-1)
    return Decision(accepted, target, torch.ones_like(drafts, dtype=torch.float32), matches.float(), None, None, None)


def decide_sampled(p: Tensor, q: Tensor | None, drafts: Tensor, draws: Tensor, last_draw: Tensor) -> Decision:
    """The accept / residual rule for a chain, on the device; leading dimensions are independent blocks.

    `p` (..., n + 1, vocabulary); `q` (..., n, vocabulary), or None for drafts that were not drawn (one-hot);
    `drafts` (..., n) ids; `draws` (..., n) and `last_draw` (...) uniform on [0, 1).
    """
    target_probs = p[..., :-1, :].gather(-1, drafts[..., None]).squeeze(-1)
    if q is None:
        draft_probs = torch.ones_like(target_probs)
    else:
        draft_probs = q.gather(-1, drafts[..., None]).squeeze(-1)
    kept = draws * draft_probs.to(draws.dtype) < target_probs.to(draws.dtype)
    accepted = kept.long().cumprod(-1).sum(-1)
    rest = residual(_row(p, accepted), _draft_row(q, drafts, accepted, p.shape[-1]))
    target = draw(rest, last_draw)
    draw_prob = rest.gather(-1, target[..., None]).squeeze(-1)
    return Decision(accepted, target, draft_probs, target_probs, draws, draw_prob, rest)


def decide_greedy_tree(choices: Tensor, drafts: Tensor, tree: Tree) -> Decision:
    """Follow the target's argmax from the root. `choices` (n + 1,): after the context, then after each node."""
    matches = choices[_parent_rows(tree, drafts.device)] == drafts
    path, stop = _walk(matches, tree)
    ones, matched = torch.ones_like(drafts, dtype=torch.float32), matches.float()
    return Decision(path.sum(), choices[stop], ones, matched, None, None, None, path, matched)


def decide_sampled_tree(
    p: Tensor, q: Tensor | None, drafts: Tensor, tree: Tree, draws: Tensor, last_draw: Tensor
) -> Decision:
    """The accept / residual rule for a tree of n nodes, on the device.

    `p` (n + 1, vocabulary): after the context, then after each node; `q` (n, vocabulary), or None for nodes that were
    not drawn (one-hot); `draws` (n,) uniform on [0, 1), one a node in their order; `last_draw` () for the last token.
    """
    if q is None:
        draft_probs = torch.ones(len(drafts), device=p.device)
        met, overlaps, left = _meet_one_hot(p, drafts, tree)
    else:
        draft_probs = q.gather(-1, drafts[:, None]).squeeze(-1)
        met, overlaps, left = _meet_drawn(p, q, drafts, tree)
    kept = draws * draft_probs.to(draws.dtype) < met.to(draws.dtype)
    path, stop = _walk(kept, tree)
    rest = left(stop)
    target = draw(rest, last_draw)
    return Decision(path.sum(), target, draft_probs, met, draws, rest[target], rest, path, overlaps)


Left = Callable[[Tensor], Tensor]


def _meet_drawn(p: Tensor, q: Tensor, drafts: Tensor, tree: Tree) -> tuple[Tensor, Tensor, Left]:
    """p of each node as it is when its turn comes (n,), the chance that it is taken (n,), and what a row leaves."""
    rest = p.clone()
    chance = p.new_ones(len(p))  # that no child of this row has been taken yet
    met, overlaps = p.new_zeros(len(drafts)), p.new_zeros(len(drafts))
    rows = _parent_rows(tree, p.device)
    for rank in tree.ranks:
        nodes = torch.tensor(rank, device=p.device)
        parents = rows[nodes]
        here = rest[parents]
        met[nodes] = here.gather(-1, drafts[nodes, None]).squeeze(-1)
        refused = (here - q[nodes]).clamp_min(0.0).sum(-1).clamp_max(1.0)  # 1 - sum(min(p, q))
        overlaps[nodes] = chance[parents] * (1.0 - refused)
        chance[parents] *= refused
        rest[parents] = residual(here, q[nodes])
    return met, overlaps, lambda stop: rest[stop]


def _meet_one_hot(p: Tensor, drafts: Tensor, tree: Tree) -> tuple[Tensor, Tensor, Left]:
    """`_meet_drawn` for nodes that were not drawn: a rejection takes the token out of p, so no row need be copied."""
    earlier = torch.from_numpy(tree.earlier_siblings).to(p.device)
    rows = _parent_rows(tree, p.device)
    twins = (earlier & (drafts[:, None] == drafts)).any(-1)  # an earlier sibling has taken this token out already
    own = p[rows, drafts].masked_fill(twins, 0.0)
    precise = own.to(uniform_dtype(p.device))
    before = earlier.to(precise.dtype) @ precise
    met = precise / (1.0 - before).clamp_min(torch.finfo(precise.dtype).tiny)

    def left(stop: Tensor) -> Tensor:
        children = (rows == stop).to(p.dtype)
        return residual(p[stop], torch.zeros_like(p[stop]).index_add_(0, drafts, children))

    return met.clamp_max(1.0), own, left


def _walk(kept: Tensor, tree: Tree) -> tuple[Tensor, Tensor]:
    """From what the rule would keep (n,): the nodes on the path (n,), and the row () of p at which it stops."""
    earlier, ancestors = (torch.from_numpy(table).to(kept.device) for table in (tree.earlier_siblings, tree.ancestors))
    taken = kept & ~(earlier & kept).any(-1)
    path = (taken | ~ancestors).all(-1)
    # a node's number is above its ancestors', so the last on the path is the deepest
    return path, (path * torch.arange(1, len(path) + 1, device=path.device)).amax()


def _parent_rows(tree: Tree, device: torch.device) -> Tensor:
    """The row of p or of the logits that each node is tested against: (n,); row 0 is the context's."""
    return torch.tensor(tree.parents, dtype=torch.long).add_(1).to(device)


def _row(table: Tensor, index: Tensor) -> Tensor:
    """table[..., index, :] for a tensor index, without reading it: (..., rows, v), (...) -> (..., v)."""
    where = index[..., None, None].expand(*index.shape, 1, table.shape[-1])
    return table.gather(-2, where).squeeze(-2)


def _draft_row(q: Tensor | None, drafts: Tensor, accepted: Tensor, vocabulary: int) -> Tensor:
    """q at the rejected position, and zero after full acceptance, where the bonus is drawn from p itself."""
    count = drafts.shape[-1]
    if count == 0:
        return torch.zeros(*accepted.shape, vocabulary, device=drafts.device)
    inside = (accepted < count).float()[..., None]
    row = accepted.clamp_max(count - 1)
    if q is not None:
        return _row(q, row) * inside
    one_hot = torch.zeros(*accepted.shape, vocabulary, device=drafts.device)
    return one_hot.scatter_(-1, drafts.gather(-1, row[..., None]), 1.0) * inside
