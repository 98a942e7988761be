"""How figures look on the light and on the dark page: inks, one look per lane, one per phase.

Colour is never the only cue: lanes also differ in dash, marker and hatching, phases in hatching.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Literal

import plotly.graph_objects as go

from specviz.core.errors import InputError

Theme = Literal["light", "dark"]
CLEAR = "rgba(0,0,0,0)"

# accepted, rejected and correction of the page, then one more that keeps apart from them for colour-blind readers
_INKS = {
    "light": {"text": "#222222", "grid": "#DDDDDD", "lanes": ("#333333", "#1F5FBF", "#B34700", "#7A4FA3")},
    "dark": {"text": "#EEEEEE", "grid": "#444444", "lanes": ("#FFFFFF", "#56B4E9", "#FF9E6B", "#C9A6F0")},
}
_DASHES = ("solid", "dash", "dot", "dashdot")
_MARKERS = ("circle", "square", "diamond", "triangle-up")
_HATCHES = ("", "/", ".", "x")
PHASES = ("draft", "verify", "other")


@dataclass(frozen=True, slots=True)
class Look:
    """A series' colour and its cues beside colour."""

    colour: str
    dash: str
    marker: str
    hatch: str

    def bar(self) -> dict:
        return {"color": self.colour, "pattern": {"shape": self.hatch, "fillmode": "replace"}}

    def line(self, dash: str | None = None) -> dict:
        return {"color": self.colour, "dash": dash or self.dash}


def lane_look(number: int, theme: Theme) -> Look:
    """The look of the lane that is `number` in the header, from 0 (standard)."""
    inks, turn = _inks(theme)["lanes"], number % len(_DASHES)
    return Look(inks[turn], _DASHES[turn], _MARKERS[turn], _HATCHES[turn])


def phase_look(phase: str, theme: Theme) -> Look:
    """Drafting in the page's accepted colour, verifying in its neutral one, the rest in a third."""
    number = PHASES.index(phase)
    return Look(_inks(theme)["lanes"][(1, 0, 3)[number]], "solid", "circle", ("/", "", ".")[number])


def blank(title: str, x: str, y: str, theme: Theme) -> go.Figure:
    """A figure with titles and axes and nothing in it, clear where the page shows through."""
    inks = _inks(theme)
    figure = go.Figure()
    figure.update_layout(
        template="none",
        title={"text": title, "font": {"size": 16}, "x": 0.02},
        font={"color": inks["text"], "family": "system-ui, sans-serif"},
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        legend={"orientation": "h", "y": -0.25, "bgcolor": CLEAR},
        modebar={"bgcolor": CLEAR, "color": inks["text"], "activecolor": inks["text"]},
        margin={"l": 60, "r": 20, "t": 50, "b": 60},
        barmode="group",
        height=420,
    )
    dress_axes(figure, theme)
    figure.update_xaxes(title=x)
    figure.update_yaxes(title=y)
    return figure


def dress_axes(figure: go.Figure, theme: Theme) -> None:
    inks = _inks(theme)
    lines = {"gridcolor": inks["grid"], "linecolor": inks["text"], "zerolinecolor": inks["grid"]}
    figure.update_xaxes(**lines)
    figure.update_yaxes(rangemode="tozero", **lines)


def say(figure: go.Figure, sentence: str) -> go.Figure:
    """Put a sentence where the data would be."""
    where = {"x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
    figure.add_annotation(text=sentence, showarrow=False, **where)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure


def label(name: str, limit: int = 40) -> str:
    """A lane's name for a legend: plotly reads tags in its texts, and a name may hold any.

    A long one loses its middle: names that are alike differ at their end.
    """
    half = limit // 2
    return html.escape(name if len(name) <= limit else f"{name[:half]}…{name[1 + half - limit :]}", quote=False)


def _inks(theme: Theme) -> dict:
    if theme not in _INKS:
        raise InputError(f"A figure's theme is 'light' or 'dark', not {theme!r}.")
    return _INKS[theme]
