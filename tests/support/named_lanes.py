"""Races whose lanes share a label, and what those lanes are called."""

from dataclasses import replace

from support.scripted import race

from specviz.core.settings import Settings
from specviz.traces import LaneInfo, RaceStarted


def named(*lanes, rounds=()):
    """A race's events whose lanes are given as (name, draft, label, k, draft model, options, policy, tree or not)."""
    started = next(iter(race({"standard": []})))
    infos = tuple(
        LaneInfo(
            name,
            draft,
            label,
            Settings(k=k, k_policy=policy),
            options,
            replace(started.header.target, name=model) if model else None,
            tree=bool(tree),
        )
        for name, draft, label, k, model, options, policy, *tree in lanes
    )
    return [RaceStarted(replace(started.header, lanes=infos)), *rounds]


STANDARD_LANE = ("standard", "none", "standard decoding", 4, None, {}, "fixed")

# of two or three drafting lanes (k, draft model, options, policy, tree or not), and what they are called
ALIKE = [
    ([(5, "A", {}, "fixed"), (5, "B", {}, "fixed")], ["Draft k=5, A", "Draft k=5, B"]),
    ([(5, "A", {}, "fixed"), (8, "A", {}, "fixed")], ["Draft k=5", "Draft k=8"]),
    (
        [(5, None, {"layers": 4}, "fixed"), (5, None, {"layers": 8}, "fixed")],
        ["Draft k=5, layers=4", "Draft k=5, layers=8"],
    ),
    (
        [
            (5, None, {"table": "", "share": 0.5, "x": 1}, "fixed"),
            (5, None, {"table": "a.npz", "share": 2.0, "x": 1}, "fixed"),
        ],
        ["Draft k=5, share=0.5", "Draft k=5, table=a.npz share=2"],
    ),
    (
        [(5, None, {"on": True, "list": ["a", "b"]}, "fixed"), (5, None, {"on": False, "list": []}, "fixed")],
        ["Draft k=5, on=true list=a+b", "Draft k=5, on=false"],
    ),
    ([(5, "A", {}, "fixed"), (5, "A", {}, "adaptive-0.3")], ["Draft k=5, fixed", "Draft k=5, adaptive-0.3"]),
    (
        [(5, "A", {"n": 1}, "fixed"), (5, "A", {"n": 2}, "fixed"), (5, "B", {"n": 1}, "fixed")],
        ["Draft k=5, A, n=1, fixed", "Draft k=5, A, n=2, fixed", "Draft k=5, B, n=1, fixed"],
    ),
    ([(5, None, {}, "fixed"), (5, None, {}, "fixed")], ["Draft k=5, lane 1", "Draft k=5, lane 2"]),
    (
        [(16, None, {}, "fixed", True), (16, None, {}, "fixed")],
        ["Draft, 16 nodes", "Draft k=16"],
    ),
]


def alike(lanes):
    """The events of a race of these lanes, as ALIKE has them."""
    return named(STANDARD_LANE, *((f"lane {i}", "x", "draft", *facts) for i, facts in enumerate(lanes, start=1)))
