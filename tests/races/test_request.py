"""Whatever is asked of the page or the API is either a race that can run or a refusal in a sentence."""

import math
import pickle
from dataclasses import dataclass

import pytest
from support.tiny_checkpoints import llama

from specviz import LanguageModel
from specviz.catalogue.catalog import load_catalog
from specviz.catalogue.limits import limits_of
from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import SpecvizError
from specviz.core.settings import Settings
from specviz.drafting import Strategy, option
from specviz.metrics import summarize
from specviz.races.prompts import MAX_PROMPT_CHARACTERS
from specviz.races.request import RaceRequest, make_request
from specviz.traces import RaceFinished

USUAL = {"max_new_tokens": 16, "temperature": 0.0, "seed": 0}


@pytest.fixture(autouse=True)
def of_file(monkeypatch):
    """A strategy with an option that names a file."""

    @dataclass(frozen=True)
    class OfFile(Strategy):
        file: str = option("", path=True)

    OfFile.name = "of-file"
    monkeypatch.setitem(Strategy.registry, "of-file", OfFile)


def ask(prompt="Hello", drafts=("prompt-lookup:k=4",), target="embedded", limits=None, chat=True, **settings):
    return make_request(prompt, drafts, target, {**USUAL, **settings}, chat, limits)


def refusal(**asked):
    with pytest.raises(SpecvizError) as caught:
        ask(**asked)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert len(sentence) < 700
    return sentence


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"prompt": ""}, "The prompt is empty"),
        ({"prompt": " \n\t"}, "The prompt is empty"),
        ({"prompt": None}, "must be a text"),
        ({"prompt": "a" * (MAX_PROMPT_CHARACTERS + 1)}, "200,001 characters"),
        ({"prompt": "\ud800"}, "UTF-8"),
        ({"target": ""}, "No target is chosen"),
        ({"target": None}, "No target is chosen"),
        ({"target": "SmolLM2"}, "is not a source of weights"),
        ({"drafts": ()}, "No draft is chosen"),
        ({"drafts": [3]}, "No draft is chosen"),
        ({"drafts": None}, "No draft is chosen"),
        *(({"drafts": drafts}, "The drafts must be a list of texts") for drafts in (5, 0, True, False, 1.5, {"a": 1})),
        ({"drafts": ["turbo"]}, "There is no draft 'turbo'"),
        ({"drafts": ["draft-model:k=4"]}, "needs a draft model"),
        ({"drafts": ["prompt-lookup:k=4", "prompt-lookup:k=4"]}, "given twice"),
        ({"drafts": [f"prompt-lookup:k={k}" for k in (1, 2, 3, 4)]}, "at most 3 drafts"),
        ({"drafts": ["prompt-lookup:k=-1"]}, "k must lie between 0 and 64"),
        ({"drafts": ["prompt-lookup:k=65"]}, "k must lie between 0 and 64"),
        ({"drafts": ["prompt-lookup:k=2.5"]}, "k must be a whole number"),
        ({"drafts": ["prompt-lookup:max_ngram=99"]}, "between 1 and 16"),
        ({"drafts": ["token-recycling:shape=ring"]}, "shape must be one of chain, tree"),
        ({"max_new_tokens": 0}, "max_new_tokens must lie between"),
        ({"max_new_tokens": -5}, "max_new_tokens must lie between"),
        ({"max_new_tokens": 10**12}, "max_new_tokens must lie between"),
        ({"max_new_tokens": None}, "max_new_tokens must be a number"),
        ({"temperature": -0.1}, "temperature must lie between"),
        ({"temperature": 1e300}, "temperature must lie between"),
        ({"temperature": math.nan}, "temperature must be a number"),
        ({"temperature": "hot"}, "temperature must be a number"),
        ({"seed": -1}, "seed must lie between"),
        ({"seed": 2**70}, "seed must lie between"),
        ({"top_p": 0}, "top_p must be above 0"),
        ({"top_k": 1.5}, "top_k must be a whole number"),
        ({"repetition_penalty": 0}, "repetition_penalty must lie between"),
        ({"stop": ("x" * 201,)}, "A stop string must be"),
        ({"stop": ("x",) * 17}, "At most 16 stop strings"),
    ],
)
def test_what_cannot_run_is_refused_in_a_sentence(asked, words):
    assert words in refusal(**asked)


@pytest.mark.parametrize("k", [0, 1, 64])
def test_k_from_0_to_64_runs_even_beyond_the_new_tokens(k):
    request = ask(drafts=[f"prompt-lookup:k={k}"], max_new_tokens=8)
    assert request.lane_settings[1].k == k


@pytest.mark.parametrize("temperature", [0, 1e-6, 2])
def test_temperatures_at_the_ends_are_allowed(temperature):
    assert ask(temperature=temperature).settings.temperature == temperature


def test_whole_numbers_may_come_as_floats():
    request = ask(max_new_tokens=24.0, seed=3.0, drafts=["prompt-lookup:k=4.0"])
    assert (request.settings.max_new_tokens, request.settings.seed) == (24, 3)


def test_a_single_draft_may_come_as_a_text():
    assert ask(drafts="prompt-lookup").drafts == (DraftSpec("prompt-lookup"),)


def test_sources_are_the_target_and_each_draft_model_once():
    request = ask(drafts=["draft-model=embedded:k=1", "draft-model=hub:a/b:k=2", "draft-model=hub:a/b:k=3"])
    assert request.sources == ("embedded", "hub:a/b")


def test_a_space_runs_only_models_of_its_catalogue_and_its_length():
    catalog = load_catalog()
    limits = limits_of(catalog, catalog.profile("cpu-basic"))
    assert ask(limits=limits).target == "embedded"
    assert "is not offered on this machine" in refusal(limits=limits, target="hub:a/b")
    assert "is not offered on this machine" in refusal(limits=limits, drafts=["draft-model=hub:a/b:k=2"])
    assert "at most 256 new tokens" in refusal(limits=limits, max_new_tokens=257)
    assert "at most 256 new tokens" in refusal(limits=limits, drafts=["prompt-lookup:max_new_tokens=300"])


def test_a_space_runs_only_models_that_its_memory_holds_alone_and_together():
    catalog = load_catalog()
    limits = limits_of(catalog, catalog.profile("cpu-basic"))  # 10 GB of weights in float32
    large, middle = catalog.model("qwen2.5-coder-7b").source, catalog.model("qwen2.5-coder-1.5b").source
    small = catalog.model("qwen2.5-coder-0.5b").source
    for source in (large, f"{large}#int4"):
        assert "is not offered on this machine" in refusal(limits=limits, target=source)
        assert "is not offered on this machine" in refusal(limits=limits, drafts=[f"draft-model={source}:k=2"])
    assert ask(limits=limits, target=middle, drafts=[f"draft-model={small}:k=2"]).target == middle  # 8.2 GB
    other = catalog.model("qwen2.5-1.5b").source  # 6.2 GB beside 6.2 GB
    words = refusal(limits=limits, target=middle, drafts=[f"draft-model={other}:k=2"])
    assert "is not offered on this machine: together they exceed its memory" in words
    assert ask(target=large, drafts=[f"draft-model={middle}:k=2"]).target == large


@pytest.mark.parametrize("source", ["path:/etc", "gguf:/dev/zero", "PATH: /etc", "gguf:a.gguf#int4"])
@pytest.mark.parametrize("profile", ["cpu-basic", "local"])
def test_a_spaces_visitors_name_no_file_whatever_its_profile(monkeypatch, profile, source):
    monkeypatch.setenv("SPACE_ID", "a/b")
    limits = limits_of(load_catalog(), load_catalog().profile(profile))
    assert "names a file of this machine" in refusal(limits=limits, target=source)
    assert "names a file of this machine" in refusal(limits=limits, drafts=[f"draft-model={source}:k=2"])
    words = refusal(limits=limits, drafts=["of-file:file=/etc/passwd"])
    assert words == "The option file names a file of this machine, which visitors may not; leave it empty."
    assert ask(limits=limits, drafts=["of-file:k=2"]).drafts == (DraftSpec("of-file", settings={"k": 2}),)


def test_ones_own_machine_takes_any_source_and_any_file(monkeypatch):
    monkeypatch.delenv("SPACE_ID", raising=False)
    limits = limits_of(load_catalog(), load_catalog().profile("local"))
    assert ask(limits=limits, target="path:/a b").target == "path:/a b"
    assert ask(limits=limits, drafts=["of-file:file=/a"]).drafts == (DraftSpec("of-file", options={"file": "/a"}),)


@pytest.mark.parametrize(
    ("asked", "field", "lane", "code"),
    [
        ({"prompt": " "}, "prompt", None, "empty"),
        ({"prompt": 5}, "prompt", None, "wrong-type"),
        ({"target": ""}, "target", None, "empty"),
        ({"target": "SmolLM2"}, "target", None, "not-loaded"),
        ({"drafts": ()}, "draft", None, "empty"),
        ({"drafts": ["prompt-lookup", "turbo"]}, "draft", 2, "unknown-draft"),
        ({"drafts": ["prompt-lookup", "prompt-lookup:k"]}, "draft", 2, "malformed"),
        ({"drafts": ["prompt-lookup", "prompt-lookup:k=65"]}, "draft.k", 2, "out-of-range"),
        ({"drafts": ["prompt-lookup:max_ngram=99"]}, "draft.options.max_ngram", 1, "out-of-range"),
        ({"drafts": ["draft-model=hub:a/b", "draft-model=x"]}, "draft.source", 2, "not-loaded"),
        ({"drafts": ["none", "prompt-lookup:k=2", "prompt-lookup:k=2"]}, "draft", 3, "given-twice"),
        ({"temperature": 11}, "temperature", None, "out-of-range"),
        ({"seed": None}, "seed", None, "empty"),
        ({"stop": ("",)}, "stop", None, "out-of-range"),
    ],
)
def test_a_refusal_says_which_field_and_why_in_a_code(asked, field, lane, code):
    with pytest.raises(SpecvizError) as caught:
        ask(**asked)
    assert (caught.value.field, caught.value.lane, caught.value.code) == (field, lane, code)


def test_a_draft_may_come_as_a_spec_and_is_checked_all_the_same():
    spec = DraftSpec("prompt-lookup", options={"max_ngram": 4.0}, settings={"k": 8.0})
    assert ask(drafts=[spec]).drafts == (DraftSpec.parse("prompt-lookup:max_ngram=4,k=8"),)
    with pytest.raises(SpecvizError, match="between 1 and 16"):
        ask(drafts=[DraftSpec("prompt-lookup", options={"max_ngram": 99})])


def test_a_request_runs_the_race_that_it_describes_in_another_process_too():
    target = LanguageModel(*llama(), source="path:/target")
    draft = LanguageModel(*llama(seed=1), source="path:/draft")
    request = ask("the cat sat", ["draft-model=path:/draft:k=2", "prompt-lookup:seed=3"], "path:/target", chat=False)
    request = pickle.loads(pickle.dumps(request))
    events = list(request.events({target.source: target, draft.source: draft}))
    header = events[0].header
    assert [lane.name for lane in header.lanes] == ["standard", "draft-model=path:/draft:k=2", "prompt-lookup:seed=3"]
    assert [lane.settings for lane in header.lanes] == list(request.lane_settings)
    assert header.prompt == "the cat sat" and not header.chat and isinstance(events[-1], RaceFinished)
    assert {name: lane.kept_tokens for name, lane in summarize(events).items()} == dict.fromkeys(
        [lane.name for lane in header.lanes], 16
    )


def test_an_empty_prompt_is_refused_before_any_model_is_asked_for():
    request = RaceRequest(" ", (), "embedded", Settings())
    with pytest.raises(SpecvizError, match="The prompt is empty"):
        list(request.events(lambda source: pytest.fail(f"{source} was loaded")))
