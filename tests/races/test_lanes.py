"""Draft arguments of the command line, and the lanes that they make."""

import pytest
from support.tiny_checkpoints import GERMAN, llama, save_llama

from specviz import LanguageModel, load
from specviz.core.errors import InputError, LoadError, PairError, SpecvizError
from specviz.core.settings import Settings
from specviz.drafting import read_draft
from specviz.races.lanes import make_lanes, read_drafts


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return load(save_llama(tmp_path_factory.mktemp("target")), "cpu", "float32")


@pytest.mark.parametrize(
    ("text", "strategy", "source", "options", "settings"),
    [
        ("none", "none", None, {}, {}),
        ("prompt-lookup", "prompt-lookup", None, {}, {}),
        ("prompt-lookup:max_ngram=4,k=8", "prompt-lookup", None, {"max_ngram": 4}, {"k": 8}),
        ("draft-model=hub:Qwen/Qwen2.5-0.5B:k=2", "draft-model", "hub:Qwen/Qwen2.5-0.5B", {}, {"k": 2}),
        ("draft-model=hub:a/b@main", "draft-model", "hub:a/b@main", {}, {}),
        ("draft-model=gguf:/a/b.gguf", "draft-model", "gguf:/a/b.gguf", {}, {}),
        ("draft-model=path:/a=b/c", "draft-model", "path:/a=b/c", {}, {}),
        ("draft-model=path:/a:b/c:k=3,seed=7", "draft-model", "path:/a:b/c", {}, {"k": 3, "seed": 7}),
        ("draft-model=embedded:k=1", "draft-model", "embedded", {}, {"k": 1}),
        ("draft-model=PATH: /a ", "draft-model", "path:/a", {}, {}),
        ("early-exit:layers=1,temperature=0.5", "early-exit", None, {"layers": 1}, {"temperature": 0.5}),
        ("none:stop=a+b", "none", None, {}, {"stop": ("a", "b")}),
        ("none:stop=", "none", None, {}, {"stop": ()}),
        ("none:telemetry=false,ignore_eos=Yes", "none", None, {}, {"telemetry": False, "ignore_eos": True}),
        ("none:k_policy=fixed,top_p=1e-1", "none", None, {}, {"k_policy": "fixed", "top_p": 0.1}),
        ("early-exit:k_policy=confidence-0.3", "early-exit", None, {}, {"k_policy": "confidence-0.3"}),
    ],
)
def test_an_argument_is_understood(text, strategy, source, options, settings):
    draft = read_draft(text)
    assert (draft.strategy, draft.source) == (strategy, source)
    assert (dict(draft.options), dict(draft.settings)) == (options, settings)
    assert read_draft(draft.spell()) == draft


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "There is no draft ''"),
        ("magic", "There is no draft 'magic'; choose one of: cascade, cross-tokenizer, draft-model, "),
        ("prompt-lookup:", "must read option=value"),
        ("prompt-lookup:k", "must read option=value"),
        ("prompt-lookup:k=1;seed=2x", "k must be a number"),
        ("prompt-lookup:depth=3", "There is no option 'depth'; there are: max_ngram, min_ngram, k,"),
        ("prompt-lookup:k=1,k=2", "'k' is given twice"),
        ("prompt-lookup:k=65", "k must lie between 0 and 64"),
        ("prompt-lookup:k=", "k must be a number"),
        ("prompt-lookup:k=2.5", "k must be a whole number"),
        ("prompt-lookup:temperature=nan", "temperature must be a number"),
        ("prompt-lookup:seed=" + "9" * 400, "seed must be a number"),
        ("prompt-lookup:max_ngram=many", "max_ngram must be a whole number"),
        ("prompt-lookup:max_ngram=99", "max_ngram must lie between 1 and 16"),
        ("prompt-lookup:telemetry=perhaps", "telemetry must be true or false"),
        ("prompt-lookup:k_policy=clever", "k_policy 'clever' is not known"),
        ("prompt-lookup:k_policy=entropy-x", "the level of 'entropy' must be a number"),
        ("prompt-lookup=embedded", "takes no model of its own"),
        ("draft-model", "needs a draft model; name its source"),
        ("draft-model=", "is not a source of weights"),
        ("draft-model=somewhere", "is not a source of weights"),
        ("draft-model=ftp:x", "is not a source of weights"),
    ],
)
def test_a_wrong_argument_is_refused_in_words_that_name_it(text, words):
    with pytest.raises(SpecvizError) as caught:
        read_draft(text)
    assert words in str(caught.value) and repr(text)[1:-1] in str(caught.value)


def test_a_name_ends_at_the_first_mark():
    with pytest.raises(InputError, match="There is no draft 'magic'"):
        read_draft("magic:k=2")
    with pytest.raises(InputError, match="There is no draft ''"):
        read_draft("=embedded")


def test_the_same_argument_twice_is_refused():
    with pytest.raises(InputError, match="'prompt-lookup:k=2' is given twice"):
        read_drafts(["prompt-lookup:k=2", "none", "prompt-lookup:k=2"])
    assert len(read_drafts(["prompt-lookup", "prompt-lookup:k=2"])) == 2


def test_too_many_drafts_are_refused():
    texts = [f"prompt-lookup:k={k}" for k in range(1, 9)]
    assert len(read_drafts(texts[:7])) == 7
    with pytest.raises(InputError, match="at most 7 drafts"):
        read_drafts(texts)


def test_lanes_bear_the_arguments_as_names_and_their_own_settings(target):
    texts = ["prompt-lookup:max_ngram=4,k=8", "early-exit:layers=1,temperature=0.5"]
    lanes = make_lanes(target, read_drafts(texts), Settings(k=3, seed=5), no_models, note="well")
    assert [lane.name for lane in lanes] == ["standard", *texts]
    assert [lane.settings for lane in lanes] == [
        Settings(k=3, seed=5),
        Settings(k=8, seed=5),
        Settings(k=3, seed=5, temperature=0.5),
    ]
    assert lanes[1].strategy.max_ngram == 4 and not lanes[0].strategy.drafts
    assert [lane.note for lane in lanes] == ["well", None, None]


def test_each_source_is_loaded_once_and_the_targets_not_again(target):
    asked = []

    def load_model(source):
        asked.append(source)
        return LanguageModel(*llama(), source=source)

    texts = [
        "draft-model=path:/a:k=1",
        "draft-model=path:/a:k=2",
        "draft-model=path:/b",
        f"draft-model={target.source}",
    ]
    lanes = make_lanes(target, read_drafts(texts), Settings(), load_model)
    assert asked == ["path:/a", "path:/b"]
    assert lanes[1].strategy.model is lanes[2].strategy.model
    assert lanes[4].strategy.model is target


def test_a_draft_with_another_tokenizer_is_refused_before_anything_runs(target, tmp_path):
    source = save_llama(tmp_path, sentences=GERMAN)
    drafts = read_drafts([f"draft-model={source}"])
    with pytest.raises(PairError, match="tokenizers differ"):
        make_lanes(target, drafts, Settings(), lambda wanted: load(wanted, "cpu", "float32"))


def test_a_draft_that_cannot_be_loaded_leaves_the_target_as_it_was(target, tmp_path):
    drafts = read_drafts([f"draft-model=path:{tmp_path}/nowhere"])
    with pytest.raises(LoadError, match="There is no folder"):
        make_lanes(target, drafts, Settings(), lambda wanted: load(wanted, "cpu", "float32"))
    assert make_lanes(target, (), Settings(), no_models)[0].target is target


def no_models(source):
    raise AssertionError(f"{source} was loaded")
