"""Forms, presets and links: what a setup says survives the way into an address and back."""

from dataclasses import replace
from urllib.parse import parse_qsl

import gradio as gr
import pytest

from specviz.catalog import load_catalog
from specviz.errors import SpecvizError
from specviz.settings import Settings
from specviz.ui.controls import build_controls
from specviz.ui.form import SHARED, Form, LaneChoice, Offer, apply_preset
from specviz.ui.form_events import FormEvents
from specviz.ui.link import from_query, speaks, to_query
from specviz.ui.presets import presets
from specviz.ui.request import Limits

CATALOG = load_catalog()


@pytest.fixture(scope="module")
def offer():
    return Offer(CATALOG, CATALOG.profile("local"))


def test_the_first_form_can_be_run_as_it_is(offer):
    request = offer.first_form().request(offer.limits)
    assert request.target == "embedded" and request.drafts == ("prompt-lookup:k=8",)


def test_every_preset_can_be_run_and_says_what_to_expect(offer):
    for name, preset in presets().items():
        request = apply_preset(offer.first_form(), name).request(offer.limits)
        assert request.prompt == preset.prompt
        assert len(preset.expect) > 60


def test_presets_cover_gains_losses_scripts_and_sampling():
    kinds = {"code", "boilerplate", "repetition", "quoting", "story", "surprising", "high temperature"}
    assert kinds < set(presets())
    assert any(ord(letter) > 0x2E80 for preset in presets().values() for letter in preset.prompt)
    assert presets()["high temperature"].settings["temperature"] > 1


def test_a_preset_goes_back_to_greedy_unless_it_says_otherwise(offer):
    hot = apply_preset(offer.first_form(), "high temperature")
    assert hot.settings["temperature"] == 1.2
    assert apply_preset(hot, "code").settings["temperature"] == 0


def test_a_preset_asks_for_no_more_tokens_than_the_machine_allows():
    profile = replace(CATALOG.profile("cpu-basic"), max_new_tokens=40)
    small = Offer(CATALOG, profile)
    assert small.first_form().settings["max_new_tokens"] == 40
    assert small.cut(apply_preset(small.first_form(), "code")).settings["max_new_tokens"] == 40


def test_a_target_with_a_known_pair_begins_with_its_draft(offer):
    target = CATALOG.model("qwen2.5-coder-1.5b").source
    draft = CATALOG.model("qwen2.5-coder-0.5b").source
    assert offer.first_lane(target) == LaneChoice("draft-model", draft, 5)
    assert draft in [source for _, source in offer.drafts(target)]


def test_drafts_of_another_tokenizer_are_not_offered(offer):
    sources = [source for _, source in offer.drafts("embedded")]
    assert sources and not any("wen" in source for source in sources)


def test_any_model_is_offered_as_draft_for_a_target_that_the_catalogue_lacks(offer):
    assert len(offer.drafts("path:/x")) == len(CATALOG.models) == len(offer.drafts("half typed"))


def test_a_named_target_leads_the_list():
    assert Offer(CATALOG, CATALOG.profile("local"), "path:/x").targets()[0] == ("path:/x", "path:/x")


FORMS = [
    Form("Hi", "embedded", (LaneChoice("prompt-lookup", k=3),), True, {n: getattr(Settings(), n) for n in SHARED}),
    Form(
        "a & b = c?\n\n日本 👩‍👩‍👧 + %20 #",
        "path:/a b/c",
        (LaneChoice("draft-model", "hub:a/b@main", 2), LaneChoice("prompt-lookup", k=0, options=(("max_ngram", 5),))),
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
    assert form == replace(usual, lanes=(LaneChoice("prompt-lookup", k=2),))


@pytest.mark.parametrize("query", ["draft=turbo", "temperature=hot", "max_new_tokens=0", "draft=prompt-lookup:k=x"])
def test_a_broken_link_is_refused_in_a_sentence(query, offer):
    with pytest.raises(SpecvizError, match=r"\.$"):
        from_query(query, offer.first_form())


def test_addresses_may_carry_other_things():
    assert not speaks(parse_qsl("__theme=dark&view=api"))
    assert speaks(parse_qsl("__theme=dark&k=3&seed=1"))


def test_a_prompt_too_long_for_an_address_is_refused(offer):
    with pytest.raises(SpecvizError, match="too long for an address"):
        to_query(replace(offer.first_form(), prompt="a" * 9000))


def test_a_form_is_checked_like_any_request(offer):
    with pytest.raises(SpecvizError, match="temperature must be a number"):
        form = offer.first_form()
        replace(form, settings={**form.settings, "temperature": None}).request(Limits())


def test_every_lane_that_is_added_can_be_told_from_the_others(offer):
    events = FormEvents(None, offer, offer.first_form(), None, None)
    for k in (0, 1, 16, 32, 33, 64, None):
        form = replace(offer.first_form(), lanes=(LaneChoice("prompt-lookup", k=k),))
        for _ in range(2):
            form = replace(form, lanes=(*form.lanes, events._another(form)))
        arguments = [lane.argument for lane in form.lanes]
        assert len(set(arguments)) == 3
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


def _built(offer, form):
    with gr.Blocks():
        return build_controls(offer, form)
