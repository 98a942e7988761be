"""What draft strategies are made of: the strategy itself, their registry, and the machinery that they share."""

from specviz.drafting.registry import checked, faults, make_draft, read_draft, strategies, strategy_of
from specviz.drafting.strategy import Drafter, Option, Proposal, Run, Seen, Strategy, option

__all__ = [
    "Drafter",
    "Option",
    "Proposal",
    "Run",
    "Seen",
    "Strategy",
    "checked",
    "faults",
    "make_draft",
    "option",
    "read_draft",
    "strategies",
    "strategy_of",
]
