"""A text becomes the ids that every lane decodes; what cannot be used is refused in a sentence."""

import pytest
from support.tiny_checkpoints import CONTEXT, llama, save_llama

from specviz import LanguageModel, load
from specviz.core.errors import ContextError, InputError
from specviz.races.prompts import MAX_PROMPT_CHARACTERS, has_chat_template, make_prompt


@pytest.fixture(scope="module")
def chatty(tmp_path_factory):
    return load(save_llama(tmp_path_factory.mktemp("chatty")), "cpu", "float32")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return load(save_llama(tmp_path_factory.mktemp("plain"), template=None), "cpu", "float32")


def text_of(model, prompt):
    return model.tokenizer.decode(list(prompt.ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)


def test_the_chat_template_is_used_where_there_is_one(chatty):
    prompt = make_prompt(chatty, "the cat")
    assert prompt.chat and prompt.notes == () and prompt.text == "the cat"
    assert text_of(chatty, prompt) == "<|im_start|>user\nthe cat<|im_end|>\n<|im_start|>assistant\n"


def test_the_templates_ids_are_those_of_apply_chat_template(chatty):
    messages = [{"role": "user", "content": "a dog\n"}]
    expected = chatty.tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    assert list(make_prompt(chatty, "a dog\n").ids) == list(expected)


def test_raw_goes_in_as_typed(chatty):
    prompt = make_prompt(chatty, "the cat", chat=False)
    assert not prompt.chat and prompt.notes == () and text_of(chatty, prompt) == "the cat"


@pytest.mark.parametrize("wanted", [None, True])
def test_a_missing_template_is_noted_and_the_prompt_goes_in_raw(plain, wanted):
    prompt = make_prompt(plain, "the cat", chat=wanted)
    assert not has_chat_template(plain) and not prompt.chat and text_of(plain, prompt) == "the cat"
    assert len(prompt.notes) == 1 and "has no chat template" in prompt.notes[0]


def test_raw_on_a_model_without_template_needs_no_note(plain):
    assert make_prompt(plain, "the cat", chat=False).notes == ()


def test_a_prompt_of_one_token_is_one(plain):
    assert len(make_prompt(plain, "a", chat=False).ids) == 1


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_empty_prompt_is_refused(chatty, text):
    with pytest.raises(InputError, match="The prompt is empty"):
        make_prompt(chatty, text)


def test_a_huge_prompt_is_refused_before_it_is_read(chatty):
    with pytest.raises(InputError, match="at most 200,000"):
        make_prompt(chatty, "a" * (MAX_PROMPT_CHARACTERS + 1))


def test_bytes_that_are_no_text_are_refused(chatty):
    with pytest.raises(InputError, match="UTF-8"):
        make_prompt(chatty, "a\udcff")


def test_a_prompt_that_fills_the_context_is_refused(plain):
    assert len(make_prompt(plain, "z" * (CONTEXT - 1), chat=False).ids) == CONTEXT - 1
    with pytest.raises(ContextError, match=f"has {CONTEXT} tokens and .* reads at most {CONTEXT}"):
        make_prompt(plain, "z" * CONTEXT, chat=False)


def test_less_room_than_asked_for_is_noted(plain):
    text = "z" * (CONTEXT - 4)
    assert make_prompt(plain, text, chat=False, max_new_tokens=4).notes == ()
    notes = make_prompt(plain, text, chat=False, max_new_tokens=5).notes
    assert len(notes) == 1 and "a lane writes at most 4 new tokens, not 5" in notes[0]
    assert "at most 1 new token," in make_prompt(plain, text + "zzz", chat=False, max_new_tokens=5).notes[0]


def test_a_template_that_fails_is_a_sentence(tmp_path):
    broken = load(save_llama(tmp_path, template="{{ raise_exception('no users here') }}"), "cpu", "float32")
    with pytest.raises(InputError, match="no users here.*raw"):
        make_prompt(broken, "the cat")
    assert make_prompt(broken, "the cat", chat=False).ids


def test_a_model_without_tokenizer_reads_no_text():
    with pytest.raises(InputError, match="no tokenizer"):
        make_prompt(LanguageModel(llama()[0], None, name="bare"), "the cat")
