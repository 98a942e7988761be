"""Clocks: a lane's clock is the time of its turns less telemetry, and neither a viewer nor telemetry moves it.

Wall time on a shared machine is noisy, so a bound must hold in one of a few attempts: a clock that really misses or
counts something that it should not misses by the same amount each time.
"""

import statistics
import time

import pytest
from tiny import module

from specviz import Lane, LanguageModel, Settings, make_draft, race
from specviz.traces import LaneFinished, RoundDone

ATTEMPTS = 6
PROMPT = tuple(range(1, 20))


@pytest.fixture(scope="module")
def heavy():
    """A model whose pass takes milliseconds, and a smaller one."""
    widths = {"hidden_size": 512, "intermediate_size": 1536, "head_dim": 128, "initializer_range": 0.05}
    target = LanguageModel(module(num_hidden_layers=8, **widths), None)
    return target, LanguageModel(module(seed=1, num_hidden_layers=2, **widths), None)


def lanes_of(target, draft, telemetry=True):
    settings = Settings(k=3, max_new_tokens=16, telemetry=telemetry)
    return [
        Lane("standard", target, make_draft("none", target), settings),
        Lane("lookup", target, make_draft("prompt-lookup", target), settings),
        Lane("model", target, make_draft("draft-model", target, draft_model=draft), settings),
    ]


def run(lanes, sleep=0.0):
    """{lane: (rounds, its LaneFinished)}, the viewer sleeping after each event."""
    rounds, ends = {lane.name: [] for lane in lanes}, {}
    for event in race(lanes, PROMPT, calibrate=False):
        time.sleep(sleep)
        if isinstance(event, RoundDone):
            rounds[event.lane].append(event.round)
        elif isinstance(event, LaneFinished):
            ends[event.lane] = event
    return {name: (rounds[name], ends[name]) for name in rounds}


def clock(rounds):
    return sum(each.draft_seconds + each.verify_seconds + each.other_seconds for each in rounds)


def attempts(measure, bound):
    """The smallest of up to a few measurements; stops at the first within the bound."""
    found = []
    for _ in range(ATTEMPTS):
        found.append(measure())
        if found[-1] <= bound:
            break
    return min(found)


def missed(found):
    """The largest share by which a lane's clock and the wall time of its turns differ."""
    return max(abs(clock(rounds) / end.wall_seconds - 1.0) for rounds, end in found.values())


@pytest.mark.parametrize("sleep", [0.0, 0.01])
def test_phases_add_up_to_the_wall_time_of_the_turns(heavy, sleep):
    assert attempts(lambda: missed(run(lanes_of(*heavy), sleep)), 0.02) <= 0.02


def test_a_slow_viewer_is_not_on_the_clock(heavy):
    """Counted by mistake, 10 ms an event would more than double a round."""

    def moved():
        quiet, slow, again = (run(lanes_of(*heavy), sleep) for sleep in (0.0, 0.01, 0.0))
        base = (clock(quiet["standard"][0]) + clock(again["standard"][0])) / 2
        return abs(clock(slow["standard"][0]) / base - 1.0)

    assert attempts(moved, 0.15) <= 0.15


def test_a_slow_draft_is_on_its_own_lanes_clock_only(heavy):
    target, draft = heavy
    lanes = lanes_of(target, draft)
    inner = draft.executor.run

    def slow(*arguments, **rest):
        time.sleep(0.02)
        return inner(*arguments, **rest)

    draft.executor.run = slow
    try:
        found = run(lanes)
    finally:
        draft.executor.run = inner
    assert all(each.draft_seconds >= 0.02 * each.draft_passes for each in found["model"][0])
    for name in ("standard", "lookup"):
        assert max(each.draft_seconds for each in found[name][0]) < 0.02
    assert found["model"][1].wall_seconds >= 0.02 * sum(each.draft_passes for each in found["model"][0])


def test_telemetry_is_off_the_clock_and_is_told(heavy, monkeypatch):
    from specviz.telemetry import Recorder

    inner = Recorder.record

    def slow(self, block):
        time.sleep(0.03)
        return inner(self, block)

    monkeypatch.setattr(Recorder, "record", slow)
    found = run(lanes_of(*heavy))
    for rounds, end in found.values():
        assert all(each.telemetry_seconds >= 0.03 for each in rounds)
        assert statistics.median(each.other_seconds for each in rounds) < 0.03
        assert end.wall_seconds < clock(rounds) + 0.03 * len(rounds) * 0.5


@pytest.mark.slow
def test_without_telemetry_the_clocks_agree(heavy):
    """Medians of alternated runs, within 3 percent."""

    def moved():
        clocks = {True: [], False: []}
        for _ in range(7):
            for telemetry, found in clocks.items():
                found.append({name: clock(rounds) for name, (rounds, _) in run(lanes_of(*heavy, telemetry)).items()})
        on, off = ({n: statistics.median(run[n] for run in runs) for n in runs[0]} for runs in clocks.values())
        return max(abs(on[name] / off[name] - 1.0) for name in on)

    assert attempts(moved, 0.03) <= 0.03


@pytest.mark.slow
@pytest.mark.embedded
def test_phases_of_the_embedded_model_add_up(embedded):
    assert attempts(lambda: missed(run(lanes_of(embedded, embedded))), 0.02) <= 0.02
