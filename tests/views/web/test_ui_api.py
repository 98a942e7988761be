"""The endpoints for programs, over the real server: typed, streaming, checked, and the same numbers everywhere."""

import json
import threading
import time

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError
from support import tiny_checkpoints

from specviz.catalogue.gallery import recordings
from specviz.metrics import summarize
from specviz.races.request import make_request
from specviz.traces import event_from_json
from specviz.views.report import lane_json, race_report
from specviz.views.terminal import main as command_line
from specviz.views.web.api import _summary
from specviz.views.web.app import Options, build_app, launch_options

PROMPT = "the cat sat on the mat and the dog"
RUN = {"prompt": PROMPT, "drafts": ["prompt-lookup:k=4"], "max_new_tokens": 20, "temperature": 0.8, "seed": 5}


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return tiny_checkpoints.save_llama(tmp_path_factory.mktemp("api") / "target", context=1024)


@pytest.fixture(scope="module")
def app(target):
    app = build_app(Options(target, "cpu", "float32"))
    app.begin_loading()
    options = {**launch_options(), "quiet": True, "prevent_thread_lock": True, "server_name": "127.0.0.1"}
    app.blocks.launch(**options)
    yield app
    app.blocks.close()


@pytest.fixture(scope="module")
def client(app):
    return Client(app.blocks.local_url, verbose=False)


def race(client, **asked):
    """The events that a race streams, each as its JSON object."""
    messages = client.submit(**{**RUN, **asked}, api_name="/race")
    return [event for message in messages for event in message]


def test_a_race_streams_the_events_of_a_trace(client):
    trace = [event_from_json(event) for event in race(client)]
    assert [type(event).__name__ for event in (trace[0], trace[-1])] == ["RaceStarted", "RaceFinished"]
    summaries = summarize(trace)
    assert {name: lane.kept_tokens for name, lane in summaries.items()} == {"standard": 20, "prompt-lookup:k=4": 20}


def test_every_token_says_what_made_it(client):
    rounds = [event for event in race(client) if event["event"] == "RoundDone"]
    drafted = [event for event in rounds if event["lane"] == "prompt-lookup:k=4" and event["round"]["drafts"]]
    assert drafted
    for event in drafted:
        assert {draft["verdict"] for draft in event["round"]["drafts"]} <= {"accepted", "rejected", "untested"}


def test_page_api_and_command_line_count_the_same(client, target, capsys):
    streamed = summarize(event_from_json(event) for event in race(client))
    summary = client.predict(**RUN, api_name="/summary")["lanes"]
    words = ["--prompt", PROMPT, "--draft", "prompt-lookup:k=4", "--max-new-tokens", "20", "--temperature", "0.8"]
    status = command_line(
        ["race", "--target", target, "--seed", "5", "--device", "cpu", "--dtype", "float32", "--json", *words]
    )
    printed = json.loads(capsys.readouterr().out)["lanes"]
    assert status == 0
    for lane, numbers in streamed.items():
        for name in ("kept_tokens", "target_passes", "draft_passes", "drafted", "accepted", "tested", "finish_reason"):
            assert summary[lane][name] == printed[lane][name] == getattr(numbers, name), (lane, name)
        assert summary[lane]["token_ids"] == printed[lane]["token_ids"] == list(numbers.token_ids)
        assert summary[lane]["text"] == printed[lane]["text"] == numbers.text


def test_the_same_seed_repeats_the_tokens_and_another_does_not(client):
    first, again, other = (client.predict(**{**RUN, "seed": seed}, api_name="/summary") for seed in (5, 5, 6))
    ids = [[lane["token_ids"] for lane in run["lanes"].values()] for run in (first, again, other)]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"prompt": ""}, "The prompt is empty"),
        ({"prompt": "cat " * 3000}, "tokens"),
        ({"prompt": "a" * 300_000}, "characters"),
        ({"max_new_tokens": -1}, "max_new_tokens must lie between"),
        ({"max_new_tokens": 10**30}, "max_new_tokens must lie between"),
        ({"k": 2.5, "drafts": ["prompt-lookup"]}, "k must be a whole number"),
        ({"temperature": "hot"}, "temperature must be a number"),
        ({"drafts": []}, "No draft is chosen"),
        ({"drafts": ["draft-model=path:/nowhere:k=2"]}, "There is no folder"),
        ({"target": "path:/nowhere"}, "There is no folder"),
        ({"stop": [""]}, "A stop string must be"),
        ({"stop": {"a": 1}}, "The stop strings must be texts"),
        ({"chat": "false"}, "chat must be true or false"),
    ],
)
def test_what_cannot_run_comes_back_as_a_sentence_and_the_app_goes_on(client, wrong, words):
    for endpoint in ("/race", "/summary"):
        with pytest.raises(AppError, match=words):
            client.predict(**{**RUN, **wrong}, api_name=endpoint)
    assert len(race(client, max_new_tokens=2)) > 3


@pytest.mark.parametrize(
    ("wrong", "facts"),
    [
        ({"temperature": 11}, {"code": "out-of-range", "field": "temperature", "lane": None}),
        (
            {"drafts": ["none", "early-exit:layers=x"]},
            {"code": "wrong-type", "field": "draft.options.layers", "lane": 2},
        ),
        ({"prompt": "cat " * 3000}, {"code": "too-long", "field": "prompt", "lane": None}),
    ],
)
def test_a_refusal_tells_a_program_its_code_and_field(client, wrong, facts):
    for endpoint in ("/race", "/summary"):
        with pytest.raises(AppError) as caught:
            client.predict(**{**RUN, **wrong}, api_name=endpoint)
        assert json.loads(caught.value.title) == facts


def test_a_client_that_leaves_ends_its_race(app, client):
    job = client.submit(**{**RUN, "max_new_tokens": 900, "temperature": 0}, api_name="/race")
    next(iter(job))
    job.cancel()
    start = time.monotonic()
    assert len(race(client, max_new_tokens=2)) > 3
    assert time.monotonic() - start < 30


def test_two_clients_at_once_get_each_their_own_run(app):
    prompts = ["the cat sat", "a dog is not a cat"]
    results = {}

    def ask(prompt):
        mine = Client(app.blocks.local_url, verbose=False)
        results[prompt] = mine.predict(**{**RUN, "prompt": prompt}, api_name="/summary")["lanes"]["standard"][
            "token_ids"
        ]

    threads = [threading.Thread(target=ask, args=(prompt,)) for prompt in prompts]
    [thread.start() for thread in threads]
    [thread.join(60) for thread in threads]
    alone = Client(app.blocks.local_url, verbose=False)
    for prompt in prompts:
        lanes = alone.predict(**{**RUN, "prompt": prompt}, api_name="/summary")["lanes"]
        assert results[prompt] == lanes["standard"]["token_ids"]


def test_the_endpoints_are_described_with_their_types(client):
    described = client.view_api(return_format="dict")["named_endpoints"]
    parameters = {item["parameter_name"]: item for item in described["/race"]["parameters"]}
    assert parameters["prompt"]["type"] == {"type": "string"}
    assert parameters["drafts"]["parameter_default"] == ["prompt-lookup"]
    assert parameters["temperature"]["parameter_default"] == 0.0
    assert not parameters["prompt"]["parameter_has_default"]


@pytest.mark.parametrize("name", list(recordings()))
def test_the_summary_carries_the_report_of_its_race(name):
    events = list(recordings()[name].events())
    summary = json.loads(
        json.dumps(_summary(make_request("a", ["prompt-lookup"], "embedded", {}), iter(events)), allow_nan=False)
    )
    assert summary["report"] == json.loads(json.dumps(race_report(events).as_json()))
    lanes = {lane: lane_json(each) for lane, each in summarize(events).items()}
    assert summary["lanes"] == json.loads(json.dumps(lanes))
