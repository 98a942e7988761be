"""Where a target's own prompts begin and end: the chat template's text around a user's turn.

Prompts are rendered as `specviz.races.prompts` renders what a person types, with the template's own system part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specviz.core.errors import InputError
from specviz.distil.teacher import Teacher
from specviz.races.prompts import has_chat_template, make_prompt

_MARK = "specvizuserturn"


@dataclass(frozen=True, slots=True)
class ChatForm:
    """`header` (n,): the ids before a prompt's own; `ends`: ids that end a prompt; `closing`: text that does too.

    `chat` False: a base model, whose prompts are the beginning of the text that it goes on with.
    """

    chat: bool
    header: tuple[int, ...]
    ends: tuple[int, ...]
    closing: str = ""


def chat_form(teacher: Teacher) -> ChatForm:
    """How this target's prompts are begun. Raises InputError where there is nothing to begin from."""
    if not has_chat_template(teacher):
        return ChatForm(False, (_first_id(teacher),), teacher.eos_ids)
    # the template has written the special tokens already
    written = teacher.tokenizer.decode(make_prompt(teacher, _MARK, chat=True).ids)
    before, mark, after = written.partition(_MARK)
    if not mark:
        raise InputError(f"The chat template of {teacher.name} loses the user's turn, so no prompts can be written.")
    header = teacher.tokenizer(before, add_special_tokens=False)["input_ids"]
    closing = teacher.tokenizer(after, add_special_tokens=False)["input_ids"]
    special = [token for token in closing[:1] if token in _special_ids(teacher.tokenizer)]
    text = "" if special else after.strip().partition("\n")[0]
    return ChatForm(True, tuple(header), tuple(dict.fromkeys((*teacher.eos_ids, *special))), text)


def rendered(teacher: Teacher, form: ChatForm, written: tuple[int, ...]) -> tuple[int, ...]:
    """The ids that a run reads for the prompt `written` (after the header, its end left out); () for an empty one."""
    if not form.chat:
        return (*form.header, *written) if written else ()
    text = teacher.tokenizer.decode(written, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    text = (text.partition(form.closing)[0] if form.closing else text).strip()
    return make_prompt(teacher, text, chat=True).ids if text else ()


def _special_ids(tokenizer: Any) -> set[int]:
    """Those that play a part of their own, and those that are marked as special alone."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return {*tokenizer.all_special_ids, *(number for number, token in added.items() if token.special)}


def _first_id(teacher: Teacher) -> int:
    first = teacher.tokenizer.bos_token_id
    if first is None and not teacher.eos_ids:
        raise InputError(f"{teacher.name} has no chat template and no first token, so it has nothing to write from.")
    return int(teacher.eos_ids[0] if first is None else first)
