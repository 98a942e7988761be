"""Strategies that draft trees, for tests: random ones that hold the truth now and then, and told ones."""

import random
from dataclasses import dataclass
from typing import Any

from specviz.drafting import Drafter, Proposal, Strategy


@dataclass(frozen=True)
class Told(Strategy):
    """Proposes what it is told to, one (ids, parents) a round, then nothing."""

    blocks: Any

    def start(self, run):
        return _Told(iter(self.blocks))


class _Told(Drafter):
    def __init__(self, blocks):
        self._blocks = blocks

    def propose(self, k):
        ids, parents = next(self._blocks, ((), None))
        return Proposal(tuple(ids), parents=None if parents is None else tuple(parents))


@dataclass(frozen=True)
class Forest(Strategy):
    """Random trees of random tokens; a child that continues `truth`, the target's own text, is among them at times.

    `luck` is the chance of it at each node that could have one, so that some paths are accepted and some are not.
    """

    truth: tuple[int, ...]
    vocabulary: int
    seed: int = 0
    luck: float = 0.5

    def start(self, run):
        return _Forest(self, random.Random(self.seed), len(run.prompt_ids))


class _Forest(Drafter):
    def __init__(self, strategy, rng, prompt_length):
        self._strategy, self._rng, self._written = strategy, rng, -prompt_length

    def observe(self, kept_ids, seen):
        self._written += len(kept_ids)

    def propose(self, k):
        rng, truth = self._rng, self._strategy.truth[self._written :]
        ids, parents, right = [], [], {-1: 0}  # right: nodes on the true path, and how far along it they are
        for node in range(k):
            parent = rng.choice([*right, *range(-1, node), node - 1])
            token = rng.randrange(self._strategy.vocabulary)
            depth = right.get(parent)
            if depth is not None and depth < len(truth) and rng.random() < self._strategy.luck:
                token = truth[depth]
            if depth is not None and depth < len(truth) and token == truth[depth] and depth + 1 not in right.values():
                right[node] = depth + 1
            ids.append(token)
            parents.append(parent)
        return Proposal(tuple(ids), parents=tuple(parents))


def random_parents(rng, count):
    return tuple(rng.randrange(-1, node) for node in range(count))


def way(parents, node):
    """The nodes from the context to `node`, itself included."""
    nodes = []
    while node >= 0:
        nodes.append(node)
        node = parents[node]
    return nodes[::-1]
