"""The figures below a finished race: one plotly figure per question, each with its numbers as a table.

They are drawn once a race is over, and only while the panel is open: plotly is heavy, and rebuilds a figure on every
change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr
import pandas as pd
import plotly.graph_objects as go
from gradio.components.plot import PlotData

from specviz.traces import Event
from specviz.views import plots
from specviz.views.lane_names import short_names

MAX_ROWS = 2000
_FIGURES: tuple[tuple[str, Callable[..., Any], Callable[..., pd.DataFrame]], ...] = (
    ("Acceptance by position", plots.acceptance_by_position, plots.acceptance_by_position_table),
    ("Accepted lengths", plots.accepted_lengths, plots.accepted_lengths_table),
    ("Drafts by source", plots.drafts_by_source, plots.drafts_by_source_table),
    ("Speed-up over k", plots.speedup_by_k, plots.speedup_by_k_table),
    ("Passes per token", plots.passes_per_token, plots.passes_per_token_table),
    ("Seconds of each round", plots.seconds_by_round, plots.seconds_by_round_table),
    ("Tokens over time", plots.tokens_by_time, plots.tokens_by_time_table),
)
# Shown only for the few races that have such numbers.
_RARE = (plots.drafts_by_source,)
# Plotly's full row of buttons covers the title of a narrow figure; these are the useful ones.
_CONFIG = {"displaylogo": False, "modeBarButtons": [["toImage", "resetScale2d"]]}


@dataclass(frozen=True, slots=True)
class FiguresPanel:
    """The components: the fold, then places, figures and tables in the order of their names."""

    fold: gr.Accordion
    places: tuple[gr.Column, ...]
    figures: tuple[gr.Plot, ...]
    tables: tuple[gr.Dataframe, ...]

    @property
    def outputs(self) -> list[Any]:
        return [*self.places, *self.figures, *self.tables]

    def draw(self, trace: Iterable[Event], theme: str) -> list[Any]:
        """Values of `outputs` for a trace."""
        events = tuple(trace)
        names = short_names(events)
        tables = [table(events) for _, _, table in _FIGURES]
        drawn = [_sent(figure(events, theme)) for _, figure, _ in _FIGURES]
        seen = [
            gr.update(visible=figure not in _RARE or len(rows) > 0)
            for (_, figure, _), rows in zip(_FIGURES, tables, strict=True)
        ]
        return [*seen, *drawn, *(rounded(rows, names) for rows in tables)]


def build_figures() -> FiguresPanel:
    """The folded panel, empty."""
    places, figures, tables = [], [], []
    with gr.Accordion("Figures and their numbers", open=False, elem_id="report") as fold:
        with gr.Row(elem_classes="figures"):
            for name, figure, _ in _FIGURES:
                with gr.Column(min_width=330, elem_classes="figure", visible=figure not in _RARE) as place:
                    figures.append(gr.Plot(label=name, show_label=False, container=False))
                    with gr.Accordion(f"Numbers: {name.lower()}", open=False, elem_classes="numbers"):
                        tables.append(gr.Dataframe(interactive=False, max_height=260, show_label=False))
                places.append(place)
    return FiguresPanel(fold, tuple(places), tuple(figures), tuple(tables))


def rounded(table: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """The table for people: lanes by short names, four digits, at most MAX_ROWS rows."""
    shown = table.head(MAX_ROWS).map(lambda value: float(f"{value:.4g}") if isinstance(value, float) else value)
    return shown.assign(lane=shown["lane"].map(lambda name: names.get(name, name)))


def _sent(figure: go.Figure) -> PlotData:
    """The figure with its buttons: a Figure itself holds no config."""
    return PlotData(type="plotly", plot=json.dumps({**json.loads(figure.to_json()), "config": _CONFIG}))
