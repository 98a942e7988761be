"""What draft strategies are made of: the strategy itself, their registry, and the machinery that they share."""

from specviz.drafting.registry import make_draft, strategies
from specviz.drafting.strategy import Drafter, Option, Proposal, Run, Seen, Strategy, option

__all__ = ["Drafter", "Option", "Proposal", "Run", "Seen", "Strategy", "make_draft", "option", "strategies"]
