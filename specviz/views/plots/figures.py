"""One function per figure; each draws what its table holds and nothing else."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from specviz.traces import Event
from specviz.views.lane_names import short_names
from specviz.views.plots import tables
from specviz.views.plots.figure_theme import PHASES, Look, Theme, blank, dress_axes, label, lane_look, phase_look, say

NOTHING_DRAFTED = "No lane has drafted a token."
NO_ROUNDS = "No lane has finished a round."
ONE_SOURCE = "No lane has a draft with several sources."
NO_PREDICTION = "There is no timed draft to compare with standard decoding."


def acceptance_by_position(events: Iterable[Event], theme: Theme = "light") -> go.Figure:
    """Share accepted at each drafted position: of the rounds that reached it, and of all that drafted (vLLM's)."""
    events = tuple(events)
    table = tables.acceptance_by_position_table(events)
    figure = blank("Acceptance by position", "drafted position, in a tree the depth", "accepted", theme)
    for name, look, rows in _lanes(events, table, theme):
        for column, dash, text in (("conditional", "solid", "of rounds that reached it"), ("vllm", "dot", "vLLM's")):
            symbol = look.marker if column == "conditional" else f"{look.marker}-open"
            _line(figure, rows["position"], rows[column], f"{label(name)}: {text}", look.line(dash), symbol)
    figure.update_yaxes(tickformat=".0%", range=[0, 1.05])
    figure.update_xaxes(dtick=1 if table["position"].max() <= 20 else None)
    return _or_say(figure, table, NOTHING_DRAFTED)


def accepted_lengths(events: Iterable[Event], theme: Theme = "light") -> go.Figure:
    """How many drafted tokens a round kept, with the rounds that one constant alpha would give."""
    events = tuple(events)
    table = tables.accepted_lengths_table(events)
    figure = blank("Accepted tokens per round", "accepted draft tokens", "rounds", theme)
    for name, look, rows in _lanes(events, table, theme):
        figure.add_bar(x=rows["accepted"], y=rows["rounds"], name=label(name), marker=look.bar())
        text = f"{label(name)}: geometric, same alpha"
        _line(figure, rows["accepted"], rows["geometric"], text, look.line("dash"), f"{look.marker}-open")
    return _or_say(figure, table, NOTHING_DRAFTED)


def drafts_by_source(events: Iterable[Event], theme: Theme = "light") -> go.Figure:
    """Accepted tokens by the source that guessed them, under a mark at how many it drafted."""
    events = tuple(events)
    table = tables.drafts_by_source_table(events)
    figure = blank("Drafts by source", "", "tokens", theme)
    for name, look, rows in _lanes(events, table, theme):
        sources = [label(source) for source in rows["source"]]
        figure.add_bar(x=sources, y=rows["accepted"], name=f"{label(name)}: accepted", marker=look.bar())
        mark = {"symbol": f"{look.marker}-open", "size": 11, "color": look.colour}
        figure.add_scatter(x=sources, y=rows["drafted"], name=f"{label(name)}: drafted", mode="markers", marker=mark)
    figure.update_xaxes(type="category")
    return _or_say(figure, table, ONE_SOURCE)


def speedup_by_k(events: Iterable[Event], theme: Theme = "light") -> go.Figure:
    """Predicted speed-up for each k, from the lane's acceptance and costs, with the measured one marked."""
    events = tuple(events)
    table = tables.speedup_by_k_table(events)
    figure = blank("Speed-up over k", "k, drafted tokens (nodes of a tree) per round", "speed-up", theme)
    for name, look, rows in _lanes(events, table, theme):
        predicted, measured = (rows[rows["kind"] == kind] for kind in ("predicted", "measured"))
        if len(predicted):
            line = {"line": look.line(), "mode": "lines"}
            figure.add_scatter(x=predicted["k"], y=predicted["speedup"], name=f"{label(name)}: predicted", **line)
        marker = {"symbol": look.marker, "size": 12, "color": look.colour}
        spot = {"mode": "markers", "marker": marker}
        figure.add_scatter(x=measured["k"], y=measured["speedup"], name=f"{label(name)}: measured", **spot)
    if len(table):
        figure.add_hline(y=1, line={"dash": "dot", "color": lane_look(0, theme).colour, "width": 1})
    return _or_say(figure, table, NO_PREDICTION)


def passes_per_token(events: Iterable[Event], theme: Theme = "light") -> go.Figure:
    """Forward passes of target and draft per kept token."""
    events = tuple(events)
    table, names = tables.passes_per_token_table(events), short_names(events)
    figure = blank("Passes per kept token", "", "passes per token", theme)
    lanes = ["<br>".join(textwrap.wrap(label(names[name]), 14, break_long_words=False)) for name in table["lane"]]
    for column, phase in (("target", "verify"), ("draft", "draft")):
        look = phase_look(phase, theme)
        figure.add_bar(x=lanes, y=table[column], name=f"{column} passes", marker=look.bar())
    figure.update_xaxes(type="category", tickangle=0)
    return _or_say(figure, table, NO_ROUNDS)


def seconds_by_round(events: Iterable[Event], theme: Theme = "light") -> go.Figure:
    """Where each round's time went, drafting, verifying and the rest stacked; one row per lane, one scale."""
    events = tuple(events)
    table, shorts = tables.seconds_by_round_table(events), short_names(events)
    figure = blank("Seconds of each round", "round", "seconds", theme)
    if table.empty:
        return say(figure, NO_ROUNDS)
    names = list(dict.fromkeys(table["lane"]))
    titles = [label(shorts[name]) for name in names]
    # the gap between rows must shrink with their number
    rows = make_subplots(rows=len(names), shared_yaxes="all", subplot_titles=titles, vertical_spacing=0.3 / len(names))
    rows.update_layout(figure.layout, barmode="stack", height=140 + 180 * len(names))
    rows.update_layout(legend={"y": -0.5 / len(names)}, xaxis={"title": {"text": ""}})
    for row, name in enumerate(names, start=1):
        _stack(rows, row, table[table["lane"] == name], theme)
    dress_axes(rows, theme)
    rows.update_xaxes(title="round", row=len(names))
    rows.update_yaxes(title="seconds")
    return rows


def tokens_by_time(events: Iterable[Event], theme: Theme = "light") -> go.Figure:
    """Kept tokens against each lane's own clock; a round's tokens arrive together, so the line is a staircase."""
    events = tuple(events)
    table = tables.tokens_by_time_table(events)
    figure = blank("Tokens over time", "seconds on the lane's own clock", "kept tokens", theme)
    for name, look, rows in _lanes(events, table, theme):
        line = {**look.line(), "shape": "hv"}
        figure.add_scatter(x=rows["seconds"], y=rows["tokens"], mode="lines", name=label(name), line=line)
    return _or_say(figure, table, NO_ROUNDS)


def _lanes(events: tuple[Event, ...], table: pd.DataFrame, theme: Theme) -> Iterator[tuple[str, Look, pd.DataFrame]]:
    """Short names of lanes that the table has rows of, each with the look of its place in the header."""
    for number, (name, short) in enumerate(short_names(events).items()):
        rows = table[table["lane"] == name]
        if len(rows):
            yield short, lane_look(number, theme), rows


def _line(figure: go.Figure, x: pd.Series, y: pd.Series, name: str, line: dict, symbol: str) -> None:
    marker = {"symbol": symbol, "size": 8, "color": line["color"]}
    figure.add_scatter(x=x, y=y, name=name, mode="lines+markers", line=line, marker=marker)


def _stack(figure: go.Figure, row: int, rounds: pd.DataFrame, theme: Theme) -> None:
    for phase in PHASES:
        marker = {**phase_look(phase, theme).bar(), "line": {"width": 0}}
        options = {"name": phase, "legendgroup": phase, "showlegend": row == 1}
        figure.add_bar(x=rounds["round"], y=rounds[phase], marker=marker, row=row, col=1, **options)


def _or_say(figure: go.Figure, table: pd.DataFrame, sentence: str) -> go.Figure:
    return say(figure, sentence) if table.empty else figure
