"""A race: whose turn it is, what its events say, and what is left when it ends early."""

import itertools
from dataclasses import dataclass, replace

import pytest
from support.tiny import (
    draft_models,
    ids_of,
    module,
    scripted_module,
    standard_ids,
    table_module,
    target,
    words_tokenizer,
)

from specviz import Lane, LanguageModel, Settings, make_draft, race
from specviz.core.errors import InputError, SpecvizError
from specviz.drafting import Drafter, Proposal, Strategy
from specviz.metrics import summarize
from specviz.traces import (
    Calibrated,
    Kind,
    LaneFinished,
    LaneStarted,
    RaceFinished,
    RaceStarted,
    Reason,
    Round,
    RoundDone,
    TargetToken,
    Token,
    event_from_json,
    event_to_json,
)

pytestmark = pytest.mark.usefixtures("one_thread")

ASKED = Settings(k=3, max_new_tokens=12)


def lanes_of(lm, settings=ASKED, draft=None):
    return [
        Lane("standard", lm, make_draft("none", lm), settings),
        Lane("lookup", lm, make_draft("prompt-lookup", lm), settings),
        Lane("model", lm, make_draft("draft-model", lm, draft_model=draft or lm), settings),
    ]


def run(lanes, prompt=(3, 9, 4, 3, 9), **settings):
    return list(race(lanes, prompt, **settings))


def rounds_in(events, lane):
    return [event.round for event in events if isinstance(event, RoundDone) and event.lane == lane]


def finished(events):
    return {event.lane: event for event in events if isinstance(event, LaneFinished)}


def test_every_lane_writes_what_it_would_write_alone():
    lm = target()
    events = run(lanes_of(lm, draft=draft_models()["perturbed"]))
    expected = standard_ids(lm, [3, 9, 4, 3, 9], max_new_tokens=12)
    for lane in ("standard", "lookup", "model"):
        assert ids_of(rounds_in(events, lane)) == expected
        assert finished(events)[lane].reason is Reason.LENGTH
    summaries = summarize(iter(events))
    assert summaries["model"].identical_to_standard and summaries["standard"].tau == 1.0


def test_events_come_in_order_and_survive_a_file():
    lm = LanguageModel(module(), None)
    events = run(lanes_of(lm))
    assert isinstance(events[0], RaceStarted) and isinstance(events[-1], RaceFinished)
    assert [event.lane for event in events[1:4]] == ["standard", "lookup", "model"]
    assert all(isinstance(event, LaneStarted) for event in events[1:4])
    assert isinstance(events[-2], Calibrated) and events[-2].curve.widths == (1, 2, 3, 5)
    assert max(i for i, e in enumerate(events) if isinstance(e, LaneFinished)) == len(events) - 3
    for lane in ("standard", "lookup", "model"):
        places = [i for i, e in enumerate(events) if getattr(e, "lane", None) == lane]
        assert isinstance(events[places[-1]], LaneFinished)
    assert [event_from_json(event_to_json(event)) for event in events] == events


def test_a_curve_that_is_known_is_not_measured_again():
    lm = LanguageModel(module(), None)
    first, second = run(lanes_of(lm)), run(lanes_of(lm))
    assert [isinstance(event, Calibrated) for event in second].count(True) == 0
    assert first[0].header.curve is None and second[0].header.curve == first[-2].curve
    wider = run(lanes_of(lm, replace(ASKED, k=9)))
    assert wider[-2].curve.widths[-1] >= 10
    assert not any(
        isinstance(event, Calibrated) for event in run(lanes_of(LanguageModel(module(), None)), calibrate=False)
    )


def test_the_lane_that_is_furthest_behind_goes_next():
    events = run(lanes_of(target(), replace(ASKED, max_new_tokens=20)))
    clocks = dict.fromkeys(("standard", "lookup", "model"), 0.0)
    for event in events:
        if isinstance(event, RoundDone):
            assert clocks[event.lane] == min(clocks.values())
            clocks[event.lane] = event.round.end_seconds
        elif isinstance(event, LaneFinished):
            del clocks[event.lane]


def test_clocks_run_on_without_gaps():
    events = run(lanes_of(target()))
    for lane in ("standard", "lookup", "model"):
        clock = 0.0
        for each in rounds_in(events, lane):
            assert each.start_seconds == pytest.approx(clock)
            assert min(each.draft_seconds, each.verify_seconds, each.other_seconds, each.telemetry_seconds) >= 0
            clock = each.end_seconds
    assert all(each.draft_passes == 0 for lane in ("standard", "lookup") for each in rounds_in(events, lane))


def test_a_sequential_race_runs_one_lane_after_the_other():
    events = run(lanes_of(target()), mode="sequential")
    names = [name for name, _ in itertools.groupby(event.lane for event in events if isinstance(event, RoundDone))]
    assert names == ["standard", "lookup", "model"]


def test_the_header_says_what_ran():
    draft = draft_models()["perturbed"]
    lanes = lanes_of(target(), draft=draft)
    lanes[1] = replace(lanes[1], strategy=make_draft("prompt-lookup", target(), max_ngram=5), note="a note")
    events = list(race(lanes, [3, 9], prompt="what was typed", chat=True))
    header = events[0].header
    assert (header.prompt, header.prompt_ids, header.chat, header.mode) == (
        "what was typed",
        (3, 9),
        True,
        "interleaved",
    )
    assert (header.device, header.dtype, header.threads) == ("cpu", "float32", 1)
    assert header.target.parameters == target().parameters and header.target.role == "target"
    assert {"python", "torch", "transformers"} <= set(header.versions)
    assert [lane.draft for lane in header.lanes] == ["none", "prompt-lookup", "draft-model"]
    assert header.lanes[1].options == {"max_ngram": 5, "min_ngram": 1} and header.lanes[1].note == "a note"
    assert header.lanes[2].draft_model.role == "draft" and header.lanes[0].draft_model is None
    assert header.prefill_seconds > 0 and all(lane.settings == ASKED for lane in header.lanes)


def test_what_is_no_lane_is_refused_in_words():
    with pytest.raises(InputError, match="A race takes lanes"):
        next(race(["standard"], [1, 2]))


def test_lanes_may_differ_in_every_setting():
    lm = target()
    lanes = [
        Lane("standard", lm, make_draft("none", lm), Settings(max_new_tokens=4)),
        Lane("long", lm, make_draft("prompt-lookup", lm), Settings(k=8, max_new_tokens=30)),
        Lane("sampled", lm, make_draft("early-exit", lm), Settings(k=1, max_new_tokens=9, temperature=1.0, seed=3)),
    ]
    events = run(lanes)
    assert [len(ids_of(rounds_in(events, lane.name))) for lane in lanes] == [4, 30, 9]


@dataclass(frozen=True)
class Breaks(Strategy):
    """Fails in its third round."""

    error: type = RuntimeError
    message: str = "boom"

    def start(self, run):
        return _Breaks(self)


class _Breaks(Drafter):
    def __init__(self, strategy):
        self._strategy, self._rounds = strategy, 0

    def propose(self, k):
        self._rounds += 1
        if self._rounds == 3:
            raise self._strategy.error(self._strategy.message)
        return Proposal((1,))


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        (Breaks(), "The lane failed: boom"),
        (Breaks(InputError, "Do this."), "Do this."),
        (Breaks(RuntimeError, "CUDA out of memory"), "ran out of memory; shorten the run"),
    ],
)
def test_a_lane_that_fails_says_why_and_the_others_go_on(strategy, words):
    lm = target()
    events = run([*lanes_of(lm), Lane("broken", lm, strategy, ASKED)])
    ends = finished(events)
    assert ends["broken"].reason is Reason.ERROR and words in ends["broken"].message
    assert len(rounds_in(events, "broken")) == 2
    assert all(ends[name].reason is Reason.LENGTH for name in ("standard", "lookup", "model"))


def counted(lm):
    """The number of contexts that are open, as a one-element list."""
    opened, given, open_now = lm.open, lm.give_back, [0]

    def count_open(capacity):
        context = opened(capacity)
        open_now[0] += 1
        return context

    def count_back(cache):
        open_now[0] -= 1
        given(cache)

    lm.open, lm.give_back = count_open, count_back
    return open_now


def test_a_race_closed_in_the_middle_leaves_no_cache_open():
    lm = LanguageModel(table_module(5, 3), None)
    open_now = counted(lm)
    for stop_after in range(12):
        events = race(lanes_of(lm), [1, 2, 1])
        for _ in itertools.islice(events, stop_after):
            pass
        events.close()
        assert open_now == [0]


def test_a_race_that_cannot_start_leaves_no_cache_open():
    lm = LanguageModel(table_module(5, 3), None)
    open_now = counted(lm)
    lanes = lanes_of(lm, replace(ASKED, stop=("x",)))  # no tokenizer to match it with
    with pytest.raises(InputError):
        run(lanes, prompt=(1, 2))
    assert open_now == [0]


def test_a_cancelled_race_ends_within_one_round():
    lm = LanguageModel(table_module(5, 3), words_tokenizer(list("abcde")))
    open_now = counted(lm)
    asked, events = [False], []
    for event in race(lanes_of(lm), [1, 2, 1], cancelled=lambda: asked[0]):
        events.append(event)
        if isinstance(event, RoundDone) and event.round.index == 2:
            asked[0] = True
    after = [type(event) for event in events[1 + next(i for i, e in enumerate(events) if _third(e)) :]]
    assert after.count(RoundDone) == 0 and after[-1] is RaceFinished and Calibrated not in after
    assert events[-1].cancelled and open_now == [0]
    for lane, end in finished(events).items():
        assert end.reason is Reason.CANCELLED
        assert end.text == lm.tokenizer.decode(ids_of(rounds_in(events, lane)))


def _third(event):
    return isinstance(event, RoundDone) and event.round.index == 2


def test_a_lane_may_bring_rounds_of_its_own():
    lm = target()
    served = [Round(i, 2, 2, (), TargetToken(Token(i), Kind.BONUS), verify_seconds=1e-4) for i in range(3)]
    lanes = [lanes_of(lm)[0], Lane("served", lm, make_draft("none", lm), ASKED, rounds=lambda: iter(served))]
    events = run(lanes)
    assert rounds_in(events, "served") == served and finished(events)["served"].reason is Reason.LENGTH


def test_races_that_make_no_sense_are_refused_in_words():
    lm, other = target(), target("gpt2")
    first, second, third = lanes_of(lm)
    wrong = {
        "'standard'": [[], [second, first], [replace(first, name="mine")], [replace(second, name="standard")]],
        "Two lanes are called 'lookup'": [[first, second, replace(third, name="lookup")]],
        "at most 8": [[first, *(replace(second, name=f"lane {i}") for i in range(8))]],
        "same target": [[first, Lane("gpt2", other, make_draft("none", other), ASKED)]],
    }
    for words, cases in wrong.items():
        for lanes in cases:
            with pytest.raises(SpecvizError, match=words):
                run(lanes)
    with pytest.raises(SpecvizError, match="'interleaved' or 'sequential'"):
        run([first], mode="both")
    for prompt in ((), (1,) * 300, (64,)):
        with pytest.raises(SpecvizError, match="prompt"):
            run([first], prompt=prompt)


def test_a_lane_ends_at_its_stop_string_with_text_and_tail():
    words = ["<unk>", "one ", "two ", "three ", "four ", "five "]
    lm = LanguageModel(scripted_module({1: 2, 2: 3, 3: 4, 4: 5, 5: 1}, 6), words_tokenizer(words))
    events = run(lanes_of(lm, replace(ASKED, stop=("four f",))), prompt=(1,))
    for end in finished(events).values():
        assert (end.reason, end.text, end.tail) == (Reason.STOP, "two three ", "")


@dataclass(frozen=True)
class Failing(Strategy):
    """Breaks where it is told to, with an error that is no SpecvizError."""

    at: str = "propose"

    def start(self, run):
        return _FailingDrafter(self.at)


class _FailingDrafter(Drafter):
    def __init__(self, at):
        self.at, self.rounds = at, 0

    def observe(self, kept_ids, seen):
        if self.at == "prompt":
            raise RuntimeError("out of memory")

    def propose(self, k):
        self.rounds += 1
        if self.rounds > 2:
            raise KeyError("lost")
        return Proposal(())


@pytest.mark.parametrize("at", ["prompt", "propose"])
def test_a_strategy_that_breaks_ends_its_own_lane_in_words_and_no_other(at):
    lm = target()
    events = run([*lanes_of(lm)[:2], Lane("broken", lm, Failing(at), ASKED)])
    ends = finished(events)
    assert ends["broken"].reason is Reason.ERROR and ends["broken"].message
    assert ends["standard"].reason is ends["lookup"].reason is Reason.LENGTH
    assert events[-1] == RaceFinished()
    assert len(rounds_in(events, "broken")) == (2 if at == "propose" else 0)


def test_a_race_is_not_lost_where_its_curve_cannot_be_measured(monkeypatch):
    def fail(*_):
        raise RuntimeError("out of memory")

    monkeypatch.setattr("specviz.races.racing.measure_curve", fail)
    events = run(lanes_of(LanguageModel(module(), None)))
    assert events[-1] == RaceFinished() and not any(isinstance(event, Calibrated) for event in events)
