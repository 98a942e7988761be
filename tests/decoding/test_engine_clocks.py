"""Clocks: a lane's clock is the time of its turns less telemetry, and neither a viewer nor telemetry moves it.

Time itself is a stand-in here that passes only where a test says so, so every sum is exact on the busiest machine. The
slow tests at the end hold real clocks against each other.
"""

import statistics
from types import SimpleNamespace

import pytest
from support.tiny import module

from specviz import Lane, LanguageModel, Settings, make_draft, race
from specviz.decoding.telemetry import Recorder
from specviz.traces import LaneFinished, RoundDone

PROMPT = tuple(range(1, 20))
TARGET_PASS, DRAFT_PASS, RECORDING, VIEWER = 0.5, 0.0625, 8.0, 64.0  # sums of these are exact


class Clock:
    """Seconds that pass when told."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now

    def spend(self, seconds, call):
        """`call`, taking `seconds`."""

        def timed(*arguments, **named):
            self.now += seconds
            return call(*arguments, **named)

        return timed


@pytest.fixture
def timed(monkeypatch):
    """A clock for engine and race, and a target and a draft whose passes take their time on it."""
    clock = Clock()
    for where in ("specviz.models.stopwatch", "specviz.races.racing"):
        monkeypatch.setattr(f"{where}.time", SimpleNamespace(perf_counter=clock.perf_counter))
    target, draft = LanguageModel(module(), None), LanguageModel(module(seed=1), None)
    for model, seconds in ((target, TARGET_PASS), (draft, DRAFT_PASS)):
        monkeypatch.setattr(model.executor, "run", clock.spend(seconds, model.executor.run))
    monkeypatch.setattr(Recorder, "record", clock.spend(RECORDING, Recorder.record))
    return SimpleNamespace(clock=clock, target=target, draft=draft)


def lanes_of(target, draft, telemetry=True):
    settings = Settings(k=3, max_new_tokens=16, telemetry=telemetry)
    return [
        Lane("standard", target, make_draft("none", target), settings),
        Lane("lookup", target, make_draft("prompt-lookup", target), settings),
        Lane("model", target, make_draft("draft-model", target, draft_model=draft), settings),
    ]


def run(lanes, look=lambda: None):
    """{lane: (rounds, its LaneFinished)}; `look` is called after each event, as a viewer would be."""
    rounds, ends = {lane.name: [] for lane in lanes}, {}
    for event in race(lanes, PROMPT, calibrate=False):
        look()
        if isinstance(event, RoundDone):
            rounds[event.lane].append(event.round)
        elif isinstance(event, LaneFinished):
            ends[event.lane] = event
    return {name: (rounds[name], ends[name]) for name in rounds}


def clock_of(rounds):
    return sum(each.draft_seconds + each.verify_seconds + each.other_seconds for each in rounds)


def slow_viewer(timed):
    return timed.clock.spend(VIEWER, lambda: None)


@pytest.mark.parametrize("viewer", [lambda timed: lambda: None, slow_viewer], ids=["quick viewer", "slow viewer"])
def test_phases_add_up_to_the_wall_time_of_the_turns(timed, viewer):
    for rounds, end in run(lanes_of(timed.target, timed.draft), viewer(timed)).values():
        assert clock_of(rounds) == end.wall_seconds > 0


def test_a_slow_viewer_is_not_on_the_clock(timed):
    lanes = lanes_of(timed.target, timed.draft)
    quick, slow = run(lanes), run(lanes, slow_viewer(timed))
    assert timed.clock.now > VIEWER
    for name in quick:
        assert clock_of(slow[name][0]) == clock_of(quick[name][0])


def test_each_pass_is_on_its_own_lanes_clock_and_in_its_own_phase(timed):
    found = run(lanes_of(timed.target, timed.draft))
    for name, (rounds, _) in found.items():
        for each in rounds:
            assert each.verify_seconds == TARGET_PASS
            assert each.draft_seconds == DRAFT_PASS * each.draft_passes
            assert each.other_seconds == 0
        assert (sum(each.draft_passes for each in rounds) > 0) == (name == "model")


def test_telemetry_is_off_the_clock_and_is_told(timed):
    for rounds, end in run(lanes_of(timed.target, timed.draft)).values():
        assert all(each.telemetry_seconds == RECORDING for each in rounds)
        assert clock_of(rounds) == end.wall_seconds < RECORDING * len(rounds)


def test_rounds_follow_each_other_on_the_lanes_clock(timed):
    for rounds, _ in run(lanes_of(timed.target, timed.draft), slow_viewer(timed)).values():
        starts = [each.start_seconds for each in rounds]
        assert starts == [clock_of(rounds[:number]) for number in range(len(rounds))]


ATTEMPTS = 6


def attempts(measure, bound):
    """The smallest of up to a few measurements; stops at the first within the bound.

    A clock that really misses or counts what it should not misses by the same amount each time.
    """
    found = []
    for _ in range(ATTEMPTS):
        found.append(measure())
        if found[-1] <= bound:
            break
    return min(found)


def missed(found):
    """The largest share by which a lane's clock and the wall time of its turns differ."""
    return max(abs(clock_of(rounds) / end.wall_seconds - 1.0) for rounds, end in found.values())


@pytest.mark.slow
@pytest.mark.embedded
def test_phases_of_the_embedded_model_add_up(embedded):
    assert attempts(lambda: missed(run(lanes_of(embedded, embedded))), 0.02) <= 0.02


@pytest.mark.slow
@pytest.mark.embedded
def test_without_telemetry_the_clocks_agree(embedded):
    """Medians of alternated runs, within 3 percent."""

    def moved():
        clocks = {True: [], False: []}
        for _ in range(7):
            for telemetry, found in clocks.items():
                lanes = lanes_of(embedded, embedded, telemetry)
                found.append({name: clock_of(rounds) for name, (rounds, _) in run(lanes).items()})
        on, off = ({n: statistics.median(run[n] for run in runs) for n in runs[0]} for runs in clocks.values())
        return max(abs(on[name] / off[name] - 1.0) for name in on)

    assert attempts(moved, 0.03) <= 0.03
