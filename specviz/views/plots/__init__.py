"""Report figures of a finished or loaded race: trace -> table of numbers -> plotly figure, returned and never shown.

Each figure has a sibling `*_table` with the very numbers it draws. All take an iterable of events; a race without the
numbers gives an empty table and a figure that says so. Figures call lanes by the short names of `plots.names`, tables
by their own. Never imports torch, transformers or gradio.

Import levels; a module imports only from its right (a test enforces it):

    figures > figure_theme, tables
"""

from specviz.views.plots.figures import (
    acceptance_by_position,
    accepted_lengths,
    drafts_by_source,
    passes_per_token,
    seconds_by_round,
    speedup_by_k,
    tokens_by_time,
)
from specviz.views.plots.tables import (
    acceptance_by_position_table,
    accepted_lengths_table,
    drafts_by_source_table,
    passes_per_token_table,
    seconds_by_round_table,
    speedup_by_k_table,
    tokens_by_time_table,
)

__all__ = [
    "acceptance_by_position",
    "acceptance_by_position_table",
    "accepted_lengths",
    "accepted_lengths_table",
    "drafts_by_source",
    "drafts_by_source_table",
    "passes_per_token",
    "passes_per_token_table",
    "seconds_by_round",
    "seconds_by_round_table",
    "speedup_by_k",
    "speedup_by_k_table",
    "tokens_by_time",
    "tokens_by_time_table",
]
