"""ZeroGPU: a call takes a request and gives out texts, its seconds are the worst case; elsewhere it is not used."""

import pickle
import types

import pytest
from support import tiny_checkpoints

from specviz.catalogue.catalog import load_catalog
from specviz.catalogue.model_loader import CatalogueLoader
from specviz.core.errors import ContextError
from specviz.races.request import make_request
from specviz.traces import LaneFinished, RaceFinished, RaceStarted, Reason, RoundDone
from specviz.views.web import zero_gpu as zero
from specviz.views.web.model_store import ModelStore
from specviz.views.web.running import Waiting

CATALOG = load_catalog()
PROFILE = CATALOG.profile("zero-a")


class FakeSpaces:
    """`spaces.GPU` as the package documents it: arguments and whatever is yielded are pickled."""

    def __init__(self):
        self.durations, self.yielded, self.closed = [], [], 0

    def GPU(self, *, duration):
        def dress(call):
            def lent(*arguments):
                arguments = pickle.loads(pickle.dumps(arguments))
                self.durations.append(duration(*arguments))
                try:
                    for item in call(*arguments):
                        self.yielded.append(item)
                        yield pickle.loads(pickle.dumps(item))
                finally:
                    self.closed += 1

            return lent

        return dress


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return tiny_checkpoints.save_llama(tmp_path_factory.mktemp("zero") / "target", context=512)


@pytest.fixture
def store(one_thread):
    return ModelStore(CatalogueLoader(CATALOG, "cpu", "float32"))


def ask(target, tokens=12, drafts=("prompt-lookup:k=4",)):
    return make_request("the cat sat", drafts, target, {"max_new_tokens": tokens, "ignore_eos": True})


def test_away_from_zerogpu_there_is_no_spaces_module(monkeypatch):
    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    assert zero.spaces_module() is None


def test_on_zerogpu_it_is_what_can_be_imported(monkeypatch):
    fake = types.ModuleType("spaces")
    monkeypatch.setenv("SPACES_ZERO_GPU", "1")
    monkeypatch.setitem(__import__("sys").modules, "spaces", fake)
    assert zero.spaces_module() is fake
    monkeypatch.setitem(__import__("sys").modules, "spaces", None)
    assert zero.spaces_module() is None


def test_the_seconds_asked_for_are_the_worst_case_and_capped(target):
    # 5 + 100 x (0.03 x 2 + 0.015 x 4) = 17, and with a second draft of k = 8: 5 + 100 x (0.09 + 0.24) = 38
    assert zero.duration(ask(target, 100), PROFILE) == 17
    assert zero.duration(ask(target, 100, ("prompt-lookup:k=4", "prompt-lookup:k=8")), PROFILE) == 38
    assert zero.duration(ask(target, 4000), PROFILE) == PROFILE.zero_gpu.cap_seconds == 60


def test_all_lanes_run_in_one_call_that_gives_out_tuples_of_texts(store, target):
    spaces = FakeSpaces()
    request = ask(target, drafts=("prompt-lookup:k=4", "early-exit:k=2"))
    events = [step for batch in zero.zero_runner(spaces, store, PROFILE)(request, lambda: False) for step in batch]
    events = [event for event in events if not isinstance(event, Waiting)]
    assert isinstance(events[0], RaceStarted) and isinstance(events[-1], RaceFinished)
    assert len({event.lane for event in events if isinstance(event, RoundDone)}) == 3
    assert spaces.durations == [zero.duration(request, PROFILE)]
    assert all(isinstance(item, tuple) and all(isinstance(text, str) for text in item) for item in spaces.yielded)
    assert spaces.closed == 1


def test_stop_closes_the_call_and_ends_the_lanes_with_what_they_have(store, target):
    spaces, seen = FakeSpaces(), []
    runner = zero.zero_runner(spaces, store, PROFILE)
    for batch in runner(ask(target, 300), lambda: spaces.yielded[3:] != []):
        seen += [step for step in batch if not isinstance(step, Waiting)]
    ends = [event for event in seen if isinstance(event, LaneFinished)]
    assert [event.reason for event in ends] == [Reason.CANCELLED] * 2
    rounds = [event for event in seen if isinstance(event, RoundDone) and event.lane == "standard"]
    assert ends[0].text == "".join(event.round.target.token.text for event in rounds)
    assert seen[-1] == RaceFinished(cancelled=True)
    assert spaces.closed == 1


def test_a_refusal_inside_the_call_comes_out_as_its_sentence(store, target):
    request = make_request("the cat " * 400, ("prompt-lookup:k=4",), target, {"max_new_tokens": 4})
    with pytest.raises(ContextError, match="shorten"):
        list(zero.zero_runner(FakeSpaces(), store, PROFILE)(request, lambda: False))


def test_a_quota_that_is_used_up_is_told_with_what_to_do(store, target):
    class Exhausted(FakeSpaces):
        def GPU(self, *, duration):
            def lent(request):
                raise RuntimeError("ZeroGPU quota exceeded")
                yield

            return lambda call: lent

    with pytest.raises(ContextError, match=r"quota exceeded.*fewer tokens.*sign in.*recorded race"):
        list(zero.zero_runner(Exhausted(), store, PROFILE)(ask(target), lambda: False))
