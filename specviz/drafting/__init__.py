"""What draft strategies are made of: the strategy itself, their registry, and the machinery that they share.

Import levels; a module imports only from its right (a test enforces it):

    draft_weights, guesser, model_drafter, ngram_file > bundled_drafts, drawn_block, guess_sources, registry >
    feature_pass, ngrams, retokenising, shared_tokens, strategy, target_facts, vocabulary
"""

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
