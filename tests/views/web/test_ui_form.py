"""Forms, presets and links: what a setup says survives the way into an address and back."""

import re
from dataclasses import replace
from urllib.parse import parse_qsl

import gradio as gr
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from specviz.catalogue.catalog import load_catalog
from specviz.catalogue.presets import PATH, load_presets, presets
from specviz.core.draft_spec import DraftSpec
from specviz.core.errors import SpecvizError
from specviz.core.settings import K_POLICIES, Settings
from specviz.drafting import strategies
from specviz.races.race_limits import Limits
from specviz.views.web.controls import build_controls
from specviz.views.web.form import SHARED, Form, drafts_tree, with_fitting_k
from specviz.views.web.form_check import form_errors, request_of
from specviz.views.web.form_events import FormEvents
from specviz.views.web.labels import worded
from specviz.views.web.link import from_query, link, speaks, to_query
from specviz.views.web.offer import Offer

CATALOG = load_catalog()


def lane_of(strategy, source=None, k=4, k_policy=None, **options):
    """What the controls of a lane say."""
    policy = {} if k_policy is None else {"k_policy": k_policy}
    return DraftSpec(strategy, source, options, {"k": k, **policy})


@pytest.fixture(scope="module")
def offer():
    return Offer(CATALOG, CATALOG.profile("local"))


def test_the_first_form_can_be_run_as_it_is(offer):
    request = request_of(offer.first_form(), offer.limits)
    assert request.target == "embedded" and request.drafts == (DraftSpec.parse("cascade:shape=chain,k=4"),)


@pytest.mark.parametrize("name", presets())
def test_every_preset_can_be_run_on_every_target_with_the_draft_that_its_words_speak_of(offer, name):
    for _, target in [*offer.targets(), ("", "path:/typed")]:
        form = replace(offer.first_form(), target=target, lanes=(offer.first_lane(target),))
        form, expect = offer.with_preset(form, name)
        request = request_of(form, offer.limits)
        assert request.prompt == presets()[name].prompt
        draft = next(draft.spec for draft in presets()[name].drafts if draft.expect == expect)
        assert replace(request.drafts[0], source=None) == draft
        assert len(expect) > 60


def test_words_about_a_draft_model_come_with_one():
    for preset in presets().values():
        for draft in preset.drafts:
            takes_model = strategies()[draft.spec.strategy].takes_model
            assert takes_model == ("draft model" in re.sub("(no|any) draft model", "", draft.expect)), (
                preset.name,
                draft.spec,
            )
        assert not strategies()[preset.drafts[-1].spec.strategy].takes_model, preset.name


def test_a_preset_drafts_with_the_pairs_model_where_there_is_one_and_without_one_where_there_is_none(offer):
    coder = CATALOG.model("qwen2.5-coder-1.5b").source
    form = replace(offer.first_form(), target=coder)
    draft = CATALOG.model("qwen2.5-coder-0.5b").source
    assert offer.with_preset(form, "code")[0].lanes == (lane_of("draft-model", draft, 5),)
    assert offer.with_preset(offer.first_form(), "code")[0].lanes[0].source is None


def test_a_preset_keeps_the_draft_model_that_was_typed(offer):
    form = replace(offer.first_form(), target="path:/a", lanes=(lane_of("draft-model", "path:/b", 2),))
    assert offer.with_preset(form, "code")[0].lanes == (lane_of("draft-model", "path:/b", 5),)


def test_a_preset_leaves_the_other_lanes_and_races_none_against_itself(offer):
    lanes = tuple(lane_of("prompt-lookup", k=k) for k in (3, 8, 16))
    form, _ = offer.with_preset(replace(offer.first_form(), lanes=lanes), "quoting")
    assert [lane.k for lane in form.lanes] == [8, 16]


def test_presets_cover_gains_losses_scripts_and_sampling():
    kinds = {"code", "boilerplate", "repetition", "quoting", "story", "surprising", "high temperature"}
    assert kinds < set(presets())
    assert any(ord(letter) > 0x2E80 for preset in presets().values() for letter in preset.prompt)
    assert presets()["high temperature"].settings["temperature"] > 1


def test_a_preset_goes_back_to_greedy_unless_it_says_otherwise(offer):
    hot, _ = offer.with_preset(offer.first_form(), "high temperature")
    assert hot.settings["temperature"] == 1.2
    assert offer.with_preset(hot, "code")[0].settings["temperature"] == 0


def test_a_preset_asks_for_no_more_tokens_than_the_machine_allows():
    profile = replace(CATALOG.profile("cpu-basic"), max_new_tokens=40)
    small = Offer(CATALOG, profile)
    assert small.first_form().settings["max_new_tokens"] == 40
    assert small.cut(small.with_preset(small.first_form(), "code")[0]).settings["max_new_tokens"] == 40


def test_a_machine_whose_target_has_a_pair_begins_with_it():
    first = Offer(CATALOG, CATALOG.profile("t4-small")).first_form()
    assert first.lanes[0].strategy == "draft-model" and first.prompt == presets()["code"].prompt


def test_a_target_with_a_known_pair_begins_with_its_draft(offer):
    target = CATALOG.model("qwen2.5-coder-1.5b").source
    draft = CATALOG.model("qwen2.5-coder-0.5b").source
    assert offer.first_lane(target) == lane_of("draft-model", draft, 5)
    assert draft in [source for _, source in offer.models(target, "draft-model").choices]


def test_only_models_that_fit_the_target_are_offered_and_the_others_have_their_reason(offer):
    target = CATALOG.model("smollm2-360m").source
    models = offer.models(target, "draft-model")
    assert [source for _, source in models.choices] == ["embedded", CATALOG.model("smollm2-135m").source]
    assert models.others == (
        "Not listed. Gemma 3 270M it and 13 more: other tokenizer than the target's smollm2; use “Draft model with "
        "another tokenizer”. SmolLM2 1.7B Instruct: not smaller than the target."
    )
    assert offer.models("embedded", "draft-model").others.startswith("No model of the list fits this target. ")


def test_a_draft_that_takes_any_tokenizer_is_offered_models_of_any(offer):
    models = offer.models(CATALOG.model("smollm2-360m").source, "cross-tokenizer")
    assert [label for label, _ in models.choices][-1] == "Gemma 3 270M it, needs a token" and len(models.choices) == 3
    assert "tokenizer" not in models.others and "not smaller" in models.others


def test_any_model_is_offered_as_draft_for_a_target_that_the_catalogue_lacks(offer):
    for target in ("path:/x", "half typed"):
        assert len(offer.models(target, "draft-model").choices) == len(CATALOG.models)
    assert offer.models("path:/x", "prompt-lookup").choices == []


def test_a_profile_names_the_draft_to_begin_with_and_pairs_keep_theirs():
    profile = replace(
        CATALOG.profile("local"), draft=DraftSpec.parse("prompt-lookup:max_ngram=5,k=7,k_policy=adaptive")
    )
    named = Offer(CATALOG, profile)
    lane = lane_of("prompt-lookup", k=7, k_policy="adaptive", max_ngram=5)
    assert named.first_form().lanes == (lane,) and named.first_lane("path:/x") == lane
    assert named.first_lane(CATALOG.model("qwen2.5-coder-1.5b").source).strategy == "draft-model"
    assert named.first_lane(CATALOG.model("qwen2.5-3b").source) == lane
    own = replace(profile, target="qwen2.5-coder-1.5b")
    assert Offer(CATALOG, own).first_lane(CATALOG.model("qwen2.5-coder-1.5b").source) == lane
    # one whose draft no preset begins with opens on the first preset's prompt
    odd = Offer(CATALOG, replace(profile, draft=DraftSpec("early-exit")))
    assert odd.first_form().lanes == (lane_of("early-exit", k=profile.k),) and odd.first_form().prompt


def test_every_profile_names_a_draft_that_can_be_run():
    for profile in CATALOG.hardware.values():
        offered = Offer(CATALOG, profile)
        assert form_errors(offered.first_form(), offered.limits) == ()


def test_a_named_target_leads_the_list():
    assert Offer(CATALOG, CATALOG.profile("local"), "path:/x").targets()[0] == ("path:/x", "path:/x")


FORMS = [
    Form("Hi", "embedded", (lane_of("prompt-lookup", k=3),), True, {n: getattr(Settings(), n) for n in SHARED}),
    Form(
        "a & b = c?\n\n日本 👩‍👩‍👧 + %20 #",
        "path:/a b/c",
        (
            lane_of("draft-model", "hub:a/b@main", 2, k_policy="confidence-0.3"),
            lane_of("prompt-lookup", k=0, max_ngram=5),
            lane_of("token-recycling", k=16, shape="tree"),
        ),
        False,
        {
            "max_new_tokens": 33,
            "temperature": 0.7,
            "top_k": 9,
            "top_p": 0.5,
            "seed": 2**40,
            "stop": ("a\nb", "&", "+"),
            "ignore_eos": True,
            "repetition_penalty": 1.3,
            "presence_penalty": -1.0,
            "frequency_penalty": 0.25,
            "telemetry": False,
        },
    ),
]


@pytest.mark.parametrize("form", FORMS)
def test_a_link_says_all_that_the_form_says(form, offer):
    assert from_query(to_query(form), offer.first_form()) == form


def test_a_link_may_say_little(offer):
    usual = offer.first_form()
    form = from_query("draft=prompt-lookup:k=2", usual)
    assert form == replace(usual, lanes=(lane_of("prompt-lookup", k=2),))


@pytest.mark.parametrize("query", ["draft=turbo", "temperature=hot", "max_new_tokens=0", "draft=prompt-lookup:k=x"])
def test_a_broken_link_is_refused_in_a_sentence(query, offer):
    with pytest.raises(SpecvizError, match=r"\.$"):
        from_query(query, offer.first_form())


@pytest.mark.parametrize(
    "query, words",
    [
        ("draft=prompt-lookup:temperature=0.9,max_new_tokens=7", "cannot show max_new_tokens .* set “New tokens”"),
        ("draft=prompt-lookup:telemetry=false", "cannot show telemetry for one lane alone"),
        ("&".join(f"draft=prompt-lookup:k={k}" for k in (1, 2, 3, 4)), "at most 3 drafts, and 4 are named"),
        ("chat=maybe", "chat must be true or false, not 'maybe'"),
        ("draft=none", "'none' drafts nothing"),
    ],
)
def test_a_link_that_says_what_the_page_cannot_show_is_refused(query, words, offer):
    with pytest.raises(SpecvizError, match=words):
        from_query(query, offer.first_form())


@pytest.mark.parametrize("word, chat", [("false", False), ("0", False), ("No", False), ("true", True), ("1", True)])
def test_a_link_says_yes_and_no_as_people_do(word, chat, offer):
    assert from_query(f"chat={word}", offer.first_form()).chat is chat


def test_a_link_that_can_be_opened_is_given_away(offer):
    usual = offer.first_form()
    for form in (usual, *FORMS):
        assert link(form, usual) == to_query(form)


@given(st.text())
def test_a_link_holds_any_path_and_any_prompt(offer, text):
    usual = offer.first_form()
    form = replace(usual, prompt=text, lanes=(lane_of("ngram-table", table=text or "x"),))
    assert from_query(link(form, usual), usual) == form


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"lanes": (lane_of("prompt-lookup"), lane_of("prompt-lookup", k=None))}, "Draft 2: k is empty"),
        ({"lanes": (lane_of("draft-model"),)}, "no model is chosen"),
        ({"max_new_tokens": None}, "New tokens must be a number"),
    ],
)
def test_a_link_that_cannot_be_opened_is_refused_and_not_copied(wrong, words, offer):
    usual = offer.first_form()
    with pytest.raises(SpecvizError) as refusal:
        link(filled(usual, wrong), usual)
    assert words in worded(refusal.value)


def test_addresses_may_carry_other_things():
    assert not speaks(parse_qsl("__theme=dark&view=api"))
    assert speaks(parse_qsl("__theme=dark&k=3&seed=1"))


def test_a_prompt_too_long_for_an_address_is_refused(offer):
    with pytest.raises(SpecvizError, match="too long for an address"):
        to_query(replace(offer.first_form(), prompt="a" * 9000))


WAY = {"draft": "prompt-lookup", "k": 4, "expect": "a win"}


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"extra": 1}, r"presets.yaml\[0\] has an unknown key 'extra'"),
        ({"prompt": 5}, "prompt must be a text"),
        ({"prompt": ""}, "The prompt is empty"),
        ({"ways": []}, "ways must name at least one draft"),
        ({"ways": None}, "ways must be a list"),
        ({"ways": [{**WAY, "draft": "turbo"}]}, "'x': there is no draft 'turbo'"),
        ({"ways": [{**WAY, "draft": "none"}]}, "there is no draft 'none'"),
        ({"ways": [{**WAY, "draft": "draft-model"}]}, "must need no model"),
        ({"ways": [{**WAY, "k": 65}]}, "k must lie between 0 and 64"),
        ({"ways": [{**WAY, "k": "4"}]}, "k must be a whole number"),
        ({"ways": [{**WAY, "options": {"max_ngram": 99}}]}, "max_ngram must lie between"),
        ({"ways": [{**WAY, "options": {"seed": 1}}]}, "has the options .*, not seed"),
        ({"settings": {"k": 4}}, "no setting 'k'"),
        ({"settings": {"heat": 4}}, "no setting 'heat'"),
        ({"settings": {"temperature": "hot"}}, "temperature must be a number"),
    ],
)
def test_a_mistake_in_the_presets_is_refused_in_a_sentence(tmp_path, changed, words):
    path = tmp_path / "presets.yaml"
    path.write_text(yaml.safe_dump([{"name": "x", "prompt": "y", "ways": [WAY], **changed}]))
    with pytest.raises(SpecvizError, match=words):
        load_presets(path)


@pytest.mark.parametrize("text", [b"", b"[]", b"a: 1", b"[1]", b"[{}]", b"- [", b"\xff", PATH.read_bytes() * 2])
def test_a_file_that_holds_no_presets_is_refused_in_a_sentence(tmp_path, text):
    (tmp_path / "presets.yaml").write_bytes(text)
    with pytest.raises(SpecvizError, match=r"presets.yaml.*\.$"):
        load_presets(tmp_path / "presets.yaml")


WRONG = [
    ({"prompt": " "}, "The prompt is empty; type at least one word."),
    ({"target": ""}, "No target is chosen; pick one from the list or type a source such as hub:ID."),
    ({"target": "SmolLM2"}, "Target: 'SmolLM2' is not a source of weights. "),
    ({"lanes": (lane_of("draft-model"),)}, "Draft model: no model is chosen; "),
    ({"lanes": (lane_of("draft-model", "x"),)}, "Draft model: 'x' is not a source of weights. "),
    ({"lanes": (lane_of("prompt-lookup", k=65),)}, "Draft: k must lie between 0 and 64; 65 does not."),
    ({"lanes": (lane_of("prompt-lookup", k=None),)}, "Draft: k is empty; 0 decodes as standard."),
    (
        {"lanes": (lane_of("prompt-lookup"), lane_of("prompt-lookup", max_ngram=99))},
        "Draft 2: The option max_ngram must lie between 1 and 16; 99 does not.",
    ),
    (
        {"lanes": (lane_of("prompt-lookup"), lane_of("prompt-lookup"))},
        "Draft and Draft 2 are the same; give one of them another k or option, or remove it.",
    ),
    (
        {"lanes": (lane_of("prompt-lookup", k_policy="confidence-9"),)},
        "Draft: the level of 'confidence' must lie between 0.0 and 1.0; 9.0 does not.",
    ),
    ({"max_new_tokens": 0}, "New tokens must lie between 1 and 8192; 0 does not."),
    ({"max_new_tokens": None}, "New tokens must be a number from 1 to 8192; the field is empty."),
    ({"seed": -1}, "Seed must lie between 0 and 9223372036854775807; -1 does not."),
    ({"top_p": 0}, "top-p must be above 0 and at most 1; use 1 to switch it off."),
    ({"stop": ("x" * 201,)}, "A stop string must be a text of 1 to 200 characters."),
]


def filled(form, wrong):
    """`form` with fields of the form or of its settings in place of its own."""
    settings = {name: value for name, value in wrong.items() if name in SHARED}
    others = {name: value for name, value in wrong.items() if name not in SHARED}
    return replace(form, settings={**form.settings, **settings}, **others)


@pytest.mark.parametrize(("wrong", "words"), WRONG)
def test_a_wrong_field_is_refused_by_its_label(wrong, words, offer):
    said = [worded(error) for error in form_errors(filled(offer.first_form(), wrong), Limits())]
    assert len(said) == 1 and said[0].startswith(words)


def test_all_that_is_wrong_is_told_at_once_a_line_each(offer):
    lanes = (lane_of("prompt-lookup", k=-1, max_ngram=0), lane_of("draft-model"))
    fields = {"prompt": "", "target": "x", "lanes": lanes, "max_new_tokens": 0, "temperature": 99, "seed": 0.5}
    with pytest.raises(SpecvizError) as refusal:
        request_of(filled(offer.first_form(), fields), Limits())
    heads = ("The prompt", "Target:", "Draft: k", "Draft: The option max_ngram", "Draft model 2:")
    lines = str(refusal.value).split("\n")
    for line, head in zip(lines, (*heads, "New tokens", "Temperature", "Seed"), strict=True):
        assert line.startswith(head) and line.endswith(".")


def test_a_form_that_can_be_run_has_nothing_said_against_it(offer):
    assert form_errors(offer.first_form(), offer.limits) == ()


def test_a_machine_says_how_much_it_writes_and_what_it_offers():
    space = Offer(CATALOG, CATALOG.profile("cpu-basic"))
    wrong = {"max_new_tokens": 257, "target": "path:/etc"}
    said = map(worded, form_errors(filled(space.first_form(), wrong), space.limits))
    assert [line.split(";")[0].split(" names")[0] for line in said] == [
        "Target: 'path:/etc'",
        "This machine writes at most 256 new tokens per lane",
    ]


def test_every_lane_that_is_added_can_be_told_from_the_others(offer):
    events = FormEvents(None, offer, offer.first_form(), None, None)
    for k in (0, 1, 16, 32, 33, 64, None):
        form = replace(offer.first_form(), lanes=(lane_of("prompt-lookup", k=k),))
        for _ in range(2):
            form = replace(form, lanes=(*form.lanes, events._another(form)))
        assert len(set(form.lanes)) == 3
        assert all(0 < lane.k <= 64 for lane in form.lanes[1:])


def test_a_visit_begins_with_what_was_sent_then_with_what_is_remembered(offer):
    usual = offer.first_form()
    controls = _built(offer, usual)
    events = FormEvents(controls, offer, usual, None, None)
    prompt = events.restores.index(controls.prompt)
    assert events.restored([("prompt", "sent")], "prompt=kept")[prompt] == "sent"
    assert events.restored([("__theme", "dark")], "prompt=kept")[prompt] == "kept"
    assert events.restored([], "")[prompt] == gr.skip()


def test_a_broken_setup_is_told_when_it_was_sent_and_dropped_when_it_was_remembered(offer):
    usual = offer.first_form()
    events = FormEvents(_built(offer, usual), offer, usual, None, None)
    assert events.restored([("draft", "turbo")], "")[0][0] == "error"
    assert events.restored([], "draft=turbo")[0] == ("", "")


def test_what_the_controls_are_written_they_read_back(offer):
    controls = _built(offer, offer.first_form())
    for form in FORMS:
        written = dict(zip(map(id, controls.written), controls.write(form, offer), strict=True))
        values = [written[id(component)] for component in controls.inputs]
        values = [value["value"] if isinstance(value, dict) else value for value in values]
        assert controls.read(values) == form
        assert len({id(component) for component in controls.written}) == len(controls.written)


def test_k_counts_nodes_where_the_draft_is_a_tree_and_a_tree_has_a_few(offer):
    tree = lane_of("token-recycling", k=4, shape="tree")
    assert [drafts_tree(one) for one in (tree, lane_of("token-recycling"), lane_of("prompt-lookup"))] == [
        True,
        False,
        False,
    ]
    assert [with_fitting_k(one).k for one in (tree, tree.with_k(9), lane_of("prompt-lookup", k=3))] == [16, 9, 3]
    form = replace(offer.first_form(), lanes=(tree,))
    controls = _built(offer, form)
    lane = controls.lanes[0]
    assert lane.k.label == "k, nodes of a tree per round" and controls.lanes[1].k.label == "k, drafted tokens per round"
    [(option, radio)] = lane.options["token-recycling"]
    assert (option.name, radio.value, radio.choices) == ("shape", "tree", [("chain", "chain"), ("tree", "tree")])
    assert [group.visible for name, group in lane.groups if name == "token-recycling"] == [True]


def test_options_that_name_files_are_not_seen_by_a_spaces_visitors(offer):
    space = Offer(CATALOG, CATALOG.profile("cpu-basic"))
    for offered, seen in ((offer, True), (space, False)):
        lane = _built(offered, offered.first_form()).lanes[0]
        fields = [part for pairs in lane.options.values() for option, part in pairs if option.path]
        assert fields and {field.visible for field in fields} == {seen}


def test_k_policies_are_offered_where_there_are_several_each_with_its_level(offer):
    control = _built(offer, offer.first_form()).lanes[0].policy
    assert [name for _, name in control.name.choices] == list(K_POLICIES)
    assert control.fold.visible is True and control.level.visible is False
    for policy in ("fixed", "entropy-1.5", "adaptive-0.3"):
        name, level = control.write(policy)
        assert control.read((name, level["value"])) == policy
        assert level["visible"] == (policy != "fixed")
    assert control.read(("entropy", None)) == "entropy"


def test_a_single_k_policy_is_no_choice(offer, monkeypatch):
    monkeypatch.setattr("specviz.views.web.policy_control.K_POLICIES", {"fixed": None})
    assert _built(offer, offer.first_form()).lanes[0].policy.fold.visible is False


def _built(offer, form):
    with gr.Blocks():
        return build_controls(offer, form)
