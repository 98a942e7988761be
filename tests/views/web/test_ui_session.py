"""A run as the page sees it: steps become values and sentences, and a change of mind ends it."""

import copy
import json

import pytest
from support import tiny_checkpoints

from specviz.catalogue.catalog import load_catalog
from specviz.catalogue.model_loader import CatalogueLoader
from specviz.core.errors import LoadError
from specviz.metrics import summarize
from specviz.races.request import make_request
from specviz.traces import LaneFinished, RaceFinished, RaceStarted, Reason, RoundDone
from specviz.views.report import race_report
from specviz.views.web.model_store import ModelStore
from specviz.views.web.running import Waiting, steps, thread_runner
from specviz.views.web.session import Session, run

HZ = 50.0


@pytest.fixture(scope="module")
def store():
    return ModelStore(CatalogueLoader(load_catalog(), "cpu", "float32"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def target(folder):
    return tiny_checkpoints.save_llama(folder / "target", context=512)


@pytest.fixture(autouse=True)
def alone(one_thread):
    """Tiny models run best on one thread."""


def asked(target, tokens=24, drafts=("prompt-lookup:k=4",), prompt="the cat sat on the mat", chat=True, **settings):
    settings = {"max_new_tokens": tokens, "ignore_eos": True, **settings}
    return make_request(prompt, drafts, target, settings, chat)


def shown(session, request, runner):
    return list(run(session, session.begin(request), runner, HZ))


def messages(shown_values):
    """Every message that was sent to the view, in order."""
    slots = {}
    for value in (item.view for item in shown_values if item.view):
        for slot in filter(None, value["ring"]):
            number, batch = slot.split("|", 1)
            slots[int(number)] = json.loads(batch)["e"]
    return [message for number in sorted(slots) for message in slots[number]]


def test_a_run_ends_with_its_trace_kept_and_its_numbers_sent(store, target):
    session = Session()
    sent = shown(session, asked(target), thread_runner(store, HZ))
    assert isinstance(session.trace[0], RaceStarted) and isinstance(session.trace[-1], RaceFinished)
    kept = summarize(session.trace)
    assert kept["standard"].kept_tokens == kept["prompt-lookup:k=4"].kept_tokens == 24
    (first, opening), *_, (kind, report) = (message for message in messages(sent) if message[0] == "s")
    assert first == kind == messages(sent)[-1][0] == "s"
    assert opening["headline"] is None and opening["facts"] and not opening["rows"]
    assert report == json.loads(json.dumps(race_report(session.trace).as_json()))
    assert report["headline"]["rest"] and report["badges"]
    assert not session.busy and not session.running


def test_stopping_ends_every_lane_within_a_round(store, target):
    session, rounds = Session(), []

    def runner(request, cancelled):
        for step in steps(request, store, cancelled):
            if isinstance(step, RoundDone):
                rounds.append(step)
                if len(rounds) == 10:
                    session.stop()
            yield [step]

    sent = shown(session, asked(target, 400), runner)
    assert len(rounds) == 10
    ends = [event for event in session.trace if isinstance(event, LaneFinished)]
    assert [event.reason for event in ends] == [Reason.CANCELLED] * 2
    assert session.trace[-1] == RaceFinished(cancelled=True)
    assert sent[-1].line[1].startswith("Stopped.")
    assert messages(sent)[-1][1]["badges"][0]["text"].startswith("the same as far as both got")


def test_a_second_run_takes_the_place_of_the_first(store, target):
    session = Session()
    first = session.begin(asked(target))
    second = session.begin(asked(target, 8))
    assert list(run(session, first, thread_runner(store, HZ), HZ)) == []
    assert not session.trace
    list(run(session, second, thread_runner(store, HZ), HZ))
    assert summarize(session.trace)["standard"].kept_tokens == 8


def test_leaving_the_page_ends_the_engine_and_the_next_run_is_clean(store, target):
    session, runner = Session(), thread_runner(store, HZ)
    running = run(session, session.begin(asked(target, 400)), runner, HZ)
    assert next(item for item in running if item.view)
    running.close()
    assert not session.busy
    shown(session, asked(target, 6), runner)
    assert summarize(session.trace)["standard"].kept_tokens == 6


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"target": "path:/no/such/folder"}, "There is no folder"),
        ({"drafts": ("draft-model=path:/no/such/folder:k=2",)}, "There is no folder"),
        ({"prompt": "cat " * 2000}, "shorten"),
        ({"drafts": ("draft-model=GERMAN:k=2",)}, "their tokenizers differ"),
    ],
)
def test_a_race_that_cannot_start_says_why_and_the_next_one_runs(store, folder, target, wrong, words):
    german = tiny_checkpoints.save_llama(folder / "german", sentences=tiny_checkpoints.GERMAN)
    wrong = {name: _named(value, german) for name, value in wrong.items()}
    session, runner = Session(), thread_runner(store, HZ)
    sent = shown(session, asked(**{"target": target, **wrong}), runner)
    assert sent[-1].line[0] == "error" and words in sent[-1].line[1]
    assert not any(item.view for item in sent) and not session.trace
    shown(session, asked(target, 4), runner)
    assert summarize(session.trace)["standard"].kept_tokens == 4


def _named(value, german):
    return (
        tuple(item.replace("path:", "path:").replace("GERMAN", german) for item in value)
        if isinstance(value, tuple)
        else value
    )


def test_a_run_that_waits_for_a_model_says_so_and_can_be_stopped(store, target):
    session = Session()

    def runner(request, cancelled):
        yield [Waiting("Loading a large model (3 s)")]
        session.stop()
        assert cancelled()

    sent = shown(session, asked(target), runner)
    assert sent[0].line == ("busy", "Loading a large model (3 s)")
    assert sent[-1].line == ("info", "Stopped before the race began.")


def test_a_raw_model_says_that_it_has_no_template(store, folder):
    source = tiny_checkpoints.save_llama(folder / "raw", template=None, context=128)
    session = Session()
    sent = shown(session, asked(source, 4), thread_runner(store, HZ))
    assert any(item.line and "chat template" in item.line[1] for item in sent)
    assert session.trace[0].header.chat is False


def test_a_prompt_that_leaves_little_room_says_so(store, target):
    session = Session()
    sent = shown(session, asked(target, 480, prompt="the cat " * 60, chat=False), thread_runner(store, HZ))
    assert any(item.line and item.line[0] == "info" and "new tokens" in item.line[1] for item in sent)
    assert {event.reason for event in session.trace if isinstance(event, LaneFinished)} == {Reason.CONTEXT}


def test_an_error_that_nobody_foresaw_leaves_the_session_usable(store, target):
    session = Session()

    def runner(request, cancelled):
        raise ZeroDivisionError
        yield

    with pytest.raises(ZeroDivisionError):
        shown(session, asked(target), runner)
    assert not session.busy and not session.running


def test_every_visitor_has_a_session_of_their_own():
    first = Session()
    first.theme = "dark"
    assert copy.deepcopy(first).theme == "light"


def test_who_waits_behind_another_race_is_told_the_place(store, target):
    runner = thread_runner(store, HZ)
    first = runner(asked(target, 400), lambda: False)
    next(first)
    second = runner(asked(target, 4), lambda: False)
    waits = next(step for batch in second for step in batch)
    assert waits == Waiting("The device is busy: 1 race before yours")
    first.close()
    assert isinstance([step for batch in second for step in batch][-1], RaceFinished)


def test_a_load_error_is_the_only_thing_a_failed_load_leaves(store):
    with pytest.raises(LoadError):
        list(steps(asked("path:/nowhere"), store, lambda: False))


def test_a_recording_chosen_in_mid_run_keeps_the_page():
    """The run that gives way still ends, and what it says then is not shown."""
    from specviz.catalogue.gallery import recordings
    from specviz.views.web.gallery_events import _choose

    session, events = Session(), list(recordings()["code"].events())

    def runner(request, cancelled):
        yield events[:10]
        while not cancelled():
            yield []
        yield [RaceFinished(True)]

    changes = run(session, session.begin(object()), runner, HZ)
    next(changes)
    _choose(session, "copying")
    recorded = session.trace
    assert [change for change in changes if change.view is not None] == []
    assert session.trace is recorded and not session.busy and not session.running


@pytest.mark.parametrize(("draft", "said"), [("cascade:k=2", ""), ("draft-model={}", "the same weights")])
def test_what_a_free_draft_knows_is_no_news_for_the_line(store, target, draft, said):
    found = shown(Session(), asked(target, 4, (draft.format(target),)), thread_runner(store, HZ))
    (_, text) = next(item.line for item in reversed(found) if item.line)
    assert said in text and bool(said) == bool(text)
