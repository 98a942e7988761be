"""Figures draw their tables' numbers, in both themes, with a cue beside colour; an empty race is no exception."""

import inspect
import subprocess
import sys
from dataclasses import replace

import pytest
from support.golden import CURVE, GOLDEN_RACE
from support.named_lanes import ALIKE, STANDARD_LANE, alike, named
from support.scripted import race, script, sourced, standard

from specviz.core.errors import InputError
from specviz.traces import DraftToken, RaceStarted, Round, RoundDone, Token, Verdict
from specviz.views import plots
from specviz.views.lane_names import short_names
from specviz.views.plots.figure_theme import label

NAMES = (
    "acceptance_by_position",
    "accepted_lengths",
    "drafts_by_source",
    "speedup_by_k",
    "passes_per_token",
    "seconds_by_round",
    "tokens_by_time",
)
FIGURES = [getattr(plots, name) for name in NAMES]
TABLES = [getattr(plots, f"{name}_table") for name in NAMES]
EMPTY = {"standard": [], "draft": []}
SOURCED = {
    "standard": GOLDEN_RACE["standard"],
    "draft": sourced(GOLDEN_RACE["draft"], *("match", "table") * 6),
}
MANY = {
    **SOURCED,
    "lookup": sourced(script("AAb", "RUc", "s"), *["lookup"] * 4),
    "third": sourced(script("Ab", "Rc"), *["lookup"] * 2),
}


def golden():
    return race(SOURCED, curve=CURVE)


def rows(table, lane="draft"):
    return [tuple(row)[1:] for row in table[table["lane"] == lane].itertuples(index=False)]


def contrast(colour, background):
    def luminance(code):
        parts = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(colour), luminance(background)))
    return (high + 0.05) / (low + 0.05)


def test_acceptance_by_position_numbers():
    table = rows(plots.acceptance_by_position_table(golden()))
    assert table == [(1, 4, 0.75, 0.75), (2, 3, pytest.approx(2 / 3), 0.5), (3, 1, 1.0, 0.25)]


def test_accepted_lengths_numbers():
    # alpha .75: one round of two drafts (.25, .1875, .5625), three of three (.25, .1875, .140625, .421875)
    table = rows(plots.accepted_lengths_table(golden()))
    assert table == [(0, 1, 1.0), (1, 1, 0.75), (2, 1, 0.984375), (3, 1, 1.265625)]


def test_drafts_by_source_numbers():
    # AAA, ARU, RU, AAU: six of eleven accepted; match has the 1st, 3rd, ... drafted token, table the others
    table = rows(plots.drafts_by_source_table(golden()))
    assert table == [
        ("match", 6, 3, 0.5, 0.5),
        ("table", 5, 3, 0.6, 0.5),
    ]


def test_a_race_whose_drafts_name_no_source_has_no_table_of_them():
    assert len(plots.drafts_by_source_table(race(GOLDEN_RACE))) == 0
    assert plots.drafts_by_source(race(GOLDEN_RACE)).layout.annotations[0].text.endswith("several sources.")


def test_speedup_by_k_numbers():
    table = rows(plots.speedup_by_k_table(golden()))
    assert [row[1] for row in table if row[0] == "predicted"] == list(range(33))
    assert table[0] == ("predicted", 0.0, 1.0)
    assert table[4] == ("predicted", 4.0, pytest.approx(2.7 / 1.84))
    assert table[-1] == ("measured", 2.75, pytest.approx(1.518987))


def test_a_pending_curve_leaves_the_measured_point_alone():
    table = rows(plots.speedup_by_k_table(race(GOLDEN_RACE)))
    assert table == [("measured", 2.75, pytest.approx(1.518987))]


def test_passes_per_token_numbers():
    table = plots.passes_per_token_table(golden())
    assert rows(table) == [(0.5, 1.1)]
    assert rows(table, "standard") == [(1.0, 0.0)]


def test_seconds_by_round_numbers():
    assert rows(plots.seconds_by_round_table(golden()))[-1] == (4, 0.02, 0.12, 0.04)


def test_tokens_by_time_numbers():
    table = rows(plots.tokens_by_time_table(golden()))
    assert [tokens for _, tokens in table] == [0, 4, 6, 7, 8, 10]
    assert [seconds for seconds, _ in table] == pytest.approx([0, 0.16, 0.33, 0.45, 0.61, 0.79])


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize(("theme", "page"), [("light", "#FFFFFF"), ("dark", "#0B0F19")])
def test_figures_are_clear_and_readable_on_either_page(figure, theme, page):
    drawn = figure(golden(), theme)
    assert (drawn.layout.paper_bgcolor, drawn.layout.plot_bgcolor) == ("rgba(0,0,0,0)", "rgba(0,0,0,0)")
    assert contrast(drawn.layout.font.color, page) >= 4.5
    for trace in drawn.data:
        colour = trace.line.color if trace.type == "scatter" and trace.mode == "lines" else trace.marker.color
        assert contrast(colour, page) >= 3


@pytest.mark.parametrize("figure", FIGURES)
def test_figures_draw_their_tables_numbers(figure):
    table = getattr(plots, f"{figure.__name__}_table")(golden())
    numbers = {round(float(value), 9) for value in table.select_dtypes("number").to_numpy().ravel()}
    drawn = figure(golden())
    assert drawn.data
    for trace in drawn.data:
        assert {round(float(value), 9) for value in trace.y} <= numbers


@pytest.mark.parametrize("figure", FIGURES)
def test_series_differ_by_more_than_colour(figure):
    cues = [
        (trace.type, trace.mode, trace.line.dash, trace.marker.symbol)
        if trace.type == "scatter"
        else (trace.type, trace.marker.pattern.shape)
        for trace in figure(race(MANY, curve=CURVE)).data
        if trace.showlegend is not False
    ]
    assert len(cues) == len(set(cues)) > 1


@pytest.mark.parametrize("figure", FIGURES)
def test_a_race_without_rounds_gives_a_sentence(figure):
    drawn = figure(race(EMPTY, finished=False))
    assert not any(len(trace.y) for trace in drawn.data)
    assert [note.text for note in drawn.layout.annotations][-1].endswith(".")


@pytest.mark.parametrize("figure", FIGURES)
def test_standard_decoding_alone_is_drawn_or_said(figure):
    drawn = figure(race({"standard": standard(3)}))
    assert any(len(trace.y) for trace in drawn.data) or drawn.layout.annotations


@pytest.mark.parametrize("table", TABLES)
def test_a_table_without_rounds_is_empty(table):
    assert len(table(race(EMPTY))) == 0
    assert len(table([])) == 0


@pytest.mark.parametrize("figure", FIGURES)
def test_a_lanes_name_is_never_read_as_markup(figure):
    hostile = "<img src=x onerror=alert(1)>"
    rounds = sourced(GOLDEN_RACE["draft"], *[hostile] * 12)
    drawn = figure(race({"standard": GOLDEN_RACE["standard"], hostile: rounds}, curve=CURVE))
    assert "<img" not in drawn.to_json().replace("\\u003c", "<")
    assert "&lt;img" in drawn.to_json().replace("\\u0026", "&")


def test_lanes_are_called_by_label_and_k():
    typed = "draft-model=wheels:qwen2.5-coder-0.5b-instruct:k=5"
    lanes = named(STANDARD_LANE, (typed, "draft-model", "Draft model", 5, "Qwen 0.5B", {}, "fixed"))
    assert short_names(lanes) == {"standard": "Standard decoding", typed: "Draft model k=5"}


@pytest.mark.parametrize(("lanes", "names"), ALIKE)
def test_lanes_that_would_bear_the_same_name_are_told_apart(lanes, names):
    assert list(short_names(alike(lanes)).values())[1:] == names


def test_a_lane_whose_rounds_branch_is_called_by_its_nodes():
    branch = tuple(DraftToken(Token(i), Verdict.UNTESTED, -1) for i in (1, 2))
    chain = tuple(DraftToken(Token(i), Verdict.UNTESTED, i - 2) for i in (1, 2))
    for drafts, name in ((branch, "Draft, 2 nodes"), (chain, "Draft k=2")):
        rounds = [RoundDone("lane", Round(0, 2, 2, drafts, None))]
        assert short_names(named(("lane", "x", "draft", 2, None, {}, "fixed"), rounds=rounds)) == {"lane": name}


def test_a_long_name_in_a_legend_keeps_its_end():
    assert label("x" * 60 + "=4") != label("x" * 60 + "=8") and len(label("x" * 60)) == 40


def test_a_race_that_has_not_begun_has_no_names():
    assert short_names([]) == {}


@pytest.mark.parametrize("figure", FIGURES)
def test_no_figure_shows_an_argument_as_it_was_typed(figure):
    typed = "draft-model=wheels:small:k=4"
    events = list(race({"standard": GOLDEN_RACE["standard"], typed: SOURCED["draft"]}, curve=CURVE))
    header = events[0].header
    lanes = tuple(replace(lane, label="Draft" if lane.name == typed else "Standard") for lane in header.lanes)
    events[0] = RaceStarted(replace(header, lanes=lanes))
    drawn = figure(events).to_json()
    assert "wheels" not in drawn
    assert "Draft" in drawn


def test_an_unknown_theme_is_refused_in_words():
    with pytest.raises(InputError, match="'light' or 'dark'"):
        plots.tokens_by_time(golden(), "sepia")


def test_every_figure_has_its_table():
    public = {name for name in plots.__all__ if inspect.isfunction(getattr(plots, name))}
    assert public == {*NAMES, *(f"{name}_table" for name in NAMES)}


def test_numbers_and_figures_load_no_model_library_and_no_page():
    code = "import sys, specviz.metrics, specviz.views.plots\n"
    code += "print({'torch', 'transformers', 'gradio'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_metrics_do_not_need_the_figures_library():
    code = "import sys, specviz.metrics; print({'plotly', 'pandas', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
