"""The stream keeps its pace and its promises to a browser that missed something; the template holds no text."""

import json

import pytest
from support.synthetic_race import HOSTILE, race_events
from support.wire_decoder import Decoder

from specviz.views.report import race_report
from specviz.views.web.race_view.bundle import script
from specviz.views.web.race_view.component import RaceView
from specviz.views.web.race_view.race_stream import MAX_RUNS, SLOTS, RaceStream, recorded, refused, resync


class Clock:
    """A clock that a test moves by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def numbers(value):
    return sorted(int(slot.split("|")[0]) for slot in value["ring"] if slot)


def batches_of(texts):
    return [json.loads(text) for text in texts]


def test_values_come_no_faster_than_asked_and_lose_nothing():
    clock = Clock()
    stream = RaceStream(hz=10, clock=clock)
    events = race_events(40)
    values = []
    for event in events:
        stream.push(event)
        values.append(stream.value())
        clock.now += 0.03
    sent = [value for value in values if value]
    # one at once, then one every fourth event (0.12 s is the first step past 0.1 s)
    assert len(sent) == 1 + (len(events) - 1) // 4
    stream.flush()
    decoder = Decoder()
    reply = resync({"run": stream.run, "after": 0})["batches"]
    assert sum(len(decoder.events(batch)) for batch in batches_of(reply)) == len(events)


def test_nothing_new_gives_no_value():
    stream = RaceStream()
    assert stream.value() is None
    assert numbers(stream.flush()) == []


def test_the_ring_holds_the_last_16_batches_and_each_value_is_a_new_list():
    stream = RaceStream()
    values = []
    for event in race_events(30)[: SLOTS + 4]:
        stream.push(event)
        values.append(stream.value(force=True))
    assert numbers(values[2]) == [1, 2, 3]
    assert numbers(values[-1]) == list(range(5, SLOTS + 5))
    changed = [a != b for a, b in zip(values[-2]["ring"], values[-1]["ring"], strict=True)]
    assert changed.count(True) == 1


def test_resync_gives_what_was_missed_and_only_that():
    stream = RaceStream()
    for event in race_events(10)[:6]:
        stream.push(event)
        stream.flush()
    reply = resync({"run": stream.run, "after": 4})
    assert reply["run"] == stream.run
    assert len(reply["batches"]) == 2
    assert resync({"run": stream.run, "after": 99})["batches"] == []


@pytest.mark.parametrize(
    "request_",
    [None, "x", [], {}, {"run": 1, "after": 0}, {"run": "r", "after": 0}, {"run": "r", "after": -1},
     {"run": "r", "after": True}, {"run": "r", "after": "0"}, {"run": ["r"], "after": 0}],
)  # fmt: skip
def test_resync_answers_a_bad_request_with_gone(request_):
    assert resync(request_) == {"gone": True}


def test_a_resync_reply_is_bounded_but_never_empty(monkeypatch):
    monkeypatch.setattr("specviz.views.web.race_view.race_stream.MAX_REPLY_BYTES", 10)
    stream = RaceStream()
    for event in race_events(10)[:3]:
        stream.push(event)
        stream.flush()
    assert len(resync({"run": stream.run, "after": 0})["batches"]) == 1


def test_old_runs_are_forgotten_and_run_ids_are_not_alike():
    first = RaceStream()
    others = [RaceStream() for _ in range(MAX_RUNS)]
    assert resync({"run": first.run, "after": 0}) == {"gone": True}
    assert resync({"run": others[0].run, "after": 0}) != {"gone": True}
    assert len({stream.run for stream in others}) == MAX_RUNS
    assert min(len(stream.run) for stream in others) >= 20


def test_a_run_too_large_to_keep_goes_on_without_resync(monkeypatch):
    monkeypatch.setattr("specviz.views.web.race_view.race_stream.MAX_RUN_BYTES", 10)
    stream = RaceStream()
    stream.push(race_events(3)[0])
    assert numbers(stream.flush()) == [1]
    assert resync({"run": stream.run, "after": 0}) == {"gone": True}


def test_a_recorded_trace_is_one_value_that_is_not_live():
    events = race_events(50)
    value = recorded(events, race_report(events))
    assert value["live"] is False
    assert numbers(value) == [1]
    batch = json.loads(next(slot for slot in value["ring"] if slot).split("|", 1)[1])
    assert len(Decoder().events(batch)) == len(events)
    assert batch["e"][-1][0] == "s"


def test_a_refusal_is_no_run_and_the_same_one_is_news_again():
    one, again = refused("The file holds no events."), refused("The file holds no events.")
    assert one["refused"] == "The file holds no events." and "run" not in one and one != again


def test_template_and_props_hold_no_text_of_a_run():
    events = race_events(30, hostile=True)
    view = RaceView(recorded(events, race_report(events)))
    config = view.get_config()
    assert config["html_template"] == '<div class="sv-mount"></div>'
    assert config["css_template"] == ""
    assert config.get("props") in ({}, None)
    for name, value in config.items():
        if name != "value":
            assert not any(text in str(value) for text in HOSTILE if len(text) > 9), name


def test_the_script_is_one_function_that_no_script_element_can_be_ended_by():
    text = script()
    assert text.startswith("function specvizRaceView(root, host) {")
    assert "</script" not in text.lower()
    assert "<!--" not in text
    assert "\nimport " not in text
    assert "\nexport " not in text
