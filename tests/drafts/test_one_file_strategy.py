"""A strategy with a tree and a new source of guesses is one file: every view knows it by what it says of itself."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from support.tiny import standard_ids, target

from specviz import Lane, Settings, make_draft, race, summarize
from specviz.drafting import Drafter, Proposal, Strategy, option
from specviz.drafting.registry import read_draft
from specviz.drafting.strategy import USUAL_NODES
from specviz.traces import RaceStarted, SourceInfo, event_from_json, event_to_json
from specviz.views import plots
from specviz.views.lane_names import short_names
from specviz.views.web.form import drafts_tree, with_fitting_k

pytestmark = pytest.mark.usefixtures("one_thread")

NEIGHBOURS = SourceInfo("neighbours", "the neighbours", "the ids beside the last token's")


@dataclass(frozen=True)
class Neighbours(Strategy):
    name, label, help = "neighbours", "Neighbours", "Guesses the ids beside the last token's."
    sources: ClassVar[tuple[SourceInfo, ...]] = (NEIGHBOURS,)

    spread: str = option("row", help="one after the other, or side by side", choices=("row", "fan"), tree="fan")

    def start(self, run):
        return NeighboursDrafter(self.tree, run.target.vocabulary)


class NeighboursDrafter(Drafter):
    def __init__(self, tree, vocabulary):
        self.tree, self.vocabulary = tree, vocabulary

    def observe(self, kept_ids, seen):
        self.last = kept_ids[-1]

    def propose(self, k):
        ids = [(self.last + 1 + step) % self.vocabulary for step in range(k)]
        return Proposal(ids, parents=(-1,) * k if self.tree else None, sources=(NEIGHBOURS.name,) * k)


@pytest.fixture(autouse=True)
def registered():
    """The registry as it is with the file in its folder; nothing of it stays."""
    Strategy.registry[Neighbours.name] = Neighbours
    yield
    del Strategy.registry[Neighbours.name]


@pytest.fixture
def events():
    lm, prompt, settings = target(), [3, 9, 4, 3], Settings(k=3, max_new_tokens=16)
    fan, row = (make_draft("neighbours", lm, spread=spread) for spread in ("fan", "row"))
    lanes = [Lane("standard", lm, make_draft("none", lm), settings), Lane("a", lm, fan, settings)]
    return list(race([*lanes, Lane("b", lm, row, settings)], prompt, calibrate=False))


def test_it_races_exactly_as_a_chain_and_as_a_tree(events):
    found = summarize(events)
    expected = standard_ids(target(), [3, 9, 4, 3], max_new_tokens=16)
    assert [list(one.token_ids) for one in found.values()] == [expected] * 3
    assert found["a"].drafted > 0 and [one.source for one in found["a"].sources] == ["neighbours"]


def test_the_trace_carries_what_it_says_of_itself(events):
    lanes = event_from_json(event_to_json(events[0])).header.lanes
    assert [(lane.tree, lane.sources) for lane in lanes] == [(False, ()), (True, (NEIGHBOURS,)), (False, (NEIGHBOURS,))]


def test_names_and_figures_know_it_by_its_trace_alone(events):
    del Strategy.registry[Neighbours.name]
    try:
        assert short_names(events) == {"standard": "Standard", "a": "Neighbours, 3 nodes", "b": "Neighbours k=3"}
        assert set(plots.drafts_by_source_table(events)["lane"]) == {"a", "b"}
        assert plots.drafts_by_source(events).data
    finally:
        Strategy.registry[Neighbours.name] = Neighbours


def test_a_trace_from_before_strategies_said_so_is_still_read(events):
    header = events[0].header
    old = event_to_json(
        RaceStarted(replace(header, lanes=tuple(replace(x, tree=False, sources=()) for x in header.lanes)))
    )
    assert not any({"tree", "sources"} & set(lane) for lane in old["header"]["lanes"])
    assert event_from_json(old).header.lanes[1].sources == ()


def test_the_form_knows_when_its_k_counts_nodes():
    for text, tree, k in (("neighbours:k=2", False, 2), ("neighbours:spread=fan,k=2", True, USUAL_NODES)):
        lane = read_draft(text)
        assert drafts_tree(lane) is tree and with_fitting_k(lane).k == k
