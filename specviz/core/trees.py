"""A tree of drafted tokens: who follows whom, as the mask of a pass and the rule need it.

Nodes are numbered so that each follows an earlier one, or the context (-1). Knows shapes only: no ids, no
probabilities, no device.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property

import numpy
from numpy.typing import NDArray

from specviz.core.errors import InputError


@dataclass(frozen=True)
class Tree:
    """`parents` (n,): the node that each node follows, -1 for the context. Raises InputError for what is no tree.

    Several nodes may follow the context: the context is the root, and the nodes are what grows from it.
    """

    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "parents", tuple(operator.index(parent) for parent in self.parents))
        except TypeError as error:
            raise InputError("The parents of a tree must be whole numbers, one for each token.") from error
        for index, parent in enumerate(self.parents):
            if not -1 <= parent < index:
                raise InputError(
                    f"Token {index} of a tree must follow an earlier token or the context (-1), not token {parent}."
                )

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def is_chain(self) -> bool:
        """Whether each token follows the one before it."""
        return self.parents == tuple(range(-1, len(self) - 1))

    @cached_property
    def ancestors(self) -> NDArray[numpy.bool_]:
        """(n, n): row i marks the nodes on the way to node i, itself among them."""
        table = numpy.eye(len(self), dtype=bool)
        for index, parent in enumerate(self.parents):
            if parent >= 0:
                table[index] |= table[parent]
        return table

    @property
    def depths(self) -> NDArray[numpy.int64]:
        """(n,): nodes before each on its way; 0 where it follows the context."""
        return self.ancestors.sum(1) - 1

    @cached_property
    def earlier_siblings(self) -> NDArray[numpy.bool_]:
        """(n, n): row i marks the nodes before node i that follow the same one."""
        parents = numpy.array(self.parents, dtype=numpy.int64)
        return numpy.tril(parents[:, None] == parents, -1)

    @property
    def ranks(self) -> tuple[tuple[int, ...], ...]:
        """The nodes that are their parent's first child, then those that are its second, and so on."""
        place = self.earlier_siblings.sum(1)
        return tuple(tuple(numpy.flatnonzero(place == rank).tolist()) for rank in range(place.max(initial=-1) + 1))
